#include "store/mongo/job/stamping.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/doc/walk.h"
#include "store/mongo/wire/command.h"

#include <stdlib.h>

/* Stamps for many periods. */
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
    int64_t now_ms = clock_wall_ms(g->m->store.clock);
    BSON_APPEND_DATE_TIME(set, g->begins ? "since" : "rebuilt", now_ms);
    if (g->begins) /* above all earlier fences, which may still guard documents */
        BSON_APPEND_INT64(set, "fence", now_ms);
    if (g->begins && g->t->stamped == SPAN_WEEK) {
        BSON_APPEND_UTF8(set, "start", civil_weekdays[g->first]);
        BSON_APPEND_BOOL(set, "stale", true);
    }
}

/* Writes the $inc of the periods, and the other members. Destroys the filter. */
static bool stamp(const struct stamping *g, bson_t *filter, const int64_t *starts, size_t count,
                  struct err *e)
{
    bson_t update, inc, set;
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
    return mongo_change(g->m->client, MONGO_JOBS, filter, &update, g->begins, NULL, e);
}

/* Adds the periods that touch the month and [from_ms, to_ms). */
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

/* Stamps all periods of the range that touch a month with documents. */
static bool stamp_found(struct stamping *g, bson_t *filter, struct err *e)
{
    bool good = mongo_each_month(g->m, g->report, g->from_ms, g->to_ms, add_periods, g, e);
    if (good)
        good = stamp(g, filter, g->found.starts, g->found.count, e);
    else
        bson_destroy(filter);
    free(g->found.starts);
    return good;
}

bool mongo_begin_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                        enum weekday first, struct err *e)
{
    struct stamping g = {m, t, report, first, true, .to_ms = CIVIL_END_MS};
    return stamp_found(&g, BCON_NEW("since", "{", "$exists", BCON_BOOL(false), "}"), e);
}

bool mongo_stamp_again(struct mongo_store *m, const struct mongo_target *t, size_t report, enum weekday first,
                       int64_t from_ms, int64_t to_ms, struct err *e)
{
    struct stamping g = {m, t, report, first, false, from_ms, to_ms, {.count = 0}};
    return stamp_found(&g, bson_new(), e);
}
