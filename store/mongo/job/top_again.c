#include "store/mongo/job/top_again.h"

#include "base/clock.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/walk.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/wire/command.h"

/* Raises the stamp of a ranking as a batch does, except for `applied`. */
static bool mark_again(struct mongo_store *m, const char *collection, enum span span, int64_t start_ms,
                       struct err *e)
{
    char id[MONGO_TOP_ID_BYTES];
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(mongo_top_id(span, start_ms, id)), "metadata.date",
                              BCON_DATE_TIME(start_ms));
    bson_t *update = BCON_NEW("$inc", "{", "written", BCON_INT64(1), "}", "$set", "{", "waiting",
                              BCON_BOOL(true), "modified", BCON_DATE_TIME(clock_wall_ms(m->store.clock)), "v",
                              BCON_INT32(MONGO_SCHEMA), "}", "$setOnInsert", "{", "applied", "{", "}", "}");
    return mongo_change(m->client, collection, filter, update, true, NULL, e);
}

struct again {
    struct mongo_store *m;
    size_t report;
    int64_t from_ms, to_ms;
    struct watermarks gone;
};

/* Raises the stamps of the month's periods that are within the range and not expired. */
static bool mark_month(void *context, int64_t month_ms, struct err *e)
{
    const struct again *a = context;
    char name[MONGO_NAME_BYTES];
    const char *collection = mongo_collection(a->m, a->report, MONGO_TOP, name);
    int64_t from_ms = month_ms > a->from_ms ? month_ms : a->from_ms, end_ms = span_next(SPAN_MONTH, month_ms);
    bool good = true;
    for (size_t s = 0; good && s < MONGO_TOP_SPANS; s++) {
        enum span span = mongo_top_spans[s];
        int64_t gone_ms = a->gone.before_ms[span];
        int64_t at_ms = span_floor(span, from_ms > gone_ms ? from_ms : gone_ms);
        for (; good && at_ms < end_ms && at_ms < a->to_ms; at_ms = span_next(span, at_ms))
            good = mark_again(a->m, collection, span, at_ms, e);
    }
    return good;
}

/* Raises the stamps of existing rankings: all documents that a ranking was made of may have been deleted. */
static bool mark_kept(const struct again *a, enum span span, struct err *e)
{
    char name[MONGO_NAME_BYTES], from[MONGO_TOP_ID_BYTES], to[MONGO_TOP_ID_BYTES];
    const char *collection = mongo_collection(a->m, a->report, MONGO_TOP, name);
    int64_t gone_ms = a->gone.before_ms[span];
    mongo_top_id(span, a->from_ms > gone_ms ? a->from_ms : gone_ms, from);
    mongo_top_id(span, a->to_ms - 1, to);
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lte", BCON_UTF8(to), "}", "ranked", "{",
                              "$exists", BCON_BOOL(true), "}");
    bson_t *update =
        BCON_NEW("$inc", "{", "written", BCON_INT64(1), "}", "$set", "{", "waiting", BCON_BOOL(true), "}");
    return mongo_change_all(a->m->client, collection, filter, update, NULL, e);
}

/* Only periods with documents or rankings are ranked again. */
bool mongo_top_again(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms, struct err *e)
{
    int64_t end_ms = clock_wall_ms(m->store.clock) + 1;
    struct again a = {.m = m, .report = report, .from_ms = from_ms, .to_ms = to_ms < end_ms ? to_ms : end_ms};
    bool good = mongo_watermarks(&m->store, report, &a.gone, e);
    for (size_t s = 0; good && s < MONGO_TOP_SPANS; s++)
        good = mark_kept(&a, mongo_top_spans[s], e);
    return good && mongo_each_month(m, report, from_ms, a.to_ms, mark_month, &a, e);
}
