/* refill.h - counts for a report the records of topics that were counted before without it
 * (store/backfill.h), as far as Kafka still has them. `tallyd backfill` calls it, or has a running daemon do
 * so (refill_beside()).
 *
 *   offset   0 .... the topic's first .... since ........ gap ........ until ........ the position
 *            gone   counted now            counted        counted now  counted        counted now
 *
 * Exact  : a record counts in the report once, and in nothing else. A batch moves the report's entries in the
 *          books with its counts. After a crash the same call goes on.
 * Proof  : before a batch is applied, a counted record is read again (compare.h), after those of the batch.
 *          If it is another, the topic is another, and nothing of the batch is applied.
 * Gone   : offsets that the topic does not hold any more stay in the plan. So does a partition whose topic is
 *          another one, is deleted, or is not configured. `said` names each with the reason.
 * Holes  : in a topic that compacts, offsets without a record stay in the plan, too: the source may have
 *          counted records there. At most 20 holes between the records of a stretch stay: further ones are
 *          passed over, and `said` has the number of their offsets. In other topics only transactions leave
 *          offsets out. If this user may not read the topic's cleanup.policy, all are passed over, and `said`
 *          tells.
 * Like then: events that were in the future when they were counted stay rejected. Before the offset at which
 *          the topic was first counted, a record's own time judges. Decoding is today's.
 * Errors : EX_UNAVAILABLE, EX_TEMPFAIL: the cluster or the registry does not answer, or `go_on` ended it;
 *          those of `apply`. After an error, the batches that were applied stay.
 * Threads: the caller's.
 */
#pragma once

#include "aggregate/shard.h"
#include "config/config.h"
#include "daemon/count/pipeline.h"
#include "daemon/file/desk_backfill.h"
#include "store/backfill.h"

struct refill {
    const struct config *config;
    const struct report *report; /* counted alone */
    size_t number;               /* its index in the store */
    struct backfill_plan *plan;  /* stretches that were counted become empty */
    struct shard_limits shard;
    uint32_t shard_number;
    int64_t batch_ms;
    bool (*apply)(void *store, const struct batch *batch, struct err *e); /* until it is durable */
    void *store;
    /* Is called several times a second with `context`. False ends the reading. raw_offset: offsets done. */
    bool (*go_on)(void *context, const struct pipeline_progress *progress);
    void *context;
    struct text *said; /* receives a line for each stretch */
};

bool refill_topics(const struct refill *r, struct err *e) MUST_CHECK;
/* The offsets of partitions that are left to count. */
int64_t refill_left(const struct backfill_plan *plan);
/* The function of desk.h that backfills all topics by the daemon's configuration. *records: counted. */
bool refill_beside(const struct desk_backfill *d, struct text *said, int64_t *records,
                   struct err *e) MUST_CHECK;
