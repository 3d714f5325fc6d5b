/* zone.h - time zones: converts between instants and the local times that clocks show. Queries call it.
 *
 *   instant (ms since 1970, UTC)  ── zone_offset() ──▶  local (ms since 1970 on the zone's clock)
 *                                 ◀── zone_instant() ──
 *
 * Names   : from the tz database, such as Europe/Berlin; zone_utc always exists and costs nothing.
 * Changes : a clock that is put forward skips local times; a skipped time means the instant of the change.
 *           A clock that is put back repeats local times; a repeated time means the first of two instants.
 * Range   : 1970 until `end_ms`, the end of a zone's known rules: 2038, except for UTC.
 * Source  : the system's tz database, read by GLib. The first zone other than UTC loads GLib.
 * Owner   : the process keeps every zone until it ends. The tz database limits them to some 600 of 4 KB.
 * Threads : any.
 * Errors  : EX_USAGE: no such zone; EX_OSFILE: GLib or the database is missing.
 */
#pragma once

#include "base/civil.h"
#include "base/err.h"

#define ZONE_END_MS 2145916800000 /* 2038-01-01T00:00:00Z */

/* A range of instants with one offset. */
struct zone_stretch {
    int64_t from_ms, to_ms; /* from_ms INT64_MIN: the first range; to_ms INT64_MAX: the last */
    int64_t offset_ms;      /* local time minus instant */
};

struct zone {
    const char *name;
    int64_t end_ms;
    size_t count;
    const struct zone_stretch *stretches; /* in order, without gaps */
};

extern const struct zone zone_utc;

/* NULL: there is no such zone, and *e suggests a name; or GLib or the database is missing. */
const struct zone *zone_find(struct slice name, struct err *e) MUST_CHECK;

const struct zone_stretch *zone_stretch_at(const struct zone *z, int64_t ms);
int64_t zone_offset(const struct zone *z, int64_t ms);
/* The first instant at which the zone's clock shows this local time or a later one. */
int64_t zone_instant(const struct zone *z, int64_t local_ms);

/* "2015-05-17T00:00:00+02:00", in UTC "…Z"; an offset shows its seconds only if it has some. */
#define ZONE_ISO_BYTES 32
char *zone_iso(const struct zone *z, int64_t ms, char buf[ZONE_ISO_BYTES]);
/* As civil_parse(), but times without an offset are local times of the zone. */
bool zone_parse(const struct zone *z, struct slice text, int64_t now_ms, int64_t *ms);
