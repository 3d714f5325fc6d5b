#include "store/mongo/job/weeks.h"

#include "base/civil.h"
#include "base/failpoint.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/job/merge.h"
#include "store/mongo/wire/page.h"

#include <stdio.h>

#define PAGE        200 /* documents per request */
#define DATE_DIGITS 8
#define RANGE_BYTES 16

/* Deletes the documents whose `_id` is the date, or continues with "/": "20101004/%2Fa". */
static bool delete_week(struct mongo_job *job, const char *collection, const char *date, const bson_t *guard)
{
    struct mongo_page page = {.count = PAGE};
    char end[RANGE_BYTES + 1];
    int64_t deleted;
    bool good = true;
    snprintf(end, sizeof end, "%s0", date);
    const struct mongo_range range = {collection, date, end, false, guard};
    while (good && page.count == PAGE) {
        good = mongo_page_find(job->m->client, &range, PAGE, &page, job->e) &&
               (page.count == 0 || mongo_page_delete(job->m->client, &range, &page, &deleted, job->e)) &&
               mongo_job_keep(job);
    }
    mongo_page_fini(&page);
    return good;
}

/* Does the date begin a week of another first day? Other dates are not ours. */
static bool is_other_day(const struct mongo_job *job, const char *date)
{
    int64_t ms;
    return mongo_parse_time(SPAN_WEEK, date, &ms) && civil_week_floor(job->what->week_start, ms) != ms;
}

/* Continues behind the week of this document, or behind a document of others. */
static void put_next(const char *id, bool is_date, struct text *from)
{
    text_clear(from);
    text_printf(from, is_date ? "%.*s0" : "%.*s!", is_date ? DATE_DIGITS : (int)strlen(id), id);
}

/* Leaves alone what a later holder of the lease has set: this process may have been stopped for long. */
static bool delete_others_of(struct mongo_job *job, const char *collection)
{
    struct mongo_page page = {.count = 0};
    struct text from = {0};
    char date[RANGE_BYTES];
    bool good = true;
    bson_t guard = BSON_INITIALIZER;
    struct mongo_range range = {collection, NULL, ":", false, &guard};
    mongo_add_guard(&guard, MONGO_ROLL_APPLIED, job->fence);
    text_puts(&from, "0");
    range.from = from.ptr;
    while (good && (good = mongo_page_find(job->m->client, &range, 1, &page, job->e)) && page.count > 0) {
        const char *id = page.first.ptr;
        /* the date, and then "/" or nothing */
        bool is_date = strspn(id, "0123456789") == DATE_DIGITS && strchr("/", id[DATE_DIGITS]) != NULL;
        snprintf(date, sizeof date, "%.*s", DATE_DIGITS, id);
        if (is_date && is_other_day(job, date))
            good = delete_week(job, collection, date, &guard);
        put_next(id, is_date, &from);
        range.from = from.ptr;
    }
    mongo_page_fini(&page);
    text_fini(&from);
    bson_destroy(&guard);
    return good;
}

static bool delete_others(struct mongo_job *job)
{
    struct mongo_store *m = job->m;
    const char *week = span_name(SPAN_WEEK);
    char name[MONGO_NAME_BYTES];
    bool good = delete_others_of(job, mongo_collection(m, job->report, week, name));
    for (size_t i = 0; good && i < m->reports[job->report].sketch_count; i++)
        good = delete_others_of(job, mongo_sketch_collection(m, job->report, i, week, name));
    return good;
}

bool mongo_clear_weeks(struct mongo_job *job, bool is_new)
{
    if (is_new && !mongo_job_set(job, BCON_NEW("start", BCON_UTF8(civil_weekdays[job->what->week_start]),
                                               "stale", BCON_BOOL(true), "rolled", "{", "}")))
        return false;
    failpoint(FAILPOINT_WEEKS_BEGUN);
    return delete_others(job) && mongo_job_set(job, BCON_NEW("stale", BCON_BOOL(false)));
}
