/* flush.h - how long `run` gathers events before it commits them: the interval adapts to the speed of the
 * store.
 *
 * Rule   : the interval is twice as long as its batches take to apply, so writing takes half of the time. It
 *          stays between `min` and `max`. Each batch at most halves or doubles it. A longer interval costs
 *          less: more events share a counter.
 * Age    : an event waits for the end of its interval, then for its batch. While the store keeps up, an event
 *          is counted within twice `max`.
 * Units  : ms. If `max` is below `min`, both are `min`: the interval is fixed.
 * Threads: one, the writer's.
 */
#pragma once

#include <stdint.h>

struct flush {
    int64_t min_ms, max_ms;
    int64_t interval_ms; /* current interval */
    int64_t batches;     /* batches in an interval: one for each ingest thread */
};

void flush_init(struct flush *f, int64_t min_ms, int64_t max_ms, int64_t batches);
/* Change the limits from now on. */
void flush_limit(struct flush *f, int64_t min_ms, int64_t max_ms);
/* Note that a batch took apply_ms to apply. */
void flush_note(struct flush *f, int64_t apply_ms);
