/* status.h - how the counting goes, told by the one thread that counts and read by those that serve.
 *
 * Health  : whoever counts says so several times a second; silence for STATUS_SILENCE_MS means that it hangs,
 *           or that the store keeps failing.
 * Rate    : over the last STATUS_RATE_MS, between batches: they come in steps of a flush, and a window cut
 *           by the clock would see now more of them, now fewer.
 * Threads : any; every call takes the lock.
 */
#pragma once

#include "base/clock.h"
#include "base/text.h"

#include <pthread.h>

#define STATUS_SILENCE_MS 10000
#define STATUS_RATE_MS    10000
#define STATUS_STEPS_MAX  64

enum status_state {
    STATUS_WAITING,  /* the source is still empty */
    STATUS_COUNTING, /* and waiting for more */
    STATUS_ENDED     /* the source has ended; what was counted is served */
};

struct status_figures {
    enum status_state state;
    int64_t consumed, rejected; /* lines, since the start */
    int64_t offset, stored;     /* of the source: read, durable */
};

struct status_step {
    int64_t at_ms, consumed;
};

struct status {
    pthread_mutex_t lock;
    const struct clock *clock;
    const char *store, *source; /* borrowed; for people */
    int64_t begun_ms, noted_ms; /* monotonic */
    struct status_figures figures;
    struct status_step steps[STATUS_STEPS_MAX]; /* of the rate, oldest first */
    size_t step_count;
};

void status_init(struct status *s, const struct clock *clock, const char *store, const char *source);
void status_fini(struct status *s);
void status_note(struct status *s, const struct status_figures *figures);

/* Lines a second. */
double status_rate(struct status *s);
/* Is somebody counting? `why`, if not, for an operator. */
bool status_healthy(struct status *s, struct text *why);
/* Adds all of it as a JSON object. */
void status_write(struct status *s, struct text *out);
