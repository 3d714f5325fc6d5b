#include "store/mongo_marks.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEASE_MS    120000 /* longer than what is sent together may take */
#define MONTH_BYTES 32     /* "written.202611" */

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
                                  .until_ms = mongo_number_at(document, "until", 0),
                                  .last_run_ms = mongo_number_at(document, "last_run", 0)};
    if (bson_iter_init_find(&it, document, "owner") && BSON_ITER_HOLDS_UTF8(&it))
        snprintf(marks->owner, sizeof marks->owner, "%s", bson_iter_utf8(&it, NULL));
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

/* This process, as far as a person wants to know. */
static void name_owner(char buf[MONGO_OWNER_BYTES])
{
    char host[MONGO_OWNER_BYTES / 2] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(buf, MONGO_OWNER_BYTES, "%s %d", host, (int)getpid());
}

bool mongo_take_lease(struct mongo_store *m, size_t report, int64_t fence, bool *taken,
                      struct mongo_marks *marks, struct err *e)
{
    int64_t now_ms = clock_wall_ms(&clock_system);
    char owner[MONGO_OWNER_BYTES];
    bson_t after;
    name_owner(owner);
    mongo_mark_id(m, report, &m->id);
    bson_t *query = BCON_NEW("_id", BCON_UTF8(m->id.ptr), "$or", "[", "{", "until", "{", "$exists",
                             BCON_BOOL(false), "}", "}", "{", "until", "{", "$lt", BCON_DATE_TIME(now_ms),
                             "}", "}", "{", "fence", BCON_INT64(fence), "}", "]");
    bson_t *update = BCON_NEW("$inc", "{", "fence", BCON_INT64(1), "}", "$set", "{", "until",
                              BCON_DATE_TIME(now_ms + LEASE_MS), "last_run", BCON_DATE_TIME(now_ms), "owner",
                              BCON_UTF8(owner), "}");
    bool good = mongo_modify(m, MONGO_JOBS, query, update, taken, &after, e);
    take_marks(&after, marks);
    bson_destroy(&after);
    bson_destroy(update);
    bson_destroy(query);
    return good;
}

/* Of who has it by this fence. */
static bool set_held(struct mongo_store *m, size_t report, int64_t fence, const bson_t *set, bool *held,
                     struct err *e)
{
    bson_t query, update;
    mongo_mark_id(m, report, &m->id);
    bson_init(&query);
    BSON_APPEND_UTF8(&query, "_id", m->id.ptr);
    BSON_APPEND_INT64(&query, "fence", fence);
    bson_init(&update);
    BSON_APPEND_DOCUMENT(&update, "$set", set);
    bool good = mongo_update_one(m->client, MONGO_JOBS, &query, &update, false, held, e);
    bson_destroy(&update);
    bson_destroy(&query);
    return good;
}

static bool set_until(struct mongo_store *m, size_t report, int64_t fence, int64_t until_ms, bool *held,
                      struct err *e)
{
    bson_t set = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&set, "until", until_ms);
    bool good = set_held(m, report, fence, &set, held, e);
    bson_destroy(&set);
    return good;
}

bool mongo_keep_lease(struct mongo_store *m, size_t report, int64_t fence, bool *held, struct err *e)
{
    return set_until(m, report, fence, clock_wall_ms(&clock_system) + LEASE_MS, held, e);
}

bool mongo_give_lease(struct mongo_store *m, size_t report, int64_t fence, struct err *e)
{
    bool held;
    return set_until(m, report, fence, 0, &held, e);
}

bool mongo_mark_rolled(struct mongo_store *m, size_t report, int64_t fence, const struct mongo_mark *marks,
                       size_t count, bool *held, struct err *e)
{
    char path[MONTH_BYTES];
    bson_t set = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(&set, path_of("rolled", marks[i].month, path), marks[i].written);
    bool good = set_held(m, report, fence, &set, held, e);
    bson_destroy(&set);
    return good;
}
