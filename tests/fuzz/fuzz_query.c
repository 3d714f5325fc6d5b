#include "base/check.h"
#include "query/query.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define NOW_MS 1431857103250 /* 2015-05-17T10:05:03.250Z */

static void check_step(const struct query *q)
{
    char name[STEP_NAME_BYTES];
    struct step again;
    ASSERT(step_parse(slice_text(step_name(&q->step, name)), &again));
    ASSERT(again.unit == q->step.unit && again.count == q->step.count);
    int64_t start_ms = step_floor(&q->step, q->zone, NOW_MS),
            next_ms = step_next(&q->step, q->zone, start_ms);
    ASSERT(start_ms <= NOW_MS && NOW_MS < next_ms);
    ASSERT(step_floor(&q->step, q->zone, next_ms) == next_ms);
}

static void check_time(const struct query *q, int64_t ms)
{
    char iso[ZONE_ISO_BYTES];
    int64_t again_ms;
    ASSERT(ms >= -1 && ms <= CIVIL_END_MS);
    if (ms < 0 || ms > ZONE_END_MS)
        return;
    ASSERT(zone_parse(&zone_utc, slice_text(zone_iso(q->zone, ms, iso)), NOW_MS, &again_ms) || ms < DAY_MS);
}

/* Parameters, "name=value" by lines: what is taken is in range and prints as what it is; what is not says
 * why. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct query_limits limits = {
        .rows_max = 1000, .points_max = 1000, .series_max = 1000, .bytes_max = 1000};
    struct query q;
    query_init(&q, NOW_MS, &limits);
    const char *at = (const char *)data, *end = at + size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *line_end = stop != NULL ? stop : end;
        const char *equals = memchr(at, '=', (size_t)(line_end - at));
        const char *name_end = equals != NULL ? equals : line_end,
                   *value = equals != NULL ? equals + 1 : line_end;
        struct err e = {0};
        bool good = query_set(&q, slice_of(at, (size_t)(name_end - at)),
                              slice_of(value, (size_t)(line_end - value)), &e);
        ASSERT(good == (e.text[0] == '\0'));
        ASSERT(good || e.code == EX_USAGE);
        if (!good)
            return 0;
        at = stop != NULL ? stop + 1 : end;
    }
    check_time(&q, q.from_ms);
    check_time(&q, q.to_ms);
    ASSERT(q.top <= limits.series_max && q.filter_count <= REPORT_DIMENSIONS_MAX);
    if (q.has_step)
        check_step(&q);
    return 0;
}
