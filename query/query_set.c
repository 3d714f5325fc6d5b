/* Reads parameters, as text from a command line or a URL, into a struct query. */
#include "base/suggest.h"
#include "base/units.h"
#include "query/query.h"
#include "query/unknown.h"

#define STEP_HELP "a number and s, m, h, d, w, mo or y: 15m, 6h, 2w"
#define TIME_HELP                                                                                       \
    "2015-05-17, 2015-05, 2015-05-17T10:05, today, yesterday, now, back from now (-15m, -1h, -7d), or " \
    "seconds since 1970"

void query_init(struct query *q, int64_t now_ms, const struct query_limits *limits)
{
    *q = (struct query){.limits = *limits,
                        .week_start = limits->week_start,
                        .now_ms = now_ms,
                        .zone = &zone_utc,
                        .from_ms = -1,
                        .to_ms = -1};
}

static bool set_report(struct query *q, struct slice value, struct err *e)
{
    (void)e;
    q->report = value;
    return true;
}

static bool set_measure(struct query *q, struct slice value, struct err *e)
{
    (void)e;
    q->measure = value;
    return true;
}

static bool set_filter(struct query *q, struct slice value, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    const char *equals = value.len > 0 ? memchr(value.ptr, '=', value.len) : NULL;
    if (equals == NULL)
        return err_set(e, EX_USAGE, "filter: found %s, expected DIMENSION=VALUE",
                       suggest_quote(value, quoted));
    if (q->filter_count == REPORT_DIMENSIONS_MAX)
        return err_set(e, EX_USAGE, "filter: more than %d of them", REPORT_DIMENSIONS_MAX);
    size_t len = (size_t)(equals - value.ptr);
    q->filters[q->filter_count++] =
        (struct query_filter){slice_of(value.ptr, len), slice_of(equals + 1, value.len - len - 1)};
    return true;
}

static bool set_where(struct query *q, struct slice value, struct err *e)
{
    if (q->where_count == QUERY_WHERE_MAX)
        return err_set(e, EX_USAGE, "where: more than %d of them", QUERY_WHERE_MAX);
    q->where[q->where_count++] = value;
    return true;
}

static bool set_time(const struct query *q, const char *name, struct slice value, int64_t *ms, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    return zone_parse(q->zone, value, q->now_ms, ms) ||
           err_set(e, EX_USAGE, "%s: found %s, expected a time: " TIME_HELP, name,
                   suggest_quote(value, quoted));
}

static bool set_from(struct query *q, struct slice value, struct err *e)
{
    q->from = value;
    return set_time(q, "from", value, &q->from_ms, e);
}

static bool set_to(struct query *q, struct slice value, struct err *e)
{
    q->to = value;
    return set_time(q, "to", value, &q->to_ms, e);
}

static bool set_zone(struct query *q, struct slice value, struct err *e)
{
    const struct zone *z = zone_find(value, e);
    if (z == NULL)
        return err_prefix(e, "tz");
    q->zone = z;
    return (q->from.ptr == NULL || set_from(q, q->from, e)) && (q->to.ptr == NULL || set_to(q, q->to, e));
}

static bool set_step(struct query *q, struct slice value, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    q->has_step = true;
    if (!step_parse(value, &q->step))
        return err_set(e, EX_USAGE,
                       "unknown step %s%s: there are second, minute, hour, day, week, month, year, and "
                       "several: " STEP_HELP,
                       suggest_quote(value, quoted), suggest_hint(value, step_units, hint));
    q->step.week_start = q->week_start;
    return true;
}

static bool set_week_start(struct query *q, struct slice value, struct err *e)
{
    int day = 0;
    while (civil_weekdays[day] != NULL && !slice_is(value, civil_weekdays[day]))
        day++;
    if (civil_weekdays[day] == NULL)
        return unknown_name(e, "day of the week", value, civil_weekdays);
    q->week_start = q->step.week_start = (enum weekday)day;
    return true;
}

/* Reads a number from 1 to 999999999; 0: it is none. */
static uint64_t count_of(struct slice value)
{
    int64_t count;
    return value.len <= 9 && units_take_digits(&value, &count) && value.len == 0 ? (uint64_t)count : 0;
}

bool query_set_limit(struct query *q, struct slice value, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    uint64_t limit = count_of(value);
    if (limit == 0)
        return err_set(e, EX_USAGE, "limit: found %s, expected a number from 1 to 999999999",
                       suggest_quote(value, quoted));
    q->top = limit < q->limits.series_max ? limit : q->limits.series_max;
    return true;
}

static bool set_top(struct query *q, struct slice value, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    q->top = count_of(value);
    if (q->top == 0 || q->top > q->limits.series_max)
        return err_set(e, EX_USAGE, "top: found %s, expected a number from 1 to %llu (query.series_max)",
                       suggest_quote(value, quoted), (unsigned long long)q->limits.series_max);
    return true;
}

static bool set_newest(struct query *q, struct slice value, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    q->newest = count_of(value);
    return (q->newest > 0 && q->newest <= RECENT_MAX) ||
           err_set(e, EX_USAGE, "newest: found %s, expected a number from 1 to %d",
                   suggest_quote(value, quoted), RECENT_MAX);
}

static bool set_format(struct query *q, struct slice value, struct err *e)
{
    static const char *const names[] = {"table", "csv", "csv-raw", "json", NULL};
    int i = slice_find(value, names);
    if (i < 0)
        return unknown_name(e, "format", value, names);
    q->format = (enum query_format)i;
    return true;
}

static bool set_bars(struct query *q, struct slice value, struct err *e)
{
    static const char *const names[] = {"no", "yes", NULL};
    q->bars = slice_is(value, "yes");
    return q->bars || slice_is(value, "no") || unknown_name(e, "bars", value, names);
}

const char *const query_parameters[] = {"report",     "measure", "filter", "where",  "from",   "to",   "step",
                                        "week_start", "tz",      "top",    "newest", "format", "bars", NULL};

bool query_set(struct query *q, struct slice name, struct slice value, struct err *e)
{
    static bool (*const setters[])(struct query *, struct slice, struct err *) = {
        set_report,     set_measure, set_filter, set_where,  set_from,   set_to,  set_step,
        set_week_start, set_zone,    set_top,    set_newest, set_format, set_bars};
    _Static_assert(COUNT_OF(setters) + 1 == COUNT_OF(query_parameters), "a setter for each name");
    int i = slice_find(name, query_parameters);
    return i >= 0 ? setters[i](q, value, e) : unknown_name(e, "parameter", name, query_parameters);
}
