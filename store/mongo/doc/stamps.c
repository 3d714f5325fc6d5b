#include "store/mongo/doc/stamps.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 32 /* "written.20261102" */

void mongo_stamp_id(const struct mongo_store *m, const struct mongo_target *t, size_t report, struct text *id)
{
    text_clear(id);
    text_printf(id, "%s/%s", t->job, m->more[report].key);
}

static const char *path_of(const char *member, const struct mongo_target *t, int64_t start_ms,
                           char buf[PATH_BYTES])
{
    char time[MONGO_TIME_BYTES];
    snprintf(buf, PATH_BYTES, "%s.%s", member, mongo_time(t->stamped, start_ms, time));
    return buf;
}

/* ---- reading */

static int compare_stamps(const void *a, const void *b)
{
    int64_t left = ((const struct mongo_stamp *)a)->start_ms,
            right = ((const struct mongo_stamp *)b)->start_ms;
    return (left > right) - (left < right);
}

static void take_stamps(const struct mongo_target *t, const bson_t *document, struct mongo_stamps *stamps)
{
    bson_iter_t it, at;
    *stamps = (struct mongo_stamps){.has_begun = bson_has_field(document, "since"),
                                    .fence = mongo_number_at(document, "fence", 0),
                                    .until_ms = mongo_lease_until(document),
                                    .last_run_ms = mongo_lease_last_run(document)};
    mongo_lease_owner(document, stamps->owner);
    stamps->is_stale = bson_iter_init_find(&it, document, "stale") && bson_iter_as_bool(&it);
    if (bson_iter_init_find(&it, document, "start") && BSON_ITER_HOLDS_UTF8(&it))
        snprintf(stamps->start, sizeof stamps->start, "%s", bson_iter_utf8(&it, NULL));
    if (!bson_iter_init_find(&it, document, "written") || !BSON_ITER_HOLDS_DOCUMENT(&it) ||
        !bson_iter_recurse(&it, &at))
        return;
    while (bson_iter_next(&at)) {
        char path[PATH_BYTES];
        struct mongo_stamp stamp = {.written = bson_iter_as_int64(&at)};
        if (!mongo_parse_time(t->stamped, bson_iter_key(&at), &stamp.start_ms))
            continue; /* others' damage */
        stamp.rolled = mongo_number_at(document, path_of("rolled", t, stamp.start_ms, path), 0);
        stamps->list = xgrow(stamps->list, &stamps->capacity, stamps->count + 1, sizeof *stamps->list);
        stamps->list[stamps->count++] = stamp;
    }
    if (stamps->count > 0)
        qsort(stamps->list, stamps->count, sizeof *stamps->list, compare_stamps);
}

bool mongo_read_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                       struct mongo_stamps *stamps, struct err *e)
{
    bson_t document;
    int64_t now_ms = clock_mono_ms(&clock_system);
    mongo_stamp_id(m, t, report, &m->id);
    bool good = mongo_read_document(m, MONGO_JOBS, m->id.ptr, &document, e);
    take_stamps(t, &document, stamps);
    stamps->read_ms = now_ms;
    bson_destroy(&document);
    return good;
}

bool mongo_is_rolled(const struct mongo_stamps *stamps, int64_t start_ms)
{
    const struct mongo_stamp wanted = {.start_ms = start_ms};
    const struct mongo_stamp *found = stamps->count > 0 ? bsearch(&wanted, stamps->list, stamps->count,
                                                                  sizeof *stamps->list, compare_stamps)
                                                        : NULL;
    return stamps->has_begun && found != NULL && found->written == found->rolled;
}

/* ---- stamping */

void mongo_stamp_periods(bson_t *inc, const struct mongo_target *t, const int64_t *starts, size_t count)
{
    char path[PATH_BYTES];
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(inc, path_of("written", t, starts[i], path), 1);
}

static bool see_one(void *context, const bson_t *document)
{
    (void)document;
    *(bool *)context = true;
    return false;
}

bool mongo_find_weeks(struct mongo_store *m, bool *are_there, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8("weeks/"), "$lt", BCON_UTF8("weeks0"), "}");
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(true), "}", "limit", BCON_INT64(1));
    *are_there = false;
    bool good = mongo_find(m->client, MONGO_JOBS, filter, options, see_one, are_there, e);
    bson_destroy(options);
    bson_destroy(filter);
    return good;
}

/* Stamping many. */
struct stamping {
    struct mongo_store *m;
    const struct mongo_target *t;
    size_t report;
    enum weekday first;
    bool begins;
    int64_t from_ms, to_ms;
    struct mongo_written found;
};

static void add_set(const struct stamping *g, bson_t *set)
{
    int64_t now_ms = clock_wall_ms(&clock_system);
    BSON_APPEND_DATE_TIME(set, g->begins ? "since" : "rebuilt", now_ms);
    if (g->begins) /* above all before it, which documents may still be guarded by */
        BSON_APPEND_INT64(set, "fence", now_ms);
    if (g->begins && g->t->stamped == SPAN_WEEK) {
        BSON_APPEND_UTF8(set, "start", civil_weekdays[g->first]);
        BSON_APPEND_BOOL(set, "stale", true);
    }
}

