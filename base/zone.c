#include "base/zone.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static const struct zone_stretch always = {INT64_MIN, INT64_MAX, 0};
const struct zone zone_utc = {"UTC", CIVIL_END_MS, 1, &always};

const struct zone_stretch *zone_stretch_at(const struct zone *z, int64_t ms)
{
    size_t first = 0, end = z->count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (z->stretches[middle].from_ms <= ms)
            first = middle;
        else
            end = middle;
    }
    return &z->stretches[first];
}

int64_t zone_offset(const struct zone *z, int64_t ms)
{
    return zone_stretch_at(z, ms)->offset_ms;
}

int64_t zone_instant(const struct zone *z, int64_t local_ms)
{
    /* Offsets are shorter than a day, so all local times of a range that ended a day before are earlier. */
    const struct zone_stretch *s = zone_stretch_at(z, local_ms - DAY_MS);
    while (s->to_ms != INT64_MAX && local_ms - s->offset_ms >= s->to_ms)
        s++;
    int64_t ms = local_ms - s->offset_ms;
    return ms > s->from_ms ? ms : s->from_ms;
}

char *zone_iso(const struct zone *z, int64_t ms, char buf[ZONE_ISO_BYTES])
{
    int64_t offset_ms = zone_offset(z, ms);
    unsigned off = (unsigned)(llabs(offset_ms) / SECOND_MS) % 86400u;
    civil_iso(ms + offset_ms, buf);
    if (z == &zone_utc)
        return buf;
    char *end = buf + CIVIL_ISO_BYTES - 2; /* overwrites the Z */
    int len = snprintf(end, 7, "%c%02u:%02u", offset_ms < 0 ? '-' : '+', off / 3600, off / 60 % 60);
    if (off % 60 != 0)
        snprintf(end + len, 4, ":%02u", off % 60);
    return buf;
}

bool zone_parse(const struct zone *z, struct slice text, int64_t now_ms, int64_t *ms)
{
    bool is_local;
    int64_t read_ms;
    if (!civil_parse_local(text, now_ms, zone_offset(z, now_ms), &read_ms, &is_local))
        return false;
    *ms = is_local ? zone_instant(z, read_ms) : read_ms;
    if (*ms < 0) /* east of UTC, the local 1970 began before the epoch */
        *ms = 0;
    return *ms <= CIVIL_END_MS;
}
