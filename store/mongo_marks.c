#include "store/mongo_marks.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define MONTH_BYTES 32 /* "written.202611" */

void mongo_mark_id(const struct mongo_store *m, size_t report, struct text *id)
{
    text_clear(id);
    text_printf(id, "rollup/%s", m->more[report].key);
}

static const char *path_of(const char *member, int64_t month, char buf[MONTH_BYTES])
{
    char time[MONGO_TIME_BYTES];
    snprintf(buf, MONTH_BYTES, "%s.%s", member, mongo_time(SPAN_MONTH, civil_month_start(month), time));
    return buf;
}

/* ---- reading */

/* Others' damage is no month. */
static bool month_of(const char *key, int64_t *month)
{
    int64_t ms;
    char date[16];
    if (strlen(key) != 6)
        return false;
    snprintf(date, sizeof date, "%.4s-%.2s-01", key, key + 4);
    if (!civil_parse(slice_text(date), 0, &ms))
        return false;
    *month = civil_month_index(ms);
    return true;
}

static int compare_marks(const void *a, const void *b)
{
    int64_t left = ((const struct mongo_mark *)a)->month, right = ((const struct mongo_mark *)b)->month;
    return (left > right) - (left < right);
}

static void take_marks(const bson_t *document, struct mongo_marks *marks)
{
    bson_iter_t it, at;
    *marks = (struct mongo_marks){.has_begun = bson_has_field(document, "since"),
                                  .fence = mongo_number_at(document, "fence", 0),
                                  .until_ms = mongo_lease_until(document),
                                  .last_run_ms = mongo_lease_last_run(document)};
    mongo_lease_owner(document, marks->owner);
    if (!bson_iter_init_find(&it, document, "written") || !BSON_ITER_HOLDS_DOCUMENT(&it) ||
        !bson_iter_recurse(&it, &at))
        return;
    while (bson_iter_next(&at)) {
        char path[MONTH_BYTES];
        struct mongo_mark mark = {.written = bson_iter_as_int64(&at)};
        if (!month_of(bson_iter_key(&at), &mark.month))
            continue;
        mark.rolled = mongo_number_at(document, path_of("rolled", mark.month, path), 0);
        marks->list = xgrow(marks->list, &marks->capacity, marks->count + 1, sizeof *marks->list);
        marks->list[marks->count++] = mark;
    }
    if (marks->count > 0)
        qsort(marks->list, marks->count, sizeof *marks->list, compare_marks);
}

bool mongo_read_marks(struct mongo_store *m, size_t report, struct mongo_marks *marks, struct err *e)
{
    bson_t document;
    int64_t now_ms = clock_mono_ms(&clock_system);
    mongo_mark_id(m, report, &m->id);
    bool good = mongo_read_document(m, MONGO_JOBS, m->id.ptr, &document, e);
    take_marks(&document, marks);
    marks->read_ms = now_ms;
    bson_destroy(&document);
    return good;
}

bool mongo_is_rolled(const struct mongo_marks *marks, int64_t month)
{
    const struct mongo_mark wanted = {.month = month};
    const struct mongo_mark *found =
        marks->count > 0 ? bsearch(&wanted, marks->list, marks->count, sizeof *marks->list, compare_marks)
                         : NULL;
    return marks->has_begun && found != NULL && found->written == found->rolled;
}

/* ---- marking */

void mongo_mark_months(bson_t *inc, const int64_t *months, size_t count)
{
    char path[MONTH_BYTES];
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(inc, path_of("written", months[i], path), 1);
}

/* The first month with a document, or the last; -1: none. */
static bool find_end(struct mongo_store *m, size_t report, int direction, int64_t *month, struct err *e)
{
    char collection[MONGO_NAME_BYTES];
    int64_t date_ms;
    mongo_collection(m, report, span_name(SPAN_MONTH), collection);
    bool good = mongo_find_end(m, collection, SPAN_MONTH, direction, 0, -1, &date_ms, e);
    *month = good && date_ms >= 0 ? civil_month_index(date_ms) : -1;
    return good;
}