/* $inc of the periods, and what else is set. */
static bool stamp(const struct stamping *g, bson_t *filter, const int64_t *starts, size_t count,
                  struct err *e)
{
    bson_t update, inc, set;
    bool matched;
    mongo_stamp_id(g->m, g->t, g->report, &g->m->id);
    BSON_APPEND_UTF8(filter, "_id", g->m->id.ptr);
    bson_init(&update);
    if (count > 0) {
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &inc);
        mongo_stamp_periods(&inc, g->t, starts, count);
        bson_append_document_end(&update, &inc);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    add_set(g, &set);
    bson_append_document_end(&update, &set);
    bool good = mongo_update_one(g->m->client, MONGO_JOBS, filter, &update, g->begins, &matched, e);
    bson_destroy(&update);
    return good;
}

/* Those that touch a month, and [from_ms, to_ms). */
static bool add_periods(void *context, int64_t month_ms, struct err *e)
{
    struct stamping *g = context;
    struct mongo_written *found = &g->found;
    int64_t end_ms = span_next(SPAN_MONTH, month_ms);
    int64_t at_ms = mongo_span_floor(g->t->stamped, g->first, month_ms > g->from_ms ? month_ms : g->from_ms);
    (void)e;
    for (; at_ms < end_ms && at_ms < g->to_ms; at_ms = span_next(g->t->stamped, at_ms)) {
        if (found->count > 0 && found->starts[found->count - 1] >= at_ms)
            continue;
        found->starts = xgrow(found->starts, &found->capacity, found->count + 1, sizeof *found->starts);
        found->starts[found->count++] = at_ms;
    }
    return true;
}

/* Stamp all periods of the range that touch a month with documents. */
static bool stamp_found(struct stamping *g, bson_t *filter, struct err *e)
{
    bool good = mongo_each_month(g->m, g->report, g->from_ms, g->to_ms, add_periods, g, e) &&
                stamp(g, filter, g->found.starts, g->found.count, e);
    free(g->found.starts);
    return good;
}

bool mongo_begin_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                        enum weekday first, struct err *e)
{
    struct stamping g = {m, t, report, first, true, .to_ms = CIVIL_END_MS};
    bson_t filter, none;
    bson_init(&filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "since", &none);
    BSON_APPEND_BOOL(&none, "$exists", false);
    bson_append_document_end(&filter, &none);
    bool good = stamp_found(&g, &filter, e);
    bson_destroy(&filter);
    return good;
}

bool mongo_stamp_again(struct mongo_store *m, const struct mongo_target *t, size_t report, enum weekday first,
                       int64_t from_ms, int64_t to_ms, struct err *e)
{
    struct stamping g = {m, t, report, first, false, from_ms, to_ms, {.count = 0}};
    bson_t filter = BSON_INITIALIZER;
    bool good = stamp_found(&g, &filter, e);
    bson_destroy(&filter);
    return good;
}

/* ---- the lease */

bool mongo_take_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *taken, struct mongo_stamps *stamps, struct err *e)
{
    bson_t after;
    mongo_stamp_id(m, t, report, &m->id);
    bool good = mongo_lease_take(m, m->id.ptr, fence, taken, &after, e);
    take_stamps(t, &after, stamps);
    bson_destroy(&after);
    return good;
}

bool mongo_keep_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *held, struct err *e)
{
    mongo_stamp_id(m, t, report, &m->id);
    return mongo_lease_keep(m, m->id.ptr, fence, held, e);
}

bool mongo_give_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      struct err *e)
{
    mongo_stamp_id(m, t, report, &m->id);
    return mongo_lease_give(m, m->id.ptr, fence, e);
}

bool mongo_stamp_rolled(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                        const struct mongo_stamp *stamps, size_t count, bool *held, struct err *e)
{
    char path[PATH_BYTES];
    bson_t set = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(&set, path_of("rolled", t, stamps[i].start_ms, path), stamps[i].written);
    mongo_stamp_id(m, t, report, &m->id);
    bool good = mongo_lease_set(m, m->id.ptr, fence, &set, held, e);
    bson_destroy(&set);
    return good;
}

static bool set_weeks(struct mongo_store *m, size_t report, int64_t fence, const bson_t *set, bool *held,
                      struct err *e)
{
    mongo_stamp_id(m, &mongo_targets[MONGO_WEEKS], report, &m->id);
    return mongo_lease_set(m, m->id.ptr, fence, set, held, e);
}

bool mongo_stamp_start(struct mongo_store *m, size_t report, int64_t fence, enum weekday first, bool *held,
                       struct err *e)
{
    bson_t *set =
        BCON_NEW("start", BCON_UTF8(civil_weekdays[first]), "stale", BCON_BOOL(true), "rolled", "{", "}");
    bool good = set_weeks(m, report, fence, set, held, e);
    bson_destroy(set);
    return good;
}

bool mongo_stamp_fresh(struct mongo_store *m, size_t report, int64_t fence, bool *held, struct err *e)
{
    bson_t *set = BCON_NEW("stale", BCON_BOOL(false));
    bool good = set_weeks(m, report, fence, set, held, e);
    bson_destroy(set);
    return good;
}
