/* zone.h - time zones: what the clocks of a place show, and when they are put forward or back.
 *
 *   instant (ms since 1970, UTC)  ── zone_offset() ──▶  local (the same, but as its clock shows it)
 *                                 ◀── zone_instant() ──
 *
 * Names   : those of the tz database, as Europe/Berlin; zone_utc is always there and costs nothing.
 * Changes : of the offset. Where a clock is put forward, local times are skipped: such a one is the instant
 *           of the change. Where it is put back, they come twice: such a one is the first of the two.
 * Range   : 1970 until `end_ms`: what is known of a zone's rules. After 2037 that is nothing but of UTC.
 * Source  : the system's tz database, read by GLib, which is loaded by the first zone that is not UTC.
 * Owner   : a zone stays where it is until the process ends: there are no more than the database has, some
 *           600 of 4 KB.
 * Threads : any.
 * Errors  : EX_USAGE: no such zone; EX_OSFILE: GLib or the database is missing.
 */
#pragma once

#include "base/civil.h"
#include "base/err.h"

#define ZONE_END_MS 2145916800000 /* 2038-01-01T00:00:00Z */

/* A time without a change. */
struct zone_stretch {
    int64_t from_ms, to_ms; /* INT64_MIN, INT64_MAX: the first, the last */
    int64_t offset_ms;      /* to be added to an instant */
};

struct zone {
    const char *name;
    int64_t end_ms;
    size_t count;
    const struct zone_stretch *stretches; /* in order, without gaps */
};

extern const struct zone zone_utc;

/* NULL: there is none, and *e says what may have been meant. */
const struct zone *zone_find(struct slice name, struct err *e) MUST_CHECK;

const struct zone_stretch *zone_stretch_at(const struct zone *z, int64_t ms);
int64_t zone_offset(const struct zone *z, int64_t ms);
/* The first instant at which the clock shows this or later, having shown less before. */
int64_t zone_instant(const struct zone *z, int64_t local_ms);

/* "2015-05-17T00:00:00+02:00", in UTC "…Z"; seconds of an offset only where it has some. */
#define ZONE_ISO_BYTES 32
char *zone_iso(const struct zone *z, int64_t ms, char buf[ZONE_ISO_BYTES]);
/* What civil_parse() takes; times without an offset are of the zone. */
bool zone_parse(const struct zone *z, struct slice text, int64_t now_ms, int64_t *ms);
