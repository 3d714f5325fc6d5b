#include "store/mongo/job/weeks.h"

#include "base/civil.h"
#include "base/failpoint.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/job/merge.h"
#include "store/mongo/job/stamping.h"
#include "store/mongo/wire/page.h"

#include <stdio.h>

#define PAGE        200 /* documents per request */
#define DATE_DIGITS 8
#define RANGE_BYTES 16

/* Deletes the documents whose `_id` is the date, or continues with "/": "20101004/%2Fa". */
static bool delete_week(struct mongo_clearing *c, const char *collection, const char *date,
                        const bson_t *guard, struct err *e)
{
    struct mongo_page page = {.count = PAGE};
    char end[RANGE_BYTES + 1];
    int64_t deleted;
    bool good = true;
    snprintf(end, sizeof end, "%s0", date);
    const struct mongo_range range = {collection, date, end, false, guard};
    while (good && page.count == PAGE) {
        good = mongo_page_find(c->m->client, &range, PAGE, &page, e) &&
               (page.count == 0 || mongo_page_delete(c->m->client, &range, &page, &deleted, e)) &&
               c->goes_on(c->context);
    }
    mongo_page_fini(&page);
    return good;
}

/* Does the date begin a week of another first day? Other dates are not ours. */
static bool is_other_day(const struct mongo_clearing *c, const char *date)
{
    int64_t ms;
    return mongo_parse_time(SPAN_WEEK, date, &ms) && civil_week_floor(c->first, ms) != ms;
}

/* Continues behind the week of this document, or behind a document of others. */
static void put_next(const char *id, bool is_date, struct text *from)
{
    text_clear(from);
    text_printf(from, is_date ? "%.*s0" : "%.*s!", is_date ? DATE_DIGITS : (int)strlen(id), id);
}

/* Leaves alone what a later holder of the lease has set: this process may have been stopped for long. */
static bool delete_others_of(struct mongo_clearing *c, const char *collection, struct err *e)
{
    struct mongo_page page = {.count = 0};
    struct text from = {0};
    char date[RANGE_BYTES];
    bool good = true;
    bson_t guard = BSON_INITIALIZER;
    struct mongo_range range = {collection, NULL, ":", false, &guard};
    mongo_add_guard(&guard, MONGO_ROLL_APPLIED, c->fence);
    text_puts(&from, "0");
    range.from = from.ptr;
    while (good && (good = mongo_page_find(c->m->client, &range, 1, &page, e)) && page.count > 0) {
        const char *id = page.first.ptr;
        /* the date, and then "/" or nothing */
        bool is_date = strspn(id, "0123456789") == DATE_DIGITS && strchr("/", id[DATE_DIGITS]) != NULL;
        snprintf(date, sizeof date, "%.*s", DATE_DIGITS, id);
        if (is_date && is_other_day(c, date))
            good = delete_week(c, collection, date, &guard, e);
        put_next(id, is_date, &from);
        range.from = from.ptr;
    }
    mongo_page_fini(&page);
    text_fini(&from);
    bson_destroy(&guard);
    return good;
}

static bool delete_others(struct mongo_clearing *c, struct err *e)
{
    const char *week = span_name(SPAN_WEEK);
    char name[MONGO_NAME_BYTES];
    bool good = delete_others_of(c, mongo_collection(c->m, c->report, week, name), e);
    for (size_t i = 0; good && i < c->m->reports[c->report].sketch_count; i++)
        good = delete_others_of(c, mongo_sketch_collection(c->m, c->report, i, week, name), e);
    return good;
}

bool mongo_clear_weeks(struct mongo_clearing *c, struct err *e)
{
    c->held = true;
    if (c->is_new && !mongo_stamp_start(c->m, c->report, c->fence, c->first, &c->held, e))
        return false;
    failpoint(FAILPOINT_WEEKS_BEGUN);
    return !c->held || (delete_others(c, e) && mongo_stamp_fresh(c->m, c->report, c->fence, &c->held, e));
}
