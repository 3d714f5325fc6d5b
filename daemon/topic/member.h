/* member.h - an ingest thread as a member of a consumer group: several daemons, each with some of the
 * partitions.
 *
 *   given  the writer claims them in the store and finds out where each begins (topic.h); then they are
 *          fetched
 *   taken  what was polled is sealed and stored, within kafka.revoke_timeout; then they are let go
 *   lost   the group has given them to others already: what is not sealed is dropped, and the session ends
 *
 * Exact  : by the store's claims and seals alone. Whatever a member that was thought dead still tries to
 *          store of partitions that another has claimed is refused; so no deadline here is one of
 *          correctness.
 * Threads: the intake's.
 */
#pragma once

#include "daemon/topic/intake.h"

/* Carry out what the group has decided since, if anything. Pre: no run is open. False: the session is to end.
 */
bool member_turn(struct intake *in);
