#include "store/mongo/doc/walk.h"

#include "base/civil.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/wire/command.h"

static bool see_date(void *context, const bson_t *document)
{
    (void)mongo_date_of(document, context);
    return false;
}

/* The first document of months in the range; -1: there is none. Documents of others have another `_id` or no
 * date. */
static bool first_between(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                          int64_t *date_ms, struct err *e)
{
    char collection[MONGO_NAME_BYTES], from[MONGO_TIME_BYTES], to[MONGO_TIME_BYTES];
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "limit", BCON_INT64(1), "projection",
                               "{", "metadata", BCON_BOOL(true), "}");
    const char *end = to_ms < CIVIL_END_MS ? mongo_time(SPAN_MONTH, to_ms, to) : ":";
    bson_t *filter =
        BCON_NEW("_id", "{", "$gte", BCON_UTF8(mongo_time(SPAN_MONTH, from_ms, from)), "$lt", BCON_UTF8(end),
                 "}", "metadata.date", "{", "$gte", BCON_DATE_TIME(from_ms), "$lte",
                 BCON_DATE_TIME(to_ms - 1), "}"); /* some servers do not support the year 10000 */
    *date_ms = -1;
    mongo_collection(m, report, span_name(SPAN_MONTH), collection);
    return mongo_look(m->client, collection, filter, options, see_date, date_ms, e);
}

/* Looks at the next month first, which mostly has documents: some servers read a whole range before they
 * sort and limit it. */
static bool first_month(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                        int64_t *date_ms, struct err *e)
{
    int64_t next_ms = span_next(SPAN_MONTH, from_ms);
    return first_between(m, report, from_ms, next_ms, date_ms, e) &&
           (*date_ms >= 0 || next_ms >= to_ms || first_between(m, report, next_ms, to_ms, date_ms, e));
}

bool mongo_each_month(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                      mongo_month_fn *fn, void *context, struct err *e)
{
    int64_t end_ms = to_ms < CIVIL_END_MS ? span_next(SPAN_MONTH, to_ms - 1) : CIVIL_END_MS;
    bool good = true;
    for (int64_t at_ms = span_floor(SPAN_MONTH, from_ms), found_ms; good && at_ms < end_ms;) {
        good = first_month(m, report, at_ms, end_ms, &found_ms, e);
        at_ms = good && found_ms >= 0 ? span_next(SPAN_MONTH, found_ms) : end_ms;
        if (good && found_ms >= 0)
            good = fn(context, span_floor(SPAN_MONTH, found_ms), e);
    }
    return good;
}
