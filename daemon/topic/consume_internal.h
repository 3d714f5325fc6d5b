/* consume_internal.h - shared by the files of consume.h: the state of a topic daemon, and how a session
 * begins. */
#pragma once

#include "daemon/topic/consume.h"
#include "daemon/topic/intake.h"

/* A transaction that is open for this long is logged. */
#define CONSUME_STAND_MS 10000
/* Pause between two attempts to begin a session or some partitions. */
#define AGAIN_MS         1000

struct consume {
    const struct consume_options *options;
    struct engine *engine;
    struct intake_shared shared;
    struct topic *topics;
    size_t topic_count;
    struct intake *intakes;
    size_t intake_count;
    size_t served;        /* intake that was served last: the next ones have priority */
    struct kafka *reader; /* reads witnesses; the writer's */
    int64_t *troubles;    /* by intake: its `troubles` at its last compared delivery */
    int64_t rechecked_ms; /* monotonic time of the last look at idle partitions */
    int64_t unproven;     /* times that witnesses were out of reach */
    int64_t rebalances;
    int64_t fenced_ms; /* monotonic time at which another last took this one's place in the group; 0: never */
    bool is_disturbed; /* something ended the session: pause before the next */
    enum status_state state;
    pthread_t housekeeper;
    size_t started; /* intakes whose threads run */
    bool has_housekeeper;
    atomic_bool end_housekeeping, has_new_partitions;
};

/* ---- consume_begin.c */

/* Do everything up to the first message. Consumers stay open after a failure, so that slow connections can be
 * made. */
bool consume_begin(struct consume *c, struct err *e) MUST_CHECK;
/* Find out where the partitions begin that the group assigned to an intake. A retryable failure is retried a
 * little later. */
bool consume_begin_given(struct consume *c, struct intake *in, struct err *e) MUST_CHECK;
/* Did a topic change since the session began? Then only the next session can resume it. */
bool consume_has_outdated(const struct consume *c);
void consume_close(struct consume *c);

/* ---- consume_stand.c */

/* A kafka_stand_fn with a struct intake as context; the housekeeper calls it. */
void consume_note_stand(void *context, const struct kafka_stand *stand);
/* Seconds for which an open transaction has held records back at a monotonic time; 0: none does. */
int64_t consume_stands_s(const struct partition *p, int64_t now_ms);
