/* wall.h - what the C library says that clocks show: the judge of base/zone.c. Of one zone at a time, for the
 * whole process. */
#pragma once

#include <stdint.h>

void wall_hang(const char *zone);
/* Its local time as ms, and how much that is more than UTC. */
int64_t wall_local(int64_t ms);
int64_t wall_offset(int64_t ms);
/* Some zones, each with something about it; NULL at the end. */
extern const char *const wall_zones[];
const char *wall_any(int64_t roll);
