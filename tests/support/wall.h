/* wall.h - local time as the C library has it: the judge of base/zone.c. It knows one zone at a time, for the
 * whole process. */
#pragma once

#include <stdint.h>

void wall_hang(const char *zone);
/* The zone's local time in ms, and how many ms it is ahead of UTC. */
int64_t wall_local(int64_t ms);
int64_t wall_offset(int64_t ms);
/* Some zones, each with a peculiarity; NULL at the end. */
extern const char *const wall_zones[];
const char *wall_any(int64_t roll);
