/* The newest time buckets that have documents. `_id` begins with the time, so the index on `_id` finds
 * each. */
#include "store/mongo/doc/newest.h"

#include "base/civil.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

/* Preallocated documents begin at most one period after one another. The search skips at most this many of
 * their periods. */
#define SHELLS_MAX 4

struct last {
    char time[MONGO_TIME_BYTES]; /* the time in its `_id`; "": no document */
    bool has_counts;
};

static bool take_last(void *context, const bson_t *document)
{
    struct last *last = context;
    bson_t applied;
    snprintf(last->time, sizeof last->time, "%s", mongo_text_at(document, "_id"));
    last->time[strspn(last->time, "0123456789")] = '\0';
    /* A preallocated document names no writer in `applied` (mongo/writer/prealloc.c). */
    last->has_counts = !mongo_find_document(document, "applied", &applied) || !bson_empty(&applied);
    return true;
}

/* The start of the last document of a kind that begins before `end_ms`. Without `with_shells` it must have
 * counts. -1: there is none. */
static bool find_last(struct mongo_store *m, size_t report, const struct mongo_kind *k, int64_t end_ms,
                      bool with_shells, int64_t *start_ms, struct err *e)
{
    char collection[MONGO_NAME_BYTES], before[MONGO_TIME_BYTES];
    bson_t *options = BCON_NEW("projection", "{", "applied", BCON_BOOL(true), "}", "sort", "{", "_id",
                               BCON_INT32(-1), "}", "limit", BCON_INT64(1));
    struct last last = {.has_counts = false};
    bool good = true;
    mongo_collection(m, report, span_name(k->span), collection);
    *start_ms = -1;
    end_ms = end_ms > 0 ? span_next(k->span, span_floor(k->span, end_ms - 1)) : 0;
    end_ms = end_ms < CIVIL_END_MS ? end_ms : CIVIL_END_MS - 1; /* years have four digits */
    for (int i = 0; good && !last.has_counts && i < SHELLS_MAX; i++) {
        bson_t *filter = BCON_NEW("_id", "{", "$lt", BCON_UTF8(mongo_time(k->span, end_ms, before)), "}");
        last = (struct last){.has_counts = true};
        good = mongo_find(m->client, collection, filter, options, take_last, &last, e);
        last.has_counts |= with_shells;
        bson_destroy(filter);
        if (!mongo_parse_time(k->span, last.time, &end_ms)) {
            end_ms = -1;
            break;
        }
    }
    if (good && last.has_counts)
        *start_ms = end_ms;
    bson_destroy(options);
    return good;
}

bool mongo_documents_end(struct mongo_store *m, size_t report, int64_t before_ms, int64_t *end_ms,
                         struct err *e)
{
    size_t count;
    const struct mongo_kind *kinds = mongo_kinds(&m->reports[report], &count);
    *end_ms = 0;
    for (size_t k = 0; k < count && kinds[k].span < SPAN_MONTH; k++) {
        int64_t start_ms;
        if (!find_last(m, report, &kinds[k], before_ms, true, &start_ms, e))
            return false;
        if (start_ms >= 0 && span_next(kinds[k].span, start_ms) > *end_ms)
            *end_ms = span_next(kinds[k].span, start_ms);
    }
    return true;
}

bool mongo_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    size_t count;
    const struct mongo_kind *kinds = mongo_kinds(&m->reports[report], &count), *finest = NULL;
    for (size_t k = count; k-- > 0;) {
        int64_t start_ms;
        if (!find_last(m, report, &kinds[k], before_ms, false, &start_ms, e))
            return false;
        if (start_ms < newest->start_ms || start_ms < 0)
            continue; /* the report leaves the newest counts out of documents this short */
        newest->span = kinds[k].span < SPAN_HOUR ? SPAN_HOUR : kinds[k].span;
        newest->start_ms = span_floor(newest->span, start_ms);
        finest = &kinds[k];
    }
    if (finest == NULL)
        return true;
    if (!find_last(m, report, finest, newest->start_ms, false, &newest->before_ms, e))
        return false;
    if (newest->before_ms >= 0)
        newest->before_ms = span_floor(newest->span, newest->before_ms);
    return true;
}
