#include "store/mongo/live/minutes.h"

#include "store/mongo/doc/document.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/live/groups.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

struct minutes {
    const struct store_top *what;
    char path[MEASURE_NAME_BYTES + 32]; /* "minutes.totals.hits" */
    struct scan_stats *stats;
    int64_t total;
    int64_t hours; /* that were read */
    bool is_whole;
};

/* Adds the minutes of an hour that are in the range. False: another program changed the document. */
static bool add_minutes(struct minutes *s, int64_t hour_ms, const bson_iter_t *totals)
{
    bson_iter_t at;
    if (!BSON_ITER_HOLDS_DOCUMENT(totals) || !bson_iter_recurse(totals, &at))
        return false;
    while (bson_iter_next(&at)) {
        size_t minute;
        if (!mongo_name_is_number(bson_iter_key(&at), HOUR_MS / MINUTE_MS, &minute) ||
            !BSON_ITER_HOLDS_INT64(&at) || bson_iter_int64(&at) < 0)
            return false;
        const int64_t minute_ms = hour_ms + (int64_t)minute * MINUTE_MS;
        if (minute_ms >= s->what->from_ms && minute_ms < s->what->to_ms)
            s->total = value_add(s->total, bson_iter_int64(&at));
    }
    return true;
}

static bool see_hour(void *context, const bson_t *document)
{
    struct minutes *s = context;
    const int64_t written = mongo_number_at(document, "written", 0);
    int64_t hour_ms;
    bson_iter_t totals;
    s->stats->rows++;
    s->stats->bytes += document->len;
    s->is_whole = written > 0 && mongo_number_at(document, "minutes.batches", -1) == written &&
                  mongo_date_of(document, &hour_ms);
    s->hours += s->is_whole;
    if (s->is_whole && mongo_find_member(document, s->path, &totals))
        s->is_whole = add_minutes(s, hour_ms, &totals);
    return s->is_whole;
}

static bool read_hours(struct mongo_store *m, struct minutes *s, struct err *e)
{
    const struct store_top *what = s->what;
    const int64_t first_ms = span_floor(SPAN_HOUR, what->from_ms),
                  last_ms = span_floor(SPAN_HOUR, what->to_ms - 1);
    char first[MONGO_TOP_ID_BYTES], last[MONGO_TOP_ID_BYTES], collection[MONGO_NAME_BYTES];
    mongo_top_id(SPAN_HOUR, first_ms, first);
    mongo_top_id(SPAN_HOUR, last_ms, last);
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(first), "$lte", BCON_UTF8(last), "}");
    bson_t *options =
        BCON_NEW("projection", "{", "written", BCON_BOOL(true), "metadata.date", BCON_BOOL(true),
                 "minutes.batches", BCON_BOOL(true), s->path, BCON_BOOL(true), "}");
    bool good = mongo_look(m->client, mongo_collection(m, what->report, MONGO_TOP, collection), filter,
                           options, see_hour, s, e);
    s->is_whole = s->is_whole && s->hours == (last_ms - first_ms) / HOUR_MS + 1;
    return good;
}

/* Merges the total of cached rankings. */
static bool add_ranked(struct store *st, const struct store_top *what, struct top_total *total,
                       struct scan_stats *stats, bool *found, struct err *e)
{
    const struct measure *m = &st->reports[what->report].measures[what->measure];
    struct top_total ranked;
    memset(&ranked, 0, sizeof ranked); /* all of the sketch, too */
    ranked.memory = total->memory;
    ranked.longest = total->longest;
    if (!mongo_top(st, what, NULL, NULL, &ranked, stats, found, e))
        return false;
    if (*found)
        measure_merge(m, total->columns, ranked.columns);
    if (*found && measure_has_sketch(m))
        measure_unite_sketch(m, total->longest, &total->sketch, total->memory, &ranked.sketch);
    return true;
}

bool mongo_totals(struct store *st, const struct store_top *what, struct top_total *total,
                  struct scan_stats *stats, bool *found, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const struct report *r = &m->reports[what->report];
    const struct measure *measure = &r->measures[what->measure];
    struct minutes s = {.what = what, .stats = stats, .is_whole = true};
    if (!add_ranked(st, what, total, stats, found, e))
        return false;
    if (*found || !mongo_is_stamped(&m->more[what->report]) ||
        (what->span != SPAN_MINUTE && what->span != SPAN_HOUR) || !mongo_top_is_cached(r) ||
        !mongo_live_sums(measure))
        return true;
    snprintf(s.path, sizeof s.path, "minutes.totals.%s", measure->name);
    if (!read_hours(m, &s, e))
        return false;
    *found = s.is_whole;
    if (*found)
        total->columns[0] = value_add(total->columns[0], s.total);
    return true;
}
