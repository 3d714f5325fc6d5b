/* recheck.h - is what is being counted still of the logs that were counted before?
 *
 * Nothing tells a consumer that a topic was created anew between two fetches, or that a broker lost the end
 * of its log and was refilled: the new records just come at the offsets that are next. So before a delivery
 * is stored, the newest witness of each of its partitions is read again: a record that is stored already. It
 * was fetched before the delivery's records and is read after them: if it is the same, they are of one log.
 *
 *   the same      the delivery is stored
 *   not the same  as at the begin of a session (topic.h); nothing of the delivery is stored. Nor is it where
 *                 the reason cannot be found out by now: the next session compares before it counts
 *   out of reach  for RECHECK_TIMEOUT_MS: the delivery is stored, with a warning, and the same witness is
 *                 asked again before the next one
 *
 * Many   : of more than RECHECK_PARTITIONS_MAX partitions, those whose turn it is; all where a connection
 *          had trouble or nobody polled for a while. The others are asked at their turn, by the same witness.
 * Idle   : every RECHECK_IDLE_MS, partitions of which nothing came.
 * Threads: the writer's.
 */
#pragma once

#include "daemon/topic/consume_internal.h"

#define RECHECK_PARTITIONS_MAX  64
#define RECHECK_TIMEOUT_MS      10000
#define RECHECK_STOP_TIMEOUT_MS 2000 /* when the daemon is to end */
#define RECHECK_IDLE_MS         10000

/* Before the delivery is applied. False: it must not be. */
bool recheck_delivery(struct consume *c, const struct intake *in, const struct delivery *d,
                      struct err *e) MUST_CHECK;
/* Some of the partitions of which nothing came, if it is time. */
bool recheck_idle(struct consume *c, struct err *e) MUST_CHECK;
/* The delivery is stored. */
void recheck_stored(const struct delivery *d);
