#include "store/mongo/job/top_again.h"

#include "base/clock.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/walk.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

/* Adds an update that raises the stamp of a ranking as a batch does, except for `applied`. */
static void add_mark(bson_t *updates, uint32_t n, enum span span, int64_t start_ms, int64_t now_ms)
{
    char id[MONGO_TOP_ID_BYTES], room[MONGO_KEY_BYTES];
    BCON_APPEND(updates, mongo_array_key(n, room), "{", "q", "{", "_id",
                BCON_UTF8(mongo_top_id(span, start_ms, id)), "metadata.date", BCON_DATE_TIME(start_ms), "}",
                "u", "{", "$inc", "{", "written", BCON_INT64(1), "}", "$set", "{", "waiting", BCON_BOOL(true),
                "modified", BCON_DATE_TIME(now_ms), "v", BCON_INT32(MONGO_SCHEMA), "}", "$setOnInsert", "{",
                "applied", "{", "}", "}", "}", "upsert", BCON_BOOL(true), "}");
}

/* A batch that makes one of the documents meanwhile has stamped it. */
static bool send_marks(struct mongo_store *m, const char *collection, const bson_t *updates, struct err *e)
{
    bson_t reply;
    bson_t *command = BCON_NEW("update", BCON_UTF8(collection), "updates", BCON_ARRAY(updates), "ordered",
                               BCON_BOOL(false));
    bool good =
        mongo_write(m->client, command, &reply, e) && mongo_check_inserts(m->client, &reply, collection, e);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

struct again {
    struct mongo_store *m;
    size_t report;
    int64_t from_ms, to_ms;
    struct watermarks gone;
};

/* Raises the stamps of the month's periods that are within the range and not expired: 776 at most. */
static bool mark_month(void *context, int64_t month_ms, struct err *e)
{
    const struct again *a = context;
    char name[MONGO_NAME_BYTES];
    const char *collection = mongo_collection(a->m, a->report, MONGO_TOP, name);
    int64_t from_ms = month_ms > a->from_ms ? month_ms : a->from_ms, end_ms = span_next(SPAN_MONTH, month_ms);
    bson_t updates = BSON_INITIALIZER;
    uint32_t count = 0;
    for (size_t s = 0; s < MONGO_TOP_SPANS; s++) {
        enum span span = mongo_top_spans[s];
        int64_t gone_ms = a->gone.before_ms[span];
        int64_t at_ms = span_floor(span, from_ms > gone_ms ? from_ms : gone_ms);
        for (; at_ms < end_ms && at_ms < a->to_ms; at_ms = span_next(span, at_ms))
            add_mark(&updates, count++, span, at_ms, clock_wall_ms(a->m->store.clock));
    }
    bool good = count == 0 || send_marks(a->m, collection, &updates, e);
    bson_destroy(&updates);
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
