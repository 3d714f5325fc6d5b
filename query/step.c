#include "query/step.h"

#include "base/check.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define DIGITS_MAX 5 /* digits of STEP_COUNT_MAX */

const char *const step_units[] = {"second", "minute", "hour", "day", "week", "month", "year", NULL};

/* `months`: length of a unit in months; 0: it has a fixed length. Days and weeks are of the local clock. */
static const struct length {
    const char *letters;
    int64_t length_ms;
    int64_t months;
} units[STEP_UNIT_COUNT] = {
    [STEP_SECOND] = {"s", SECOND_MS, 0},  [STEP_MINUTE] = {"m", MINUTE_MS, 0},
    [STEP_HOUR] = {"h", HOUR_MS, 0},      [STEP_DAY] = {"d", DAY_MS, 0},
    [STEP_WEEK] = {"w", WEEK_MS, 0},      [STEP_MONTH] = {"mo", 2629746000, 1}, /* 365.2425 / 12 days */
    [STEP_YEAR] = {"y", 31556952000, 12},
};

static bool take_count(struct slice *text, int64_t *count)
{
    size_t before = text->len;
    return units_take_digits(text, count) && before - text->len <= DIGITS_MAX && *count > 0;
}

bool step_parse(struct slice text, struct step *step)
{
    int64_t count;
    int unit = slice_find(text, step_units);
    if (unit >= 0) {
        *step = (struct step){.unit = (enum step_unit)unit, .count = 1};
        return true;
    }
    if (text.len == 0 || !take_count(&text, &count))
        return false;
    for (int u = 0; u < STEP_UNIT_COUNT; u++) {
        if (slice_is(text, units[u].letters)) {
            *step = (struct step){.unit = (enum step_unit)u, .count = count};
            return count <= STEP_MAX_MS / units[u].length_ms;
        }
    }
    return false;
}

const char *step_name(const struct step *step, char buf[STEP_NAME_BYTES])
{
    if (step->count == 1)
        return step_units[step->unit];
    snprintf(buf, STEP_NAME_BYTES, "%" PRId64 "%s", step->count, units[step->unit].letters);
    return buf;
}

int64_t step_ms(const struct step *step)
{
    ASSERT(step->count >= 1 && step->count <= STEP_COUNT_MAX && (unsigned)step->unit < STEP_UNIT_COUNT);
    return step->count * units[step->unit].length_ms;
}

static int64_t floor_div(int64_t value, int64_t unit)
{
    int64_t rest = value % unit;
    return value / unit - (rest < 0);
}

static int64_t floor_to(int64_t value, int64_t unit)
{
    return floor_div(value, unit) * unit;
}

static bool is_of_time(const struct step *step)
{
    return step->unit <= STEP_HOUR;
}

/* Does the step count elapsed time, since a day does not have a whole number of such steps? */
static bool is_elapsed(const struct step *step)
{
    return is_of_time(step) && DAY_MS % step_ms(step) != 0;
}

static bool is_within_hour(const struct step *step)
{
    return is_of_time(step) && HOUR_MS % step_ms(step) == 0;
}

/* ---- steps of the clock: local times in, local times out */

static int64_t month_start(int64_t month)
{
    int64_t year = floor_div(month, 12);
    return civil_days((int)(1970 + year), (int)(month - year * 12) + 1, 1) * DAY_MS;
}

static int64_t months_floor(int64_t local_ms, int64_t count)
{
    struct civil c = civil_from_ms(local_ms);
    return floor_to((c.year - CIVIL_YEAR_MIN) * 12 + c.month - 1, count);
}

static int64_t local_floor(const struct step *step, int64_t local_ms)
{
    int64_t months = step->count * units[step->unit].months;
    int64_t origin_ms = step->unit == STEP_WEEK ? civil_week_floor(step->week_start, 0) : 0;
    if (months > 0)
        return month_start(months_floor(local_ms, months));
    return floor_to(local_ms - origin_ms, step_ms(step)) + origin_ms;
}

static int64_t local_next(const struct step *step, int64_t start_ms)
{
    int64_t months = step->count * units[step->unit].months;
    return months > 0 ? month_start(months_floor(start_ms, months) + months) : start_ms + step_ms(step);
}

/* ---- steps of instants */

int64_t step_floor(const struct step *step, const struct zone *z, int64_t ms)
{
    const struct zone_stretch *s = zone_stretch_at(z, ms);
    if (is_elapsed(step))
        return floor_to(ms, step_ms(step));
    int64_t local_ms = local_floor(step, ms + s->offset_ms), start_ms, next_ms;
    if (is_within_hour(step)) {
        start_ms = local_ms - s->offset_ms;
        return start_ms > s->from_ms ? start_ms : s->from_ms;
    }
    start_ms = zone_instant(z, local_ms);
    /* The clock may have been put back across a later step's start; that step has begun all the same. */
    while ((next_ms = zone_instant(z, local_ms = local_next(step, local_ms))) <= ms)
        start_ms = next_ms;
    ASSERT(start_ms <= ms);
    return start_ms;
}

int64_t step_next(const struct step *step, const struct zone *z, int64_t start_ms)
{
    const struct zone_stretch *s = zone_stretch_at(z, start_ms);
    if (is_elapsed(step))
        return start_ms + step_ms(step);
    int64_t local_ms = local_floor(step, start_ms + s->offset_ms), next_ms;
    if (is_within_hour(step)) {
        next_ms = local_ms + step_ms(step) - s->offset_ms;
        return next_ms < s->to_ms ? next_ms : s->to_ms;
    }
    do
        next_ms = zone_instant(z, local_ms = local_next(step, local_ms));
    while (next_ms <= start_ms);
    return next_ms;
}
