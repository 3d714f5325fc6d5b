/* member.h - an ingest thread as a member of a consumer group: several daemons share the partitions.
 *
 *   given  the writer claims them in the store and finds out where each begins (topic.h); then they are
 *          fetched
 *   taken  what was polled is sealed and stored, within kafka.revoke_timeout; then they are released
 *   lost   the group has given them to others already: unsealed records are dropped, and the session ends
 *
 * Exact  : only the store's claims and commits make it exact. A member that was thought dead may still try to
 *          store records of partitions that another has claimed: the store refuses them. So no deadline here
 *          affects correctness.
 * Threads: the intake's.
 */
#pragma once

#include "daemon/topic/intake.h"

/* Carry out the group's last decision, if any. Pre: no run is open. False: the session must end. */
bool member_turn(struct intake *in);
