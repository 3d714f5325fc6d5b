#include "store/mongo/handle/kind.h"

#include "base/check.h"
#include "base/civil.h"

#include <stdio.h>
#include <stdlib.h>

static const struct layout {
    size_t count;
    struct mongo_kind kinds[MONGO_KINDS_MAX];
} layouts[] = {
    [LAYOUT_DAY] = {2, {{SPAN_DAY, SPAN_MINUTE, false}, {SPAN_MONTH, SPAN_DAY, false}}},
    [LAYOUT_HOUR] =
        {3, {{SPAN_HOUR, SPAN_MINUTE, false}, {SPAN_DAY, SPAN_HOUR, false}, {SPAN_MONTH, SPAN_DAY, false}}},
    [LAYOUT_MINUTE] = {4,
                       {{SPAN_MINUTE, SPAN_SECOND, false},
                        {SPAN_HOUR, SPAN_MINUTE, false},
                        {SPAN_DAY, SPAN_HOUR, false},
                        {SPAN_MONTH, SPAN_DAY, false}}},
};

/* Layouts but `minute` have no documents with seconds, which come first. */
static const struct mongo_kind next_kinds[MONGO_SKETCH_KINDS_MAX] = {{SPAN_MINUTE, SPAN_SECOND, true},
                                                                     {SPAN_HOUR, SPAN_MINUTE, true},
                                                                     {SPAN_DAY, SPAN_HOUR, true},
                                                                     {SPAN_MONTH, SPAN_DAY, true},
                                                                     {SPAN_YEAR, SPAN_MONTH, true}};
static const struct mongo_kind own_kinds[MONGO_SKETCH_KINDS_MAX] = {{SPAN_SECOND, SPAN_SECOND, true},
                                                                    {SPAN_MINUTE, SPAN_MINUTE, true},
                                                                    {SPAN_HOUR, SPAN_HOUR, true},
                                                                    {SPAN_DAY, SPAN_DAY, true},
                                                                    {SPAN_MONTH, SPAN_MONTH, true}};

static const struct mongo_kind newest_kind = {SPAN_DAY, SPAN_DAY, true};

static const struct level {
    const char *member;
    int first, count; /* lowest key and number of keys in the next longer bucket */
    int digits;       /* digits of a document's time */
} levels[SPAN_END] = {
    [SPAN_SECOND] = {"second", 0, 60, 14}, [SPAN_MINUTE] = {"minute", 0, 60, 12},
    [SPAN_HOUR] = {"hourly", 0, 24, 10},   [SPAN_DAY] = {"daily", 1, 31, 8},
    [SPAN_MONTH] = {"total", 1, 12, 6},    [SPAN_YEAR] = {NULL, 0, 0, 4},
    [SPAN_WEEK] = {"weekly", 0, 0, 8},
};

const struct mongo_kind mongo_year = {SPAN_YEAR, SPAN_MONTH, false},
                        mongo_week = {SPAN_WEEK, SPAN_DAY, false},
                        mongo_sketch_week = {SPAN_WEEK, SPAN_DAY, true};

const struct mongo_target mongo_targets[MONGO_TARGETS] = {
    [MONGO_YEARS] = {"rollup", &mongo_year, SPAN_MONTH},
    [MONGO_WEEKS] = {"weeks", &mongo_week, SPAN_WEEK},
};

int64_t mongo_span_floor(enum span span, enum weekday first, int64_t ms)
{
    return span == SPAN_WEEK ? civil_week_floor(first, ms) : span_floor(span, ms);
}

const struct mongo_kind *mongo_kinds(const struct report *r, size_t *count)
{
    const struct layout *l = &layouts[r->layout];
    if (count != NULL)
        *count = l->count;
    return l->kinds;
}

const struct mongo_kind *mongo_kind_for(const struct report *r, enum span resolution)
{
    size_t count;
    const struct mongo_kind *all = mongo_kinds(r, &count), *k = all + count - 1;
    while (k > all && k->finest > resolution)
        k--;
    ASSERT(k->finest <= resolution && resolution <= k->span);
    return k;
}

const struct mongo_kind *mongo_sketch_kinds(const struct report *r, size_t sketch, size_t *count)
{
    const struct measure *m = report_sketched(r, sketch);
    if (m->kind == MEASURE_NEWEST) {
        *count = 1;
        return &newest_kind;
    }
    const bool is_small = m->kind == MEASURE_HISTOGRAM && m->layout->schema <= HISTOGRAM_SCHEMA;
    const struct mongo_kind *all = is_small ? next_kinds : own_kinds;
    const size_t first = report_cell(r) == SPAN_SECOND ? 0 : 1;
    *count = MONGO_SKETCH_KINDS_MAX - first;
    return all + first;
}