/* $inc of `months`, and what else is set. */
static bool mark(struct mongo_store *m, size_t report, bson_t *filter, const int64_t *months, size_t count,
                 const char *date, bool upsert, struct err *e)
{
    bson_t update, inc, set;
    bool matched;
    mongo_mark_id(m, report, &m->id);
    BSON_APPEND_UTF8(filter, "_id", m->id.ptr);
    bson_init(&update);
    if (count > 0) {
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &inc);
        mongo_mark_months(&inc, months, count);
        bson_append_document_end(&update, &inc);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    int64_t now_ms = clock_wall_ms(&clock_system);
    BSON_APPEND_DATE_TIME(&set, date, now_ms);
    if (upsert) /* above all before it, which the years' documents may still be guarded by */
        BSON_APPEND_INT64(&set, "fence", now_ms);
    bson_append_document_end(&update, &set);
    bool good = mongo_update_one(m->client, MONGO_JOBS, filter, &update, upsert, &matched, e);
    bson_destroy(&update);
    return good;
}

/* Mark all months with documents of [from_ms, to_ms). */
static bool mark_found(struct mongo_store *m, size_t report, bson_t *filter, int64_t from_ms, int64_t to_ms,
                       const char *date, bool upsert, struct err *e)
{
    int64_t first, last, from = civil_month_index(from_ms), to = civil_month_index(to_ms - 1);
    if (!find_end(m, report, 1, &first, e) || !find_end(m, report, -1, &last, e))
        return false;
    first = first > from ? first : first < 0 ? 0 : from;
    last = last < to ? last : to;
    size_t count = last < first ? 0 : (size_t)(last - first + 1);
    int64_t *months = xcalloc(count + 1, sizeof *months);
    for (size_t i = 0; i < count; i++)
        months[i] = first + (int64_t)i;
    bool good = mark(m, report, filter, months, count, date, upsert, e);
    free(months);
    return good;
}

bool mongo_begin_marks(struct mongo_store *m, size_t report, struct err *e)
{
    bson_t filter, none;
    bson_init(&filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "since", &none);
    BSON_APPEND_BOOL(&none, "$exists", false);
    bson_append_document_end(&filter, &none);
    bool good = mark_found(m, report, &filter, 0, CIVIL_END_MS, "since", true, e);
    bson_destroy(&filter);
    return good;
}

bool mongo_mark_again(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms, struct err *e)
{
    bson_t filter = BSON_INITIALIZER;
    bool good = mark_found(m, report, &filter, from_ms, to_ms, "rebuilt", false, e);
    bson_destroy(&filter);
    return good;
}

/* ---- the lease */

bool mongo_take_lease(struct mongo_store *m, size_t report, int64_t fence, bool *taken,
                      struct mongo_marks *marks, struct err *e)
{
    bson_t after;
    mongo_mark_id(m, report, &m->id);
    bool good = mongo_lease_take(m, m->id.ptr, fence, taken, &after, e);
    take_marks(&after, marks);
    bson_destroy(&after);
    return good;
}

bool mongo_keep_lease(struct mongo_store *m, size_t report, int64_t fence, bool *held, struct err *e)
{
    mongo_mark_id(m, report, &m->id);
    return mongo_lease_keep(m, m->id.ptr, fence, held, e);
}

bool mongo_give_lease(struct mongo_store *m, size_t report, int64_t fence, struct err *e)
{
    mongo_mark_id(m, report, &m->id);
    return mongo_lease_give(m, m->id.ptr, fence, e);
}

bool mongo_mark_rolled(struct mongo_store *m, size_t report, int64_t fence, const struct mongo_mark *marks,
                       size_t count, bool *held, struct err *e)
{
    char path[MONTH_BYTES];
    bson_t set = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(&set, path_of("rolled", marks[i].month, path), marks[i].written);
    mongo_mark_id(m, report, &m->id);
    bool good = mongo_lease_set(m, m->id.ptr, fence, &set, held, e);
    bson_destroy(&set);
    return good;
}
