/* consume_internal.h - what the files of consume.h share: one session after the other, and how it begins. */
#pragma once

#include "daemon/count/flush.h"
#include "daemon/count/writer.h"
#include "daemon/topic/consume.h"
#include "daemon/topic/intake.h"

/* A transaction that is open for so long is worth a word. */
#define CONSUME_STAND_MS 10000
/* Between two attempts to begin a session, or some partitions. */
#define AGAIN_MS         1000

struct consume {
    const struct consume_options *options;
    struct kafka_options kafka_options;
    struct intake_shared shared;
    struct topic *topics;
    size_t topic_count;
    struct intake *intakes;
    size_t intake_count;
    size_t served; /* whose delivery was taken last: the others are next */
    struct writer writer;
    _Atomic int64_t *late_ms; /* by report; the writer's, for the shards */
    struct flush flush;
    struct letter_box *box;
    struct kafka *reader; /* of witnesses; the writer's */
    int64_t *troubles;    /* of each intake, as of its last delivery that was compared */
    int64_t rechecked_ms; /* partitions of which nothing came were looked for; monotonic */
    int64_t unproven;     /* so often witnesses were out of reach */
    struct books books;   /* since the start, of all topics */
    int64_t messages, letters, rebalances;
    int64_t budget_bytes; /* of shards and queues */
    enum status_state state;
    pthread_t housekeeper;
    size_t started; /* intakes, … */
    bool has_housekeeper;
    atomic_bool end_housekeeping, has_new_partitions;
};

/* ---- consume_begin.c */

/* Everything up to the first message. The consumers stay open over failures, so that slow connections are
 * made. */
bool consume_begin(struct consume *c, struct err *e);
/* Where the partitions begin that the group gave an intake. What fails for a while is tried again a little
 * later. */
bool consume_begin_given(struct consume *c, struct intake *in, struct err *e);
/* A topic is another one than when the session began: only the next session can go on with it. */
bool consume_has_outdated(const struct consume *c);
void consume_close(struct consume *c);

/* ---- consume_stand.c */

/* A kafka_stand_fn, of a struct intake: the housekeeper's. */
void consume_note_stand(void *context, const struct kafka_stand *stand);
/* For so many seconds an open transaction has held back what is behind it; 0: none does. */
int64_t consume_stands_s(const struct partition *p);