const struct mongo_kind *mongo_sketch_kind_for(const struct report *r, size_t sketch, enum span resolution)
{
    size_t count;
    const struct mongo_kind *k = mongo_sketch_kinds(r, sketch, &count);
    ASSERT(k->finest <= resolution && (size_t)(resolution - k->finest) < count);
    return k + (resolution - k->finest);
}

uint32_t mongo_plain_measures(const struct report *r)
{
    uint32_t bits = ((uint32_t)1 << r->measure_count) - 1;
    for (size_t i = 0; i < r->sketch_count; i++)
        bits &= ~((uint32_t)1 << r->sketched[i]);
    return bits;
}

const struct mongo_kind *mongo_copy_kind(const struct report *r, enum span resolution, size_t n)
{
    size_t count;
    const struct mongo_kind *all = mongo_kinds(r, &count), *read = mongo_kind_for(r, resolution);
    for (size_t i = 0; i < count; i++) {
        const struct mongo_kind *k = &all[i];
        if (k->finest <= resolution && resolution <= k->span && (k != read || resolution == SPAN_MONTH) &&
            n-- == 0)
            return k;
    }
    return NULL;
}

enum span mongo_longest(const struct report *r, const struct mongo_kind *k)
{
    size_t count;
    const struct mongo_kind *last = mongo_kinds(r, &count) + count - 1;
    if (k->of_sketch)
        return k->finest;
    if (k == &mongo_week)
        return SPAN_DAY;
    return k == last || k == &mongo_year ? SPAN_MONTH : (enum span)(k[1].finest - 1);
}

const char *mongo_time(enum span span, int64_t ms, char buf[MONGO_TIME_BYTES])
{
    struct civil c = civil_from_ms(ms);
    snprintf(buf, MONGO_TIME_BYTES, "%04u%02u%02u%02u%02u%02u", (unsigned)c.year % 10000u,
             (unsigned)c.month % 100u, (unsigned)c.day % 100u, (unsigned)c.hour % 100u,
             (unsigned)c.minute % 100u, (unsigned)c.second % 100u);
    buf[levels[span].digits] = '\0';
    return buf;
}

bool mongo_parse_time(enum span span, const char *text, int64_t *ms)
{
    char again[MONGO_TIME_BYTES];
    struct civil c = {.month = 1, .day = 1};
    if (strlen(text) != (size_t)levels[span].digits ||
        sscanf(text, "%4d%2d%2d%2d%2d%2d", &c.year, &c.month, &c.day, &c.hour, &c.minute, &c.second) < 1 ||
        c.month < 1 || c.month > 12 || c.day < 1 || c.day > civil_month_days(c.year, c.month) ||
        c.hour > 23 || c.minute > 59)
        return false;
    *ms = civil_to_ms(&c);
    return strcmp(mongo_time(span, *ms, again), text) == 0; /* only digits */
}

const char *mongo_member(enum span span)
{
    return levels[span].member;
}

static int key_of(enum span span, const struct civil *c)
{
    const int keys[SPAN_COUNT] = {[SPAN_SECOND] = c->second,
                                  [SPAN_MINUTE] = c->minute,
                                  [SPAN_HOUR] = c->hour,
                                  [SPAN_DAY] = c->day,
                                  [SPAN_MONTH] = c->month};
    return keys[span];
}

int mongo_key_in(enum span span, int64_t ms)
{
    struct civil c = civil_from_ms(ms);
    return key_of(span, &c);
}

const char *mongo_path(const struct mongo_kind *k, enum span resolution, int64_t ms,
                       char buf[MONGO_PATH_BYTES])
{
    struct civil c = civil_from_ms(ms);
    int len = snprintf(buf, MONGO_PATH_BYTES, "%s", levels[resolution].member);
    for (int s = (int)k->span - 1; s >= (int)resolution; s--)
        len += snprintf(buf + len, MONGO_PATH_BYTES - (size_t)len, ".%d", key_of((enum span)s, &c));
    ASSERT(len < MONGO_PATH_BYTES);
    return buf;
}

size_t mongo_row_count(const struct mongo_kind *k, enum span resolution)
{
    size_t count = 1;
    for (int s = (int)resolution; s < (int)k->span; s++)
        count *= (size_t)levels[s].count;
    ASSERT(count <= MONGO_ROWS_MAX);
    return count;
}

bool mongo_row_below(enum span span, const char *key, size_t *row)
{
    long n = strtol(key, NULL, 10) - levels[span].first;
    if (n < 0 || n >= levels[span].count)
        return false;
    *row = *row * (size_t)levels[span].count + (size_t)n;
    return true;
}

int64_t mongo_row_ms(enum span resolution, int64_t document_ms, size_t row)
{
    if (resolution == SPAN_MONTH)
        return civil_month_start(civil_month_index(document_ms) + (int64_t)row);
    return row == 0 ? document_ms : document_ms + (int64_t)row * span_next(resolution, 0);
}
