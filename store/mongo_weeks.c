#include "store/mongo_weeks.h"

#include "base/failpoint.h"
#include "store/mongo_marks.h"
#include "store/mongo_merge.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE        200 /* documents per request */
#define DATE_DIGITS 8
#define RANGE_BYTES 16

/* Some documents, by `_id`. */
struct page {
    struct text first, last;
    size_t count;
};

static bool see_id(void *context, const bson_t *document)
{
    struct page *p = context;
    bson_iter_t id;
    if (!bson_iter_init_find(&id, document, "_id") || !BSON_ITER_HOLDS_UTF8(&id))
        return true;
    struct text *to = p->count++ == 0 ? &p->first : &p->last;
    text_clear(&p->last);
    text_puts(to, bson_iter_utf8(&id, NULL));
    if (p->count == 1)
        text_puts(&p->last, p->first.ptr);
    return true;
}

/* The first `count` of them from `from` on, and before `to`. */
static bool find_page(const struct mongo_clearing *c, const char *collection, const char *from,
                      const char *to, int64_t count, struct page *p, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}",
                              MONGO_ROLL_APPLIED, "{", "$not", "{", "$gte", BCON_INT64(c->fence), "}", "}");
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(true), "}", "sort", "{", "_id",
                               BCON_INT32(1), "}", "limit", BCON_INT64(count));
    text_clear(&p->first);
    text_clear(&p->last);
    p->count = 0;
    bool good = mongo_find(c->m->client, collection, filter, options, see_id, p, e);
    bson_destroy(options);
    bson_destroy(filter);
    return good;
}

/* But none that somebody set who had the lease later: this one may have been stopped for long. */
static bool delete_page(const struct mongo_clearing *c, const char *collection, const struct page *p,
                        struct err *e)
{
    int64_t deleted;
    bson_t *command =
        BCON_NEW("delete", BCON_UTF8(collection), "deletes", "[", "{", "q", "{", "_id", "{", "$gte",
                 BCON_UTF8(p->first.ptr), "$lte", BCON_UTF8(p->last.ptr), "}", MONGO_ROLL_APPLIED, "{",
                 "$not", "{", "$gte", BCON_INT64(c->fence), "}", "}", "}", "limit", BCON_INT32(0), "}", "]");
    bool good = mongo_write_many(c->m->client, command, collection, &deleted, e);
    bson_destroy(command);
    return good;
}

/* "20101004" and all that goes on with "/". */
static bool delete_week(struct mongo_clearing *c, const char *collection, const char *date, struct err *e)
{
    struct page page = {.count = PAGE};
    char end[RANGE_BYTES + 1];
    bool good = true;
    snprintf(end, sizeof end, "%s0", date);
    while (good && page.count == PAGE) {
        good = find_page(c, collection, date, end, PAGE, &page, e) &&
               (page.count == 0 || delete_page(c, collection, &page, e)) && c->goes_on(c->context);
    }
    text_fini(&page.first);
    text_fini(&page.last);
    return good;
}

/* The first day of a week, but not on that day of the week? Other dates are none of ours. */
static bool is_other_day(const struct mongo_clearing *c, const char *date)
{
    char time[MONGO_TIME_BYTES];
    long n = strtol(date, NULL, 10);
    int year = (int)(n / 10000), month = (int)(n / 100 % 100), day = (int)(n % 100);
    if (month < 1 || month > 12 || day < 1)
        return false;
    int64_t ms = civil_days(year, month, day) * DAY_MS;
    return strcmp(mongo_time(SPAN_WEEK, ms, time), date) == 0 && civil_week_floor(c->first, ms) != ms;
}

/* Behind the week of this document, or behind one of another hand. */
static void put_next(const char *id, bool is_date, struct text *from)
{
    text_clear(from);
    text_printf(from, is_date ? "%.*s0" : "%.*s!", is_date ? DATE_DIGITS : (int)strlen(id), id);
}

static bool delete_others(struct mongo_clearing *c, struct err *e)
{
    struct page page = {.count = 0};
    struct text from = {0};
    char collection[MONGO_NAME_BYTES], date[RANGE_BYTES];
    bool good = true;
    mongo_collection(c->m, c->report, span_name(SPAN_WEEK), collection);
    text_puts(&from, "0");
    while (good && (good = find_page(c, collection, from.ptr, ":", 1, &page, e)) && page.count > 0) {
        const char *id = page.first.ptr;
        /* … and then "/", or nothing */
        bool is_date = strspn(id, "0123456789") == DATE_DIGITS && strchr("/", id[DATE_DIGITS]) != NULL;
        snprintf(date, sizeof date, "%.*s", DATE_DIGITS, id);
        if (is_date && is_other_day(c, date))
            good = delete_week(c, collection, date, e);
        put_next(id, is_date, &from);
    }
    text_fini(&page.first);
    text_fini(&page.last);
    text_fini(&from);
    return good;
}

bool mongo_clear_weeks(struct mongo_clearing *c, struct err *e)
{
    c->held = true;
    if (c->is_new && !mongo_mark_start(c->m, c->report, c->fence, c->first, &c->held, e))
        return false;
    failpoint(FAILPOINT_WEEKS_BEGUN);
    return !c->held || (delete_others(c, e) && mongo_mark_fresh(c->m, c->report, c->fence, &c->held, e));
}
