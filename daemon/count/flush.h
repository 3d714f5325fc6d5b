/* flush.h - how long `run` gathers before it writes, as the store can take it.
 *
 * Rule   : the interval is twice as long as the last batch took to apply, so that writing takes half of the
 *          time; but never below `min` or above `max`, and from one batch to the next no less than half of
 *          what it was and no more than double. A longer interval is less work: more events are of one
 *          counter.
 * Age    : an event waits for the end of its interval, and then for its batch: while the store keeps up it is
 *          counted within twice `max`.
 * Units  : ms. `max` below `min` means `min`: then nothing adapts.
 * Threads: one, the writer's.
 */
#pragma once

#include <stdint.h>

struct flush {
    int64_t min_ms, max_ms;
    int64_t interval_ms; /* in effect */
    int64_t batches;     /* of one interval: one per thread that gathers */
};

void flush_init(struct flush *f, int64_t min_ms, int64_t max_ms, int64_t batches);
/* Other limits from now on. */
void flush_limit(struct flush *f, int64_t min_ms, int64_t max_ms);
/* A batch was applied, and that took so long. */
void flush_note(struct flush *f, int64_t apply_ms);
