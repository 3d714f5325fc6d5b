/* recheck.h - are the records being counted still from the log that was counted before? The writer asks
 * before it applies a delivery, and now and then for idle partitions.
 *
 * Kafka does not tell a consumer that a topic was re-created between two fetches, or that a broker lost the
 * end of its log and was refilled: the new records just come at the next offsets. So before a delivery is
 * stored, the newest witness of each of its partitions is read again. The witness is a record that is stored
 * already. It was fetched before the delivery's records, and is read after them: if it is the same, all are
 * from one log.
 *
 *   the same      the delivery is stored
 *   not the same  as at the begin of a session (topic.h); nothing of the delivery is stored. Nor is it if the
 *                 reason cannot be found out now: the next session compares before it counts
 *   out of reach  for RECHECK_TIMEOUT_MS: the delivery is stored, with a warning, and the same witness is
 *                 asked again before the next one
 *
 * New    : a partition that has no witness yet is stored only if those of other partitions are the same.
 * Many   : with more than RECHECK_PARTITIONS_MAX partitions, the ones that were compared longest ago are
 *          asked. All are asked if a connection had trouble or polling paused. The others are asked at their
 *          turn, by the same witness.
 * Idle   : every RECHECK_IDLE_MS, partitions without new records.
 * Threads: the writer's.
 */
#pragma once

#include "daemon/topic/consume_internal.h"

#define RECHECK_PARTITIONS_MAX  64
#define RECHECK_TIMEOUT_MS      10000
#define RECHECK_STOP_TIMEOUT_MS 2000 /* while the daemon stops */
#define RECHECK_IDLE_MS         10000

/* Call before the intake's sealed delivery is applied. False: it must not be applied. */
bool recheck_delivery(struct consume *c, const struct intake *in, struct err *e) MUST_CHECK;
/* Compare some of the idle partitions, if it is time to. */
bool recheck_idle(struct consume *c, struct err *e) MUST_CHECK;
/* Note that it is stored. */
void recheck_stored(const struct intake *in);
