#include "store/mongo_roll.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo_marks.h"
#include "store/mongo_top.h"

#include <stdio.h>
#include <stdlib.h>

#define LEASE_KEEP_MS    10000
#define MONTHS_MAX       12
#define ANSWER_DOCUMENTS 1000 /* of a month, at once */

/* A month with counts that are not rolled up, as it was when it was looked at last. */
struct mongo_look {
    size_t report;
    int64_t month, written;
    int64_t first_ms, seen_ms; /* monotonic: since it waits; since it is so */
};

/* One that is being rolled up. */
struct month {
    struct mongo_mark mark;
    int64_t start_ms;
    struct mongo_cursor *cursor;
    const bson_t *document; /* the next; NULL: none is left */
    const char *rest;       /* of its `_id`, behind the time: the same in R.year, and in order */
    uint64_t documents;
};

struct rolling {
    struct mongo_store *m;
    const struct store_roll *what;
    size_t report;
    int64_t fence;                   /* of the lease; 0: it was not taken */
    struct month months[MONTHS_MAX]; /* of one year */
    size_t count;
    int64_t year_ms, now_ms;
    int64_t kept_ms;   /* the lease, monotonic */
    const char *owner; /* of the lease, as it was found; borrowed */
    char collection[MONGO_NAME_BYTES];
    struct mongo_log log;
    bool goes_on; /* false: another has the lease now, or it was told to stop, which is no failure */
    struct err *e;
};

static bool is_stopped(struct rolling *r)
{
    if (r->what->is_stopped != NULL && r->what->is_stopped(r->what->context))
        r->goes_on = false;
    return !r->goes_on;
}

/* ---- the documents of a month, one by one */

/* Nothing was counted in it yet, and most likely never will be. */
static bool is_made_ahead(const bson_t *document)
{
    bson_iter_t applied, at;
    return bson_iter_init_find(&applied, document, "applied") && BSON_ITER_HOLDS_DOCUMENT(&applied) &&
           bson_iter_recurse(&applied, &at) && !bson_iter_next(&at);
}

/* Of which series it is, in m->id; false: of none. Members that others added are passed over. */
static bool key_of(const struct rolling *r, const bson_t *document, bool *is_other)
{
    bson_iter_t metadata;
    return bson_iter_init_find(&metadata, document, "metadata") &&
           mongo_key_of(r->m, r->report, &metadata, &r->m->id, is_other);
}

/* "201010/%2Fa" is "/%2Fa"; NULL: another hand's, or of no counts. */
static const char *rest_of(const struct rolling *r, const struct month *month, const bson_t *document)
{
    bson_iter_t it;
    char time[MONGO_TIME_BYTES];
    bool is_other;
    mongo_time(SPAN_MONTH, month->start_ms, time);
    if (!bson_iter_init_find(&it, document, "_id") || !BSON_ITER_HOLDS_UTF8(&it) ||
        strncmp(bson_iter_utf8(&it, NULL), time, strlen(time)) != 0 || is_made_ahead(document) ||
        !key_of(r, document, &is_other))
        return NULL;
    return bson_iter_utf8(&it, NULL) + strlen(time);
}

static bool next_document(struct rolling *r, struct month *month)
{
    do {
        if (!mongo_cursor_next(month->cursor, &month->document, r->e))
            return false;
        month->rest = month->document != NULL ? rest_of(r, month, month->document) : NULL;
    } while (month->document != NULL && month->rest == NULL);
    month->documents += month->document != NULL;
    return true;
}

static bool open_month(struct rolling *r, struct month *month)
{
    const struct report *report = &r->m->reports[r->report];
    char collection[MONGO_NAME_BYTES], from[MONGO_TIME_BYTES], to[MONGO_TIME_BYTES + 1];
    bson_t options, part;
    mongo_time(SPAN_MONTH, month->start_ms, from);
    snprintf(to, sizeof to, "%s0", from); /* after all that goes on with "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_init(&options);
    BSON_APPEND_DOCUMENT_BEGIN(&options, "sort", &part);
    BSON_APPEND_INT32(&part, "_id", 1);
    bson_append_document_end(&options, &part);
    BSON_APPEND_INT32(&options, "batchSize", ANSWER_DOCUMENTS);
    BSON_APPEND_DOCUMENT_BEGIN(&options, "projection", &part);
    BSON_APPEND_BOOL(&part, "metadata", true);
    BSON_APPEND_BOOL(&part, "applied", true);
    for (size_t i = 0; i < report->measure_count; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", r->m->more[r->report].fields[i], mongo_member(SPAN_MONTH));
        BSON_APPEND_BOOL(&part, path, true);
    }
    bson_append_document_end(&options, &part);
    mongo_collection(r->m, r->report, span_name(SPAN_MONTH), collection);
    month->cursor = mongo_cursor_open(r->m->client, collection, filter, &options);
    bson_destroy(filter);
    bson_destroy(&options);
    return next_document(r, month);
}

/* ---- one document of the year */

/* What it is made of, and what it is now. */
static void add_mean(const struct rolling *r, const struct measure *measure, const char *path,
                     const bson_iter_t *value, bson_t *set)
{
    int64_t columns[MEASURE_COLUMNS_MAX] = {0};
    size_t count = measure_column_count(measure);
    bson_iter_t at;
    bson_t mean;
    mongo_read_value(measure, value, columns);
    double sum = (double)columns[0] + (count == 3 ? (double)columns[1] / EVENT_SCALE : 0);
    int64_t values = columns[count - 1];
    bson_append_document_begin(set, path, -1, &mean);
    for (bool more = bson_iter_recurse(value, &at); more && bson_iter_next(&at);)
        bson_append_iter(&mean, NULL, -1, &at);
    if (values != 0) {
        BSON_APPEND_DOUBLE(&mean, "mean", sum / (double)values);
        BSON_APPEND_DATE_TIME(&mean, "at", r->now_ms);
    }
    bson_append_document_end(set, &mean);
}

/* A month's values, as they stand. */
static void add_values(const struct rolling *r, const struct month *month, bson_t *set)
{
    const struct report *report = &r->m->reports[r->report];
    const struct mongo_report *more = &r->m->more[r->report];
    for (size_t i = 0; i < report->measure_count; i++) {
        char from[128], to[MONGO_PATH_BYTES + MEASURE_NAME_BYTES + 2], path[MONGO_PATH_BYTES];
        bson_iter_t value;
        snprintf(from, sizeof from, "%s%s", more->fields[i], mongo_member(SPAN_MONTH));
        if (!mongo_find_member(month->document, from, &value))
            continue;
        snprintf(to, sizeof to, "%s%s", more->fields[i],
                 mongo_path(&mongo_year, SPAN_MONTH, month->start_ms, path));
        if (report->measures[i].kind == MEASURE_MEAN && BSON_ITER_HOLDS_DOCUMENT(&value))
            add_mean(r, &report->measures[i], to, &value, set);
        else
            bson_append_iter(set, to, -1, &value);
    }
}

/* As mongo_update.c writes those of a batch. */
static void add_filter(const struct rolling *r, const struct month *first, bson_t *filter)
{
    char time[MONGO_TIME_BYTES];
    bson_t guard, not ;
    bool is_other = false;
    text_clear(&r->m->id);
    text_puts(&r->m->id, mongo_time(SPAN_YEAR, r->year_ms, time));
    text_puts(&r->m->id, first->rest);
    bson_append_utf8(filter, "_id", -1, r->m->id.ptr, (int)r->m->id.len);
    BSON_APPEND_DATE_TIME(filter, "metadata.date", r->year_ms);
    (void)key_of(r, first->document, &is_other);
    const struct slice key = text_slice(&r->m->id);
    mongo_add_metadata(filter, r->m, r->report, is_other ? NULL : &key);
    BSON_APPEND_DOCUMENT_BEGIN(filter, MONGO_ROLL_APPLIED, &guard);
    BSON_APPEND_DOCUMENT_BEGIN(&guard, "$not", &not );
    BSON_APPEND_INT64(&not, "$gte", r->fence);
    bson_append_document_end(&guard, &not );
    bson_append_document_end(filter, &guard);
}

/* Of all months whose next document is of the series that `first` has. Then they have another. */
static bool add_update(struct rolling *r, const struct month *first)
{
    bson_t entry, part, set;
    bool good = true, is_of[MONTHS_MAX] = {false};
    bson_init(&entry);
    BSON_APPEND_UTF8(&entry, "c", r->collection);
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "f", &part);
    add_filter(r, first, &part);
    bson_append_document_end(&entry, &part);
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "u", &part);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "$set", &set);
    for (size_t i = 0; i < r->count; i++) {
        struct month *month = &r->months[i];
        is_of[i] = month->document != NULL && strcmp(month->rest, first->rest) == 0;
        if (is_of[i])
            add_values(r, month, &set);
    }
    BSON_APPEND_INT64(&set, MONGO_ROLL_APPLIED, r->fence);
    BSON_APPEND_DATE_TIME(&set, "modified", r->now_ms);
    bson_append_document_end(&part, &set);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "$setOnInsert", &set);
    BSON_APPEND_INT32(&set, "v", MONGO_SCHEMA);
    bson_append_document_end(&part, &set);
    bson_append_document_end(&entry, &part);
    mongo_log_add(&r->log, &entry);
    bson_destroy(&entry);
    for (size_t i = 0; good && i < r->count; i++)
        good = !is_of[i] || next_document(r, &r->months[i]);
    return good;
}

/* ---- one year */

static bool keep_lease(struct rolling *r)
{
    int64_t now_ms = clock_mono_ms(&clock_system);
    if (now_ms - r->kept_ms < LEASE_KEEP_MS)
        return true;
    r->kept_ms = now_ms;
    bool held, asked = mongo_keep_lease(r->m, r->report, r->fence, &held, r->e);
    r->goes_on = held || !asked;
    return held;
}

/* Carried out as a batch is; what is refused by its guard, another has done more of. */
static bool send_log(struct rolling *r)
{
    struct mongo_open of = {.slot = MONGO_ROLL_SLOT, .seq = r->fence};
    mongo_log_end(&r->log);
    if (!mongo_send(r->m, &of, text_slice(&r->log.packed), r->e))
        return false;
    failpoint(FAILPOINT_ROLLUP_SENT);
    mongo_log_begin(&r->log);
    return !is_stopped(r) && keep_lease(r);
}

/* The month that has the least series, of those that have one left. */
static struct month *least(struct rolling *r)
{
    struct month *found = NULL;
    for (size_t i = 0; i < r->count; i++) {
        struct month *month = &r->months[i];
        if (month->document != NULL && (found == NULL || strcmp(month->rest, found->rest) < 0))
            found = month;
    }
    return found;
}

/* Documents come sorted by `_id`, whose beginnings are alike: all of a series are at hand at once. */
static bool merge_months(struct rolling *r)
{
    bool good = true;
    struct text last = {0};
    mongo_log_begin(&r->log);
    for (struct month *month; good && (month = least(r)) != NULL;) {
        if (last.len > 0 && strcmp(month->rest, last.ptr) <= 0) {
            good = err_set(r->e, EX_PROTOCOL, "%s: the documents of %s do not come sorted by _id",
                           mongo_client_name(r->m->client), r->collection);
            break;
        }
        text_clear(&last);
        text_puts(&last, month->rest);
        good = add_update(r, month) && (r->log.packed.len < MONGO_ROLL_LOG_BYTES || send_log(r));
    }
    text_fini(&last);
    return good && send_log(r);
}

static bool goes_on(void *context)
{
    struct rolling *r = context;
    return !is_stopped(r) && keep_lease(r);
}

static bool say_rolled(struct rolling *r)
{
    struct mongo_mark marks[MONTHS_MAX];
    for (size_t i = 0; i < r->count; i++)
        marks[i] = r->months[i].mark;
    failpoint(FAILPOINT_ROLLUP_MARKING);
    bool held, asked = mongo_mark_rolled(r->m, r->report, r->fence, marks, r->count, &held, r->e);
    r->goes_on = held || !asked;
    return held;
}

static bool roll_year(struct rolling *r)
{
    bool good = mongo_wait_for_open(r->m, goes_on, r, r->e);
    r->now_ms = clock_wall_ms(&clock_system);
    for (size_t i = 0; good && i < r->count; i++)
        good = open_month(r, &r->months[i]);
    good = good && merge_months(r);
    for (size_t i = 0; i < r->count; i++)
        mongo_cursor_close(r->months[i].cursor);
    return good && say_rolled(r);
}

/* ---- which months */

static struct mongo_look *find_look(struct mongo_store *m, size_t report, int64_t month)
{
    for (size_t i = 0; i < m->look_count; i++) {
        if (m->looks[i].report == report && m->looks[i].month == month)
            return &m->looks[i];
    }
    return NULL;
}

/* Something still comes, or may. */
static bool must_wait(struct rolling *r, const struct mongo_mark *mark)
{
    struct mongo_store *m = r->m;
    int64_t now_ms = clock_mono_ms(&clock_system);
    struct mongo_look *look = find_look(m, r->report, mark->month);
    if (look == NULL) {
        m->looks = xgrow(m->looks, &m->look_capacity, m->look_count + 1, sizeof *m->looks);
        look = &m->looks[m->look_count++];
        *look = (struct mongo_look){r->report, mark->month, mark->written, now_ms, now_ms};
    }
    if (look->written != mark->written) {
        look->written = mark->written;
        look->seen_ms = now_ms;
    }
    return now_ms - look->seen_ms < r->what->quiet_ms && now_ms - look->first_ms < MONGO_ROLL_WAIT_MS;
}

static void forget_look(struct mongo_store *m, size_t report, int64_t month)
{
    struct mongo_look *look = find_look(m, report, month);
    if (look != NULL)
        *look = m->looks[--m->look_count];
}

static bool is_due(struct rolling *r, const struct mongo_mark *mark)
{
    int64_t end_ms = span_next(SPAN_MONTH, civil_month_start(mark->month));
    if (mark->written == mark->rolled) {
        forget_look(r->m, r->report, mark->month); /* also where another did it */
        return false;
    }
    if (r->what->now)
        return true;
    return end_ms <= clock_wall_ms(&clock_system) && !(r->what->quiet_ms > 0 && must_wait(r, mark));
}

/* The lease, and those of `found` that still wait; *taken false: another has it in hand. */
static bool take_year(struct rolling *r, const int64_t *months, size_t count, bool *taken)
{
    struct mongo_marks marks;
    r->kept_ms = clock_mono_ms(&clock_system);
    bool good = mongo_take_lease(r->m, r->report, r->fence, taken, &marks, r->e);
    r->count = 0;
    if (good && *taken)
        r->fence = marks.fence;
    for (size_t i = 0; good && *taken && i < marks.count; i++) {
        const struct mongo_mark *mark = &marks.list[i];
        bool is_wanted = false;
        for (size_t k = 0; k < count; k++)
            is_wanted = is_wanted || months[k] == mark->month;
        if (is_wanted && mark->written != mark->rolled)
            r->months[r->count++] = (struct month){.mark = *mark, .start_ms = civil_month_start(mark->month)};
    }
    free(marks.list);
    return good;
}

/* Months of one year that are due, as far as they are ours to do. */
static bool roll_months(struct rolling *r, const int64_t *months, size_t count)
{
    const struct store_roll *what = r->what;
    const char *name = r->m->reports[r->report].name;
    bool taken = true;
    for (size_t i = 0; what->dry && i < count; i++)
        what->done(what->context, name, SPAN_MONTH, civil_month_start(months[i]), 0);
    if (what->dry || count == 0)
        return true;
    if (!take_year(r, months, count, &taken))
        return false;
    r->goes_on = taken;
    if (!taken && what->held != NULL)
        what->held(what->context, name, r->owner);
    if (r->count == 0)
        return true;
    if (!roll_year(r))
        return !r->goes_on;
    for (size_t i = 0; i < r->count; i++) {
        forget_look(r->m, r->report, r->months[i].mark.month);
        what->done(what->context, name, SPAN_MONTH, r->months[i].start_ms, r->months[i].documents);
    }
    return true;
}

static bool roll_due(struct rolling *r, const struct mongo_marks *found)
{
    bool good = true;
    r->owner = found->owner;
    mongo_collection(r->m, r->report, span_name(SPAN_YEAR), r->collection);
    for (size_t i = 0; good && !is_stopped(r) && i < found->count;) {
        int64_t months[MONTHS_MAX];
        size_t count = 0;
        r->year_ms = span_floor(SPAN_YEAR, civil_month_start(found->list[i].month));
        for (; i < found->count && civil_month_start(found->list[i].month) < span_next(SPAN_YEAR, r->year_ms);
             i++) {
            if (is_due(r, &found->list[i]))
                months[count++] = found->list[i].month;
        }
        good = roll_months(r, months, count);
    }
    mongo_log_fini(&r->log);
    if (r->fence == 0)
        return good;
    if (good)
        return mongo_give_lease(r->m, r->report, r->fence, r->e);
    struct err ignored;
    if (r->e->code != EX_UNAVAILABLE) /* nobody is to wait for what failed otherwise */
        (void)!mongo_give_lease(r->m, r->report, r->fence, &ignored);
    return false;
}

/* What waits: also what was there before there were marks, and what is wanted again. */
static bool find_marks(const struct rolling *r, struct mongo_marks *found)
{
    const struct store_roll *what = r->what;
    if (!mongo_read_marks(r->m, r->report, found, r->e))
        return false;
    bool begins = !found->has_begun && !what->dry, again = what->from_ms >= 0 && !what->dry;
    if (!begins && !again)
        return true;
    bool good = (!begins || mongo_begin_marks(r->m, r->report, r->e)) &&
                (!again || mongo_mark_again(r->m, r->report, what->from_ms, what->to_ms, r->e));
    free(found->list);
    found->list = NULL;
    return good && mongo_read_marks(r->m, r->report, found, r->e);
}

/* What one report's documents are refused for is no reason to leave the others. */
bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    bool all_good = true, goes_on = true;
    for (size_t report = 0; goes_on && report < st->report_count; report++) {
        struct err own = {0};
        struct rolling r = {.m = mongo_of(st), .what = what, .report = report, .e = &own, .goes_on = true};
        struct mongo_marks found = {0};
        bool good = find_marks(&r, &found) && roll_due(&r, &found);
        free(found.list);
        if (!good && all_good)
            *e = own;
        all_good = all_good && good;
        goes_on = (good || !own.retryable) && (what->is_stopped == NULL || !what->is_stopped(what->context));
    }
    return all_good;
}

bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    int64_t now_ms = clock_wall_ms(&clock_system);
    for (size_t report = 0; report < st->report_count; report++) {
        struct mongo_marks marks;
        struct store_job job = {.name = "rollup", .report = st->reports[report].name, .owner = ""};
        if (!mongo_read_marks(mongo_of(st), report, &marks, e)) {
            free(marks.list);
            return false;
        }
        for (size_t i = 0; i < marks.count; i++) {
            int64_t end_ms = span_next(SPAN_MONTH, civil_month_start(marks.list[i].month));
            job.waiting += marks.list[i].written != marks.list[i].rolled && end_ms <= now_ms;
        }
        job.last_run_ms = marks.last_run_ms;
        if (marks.until_ms > now_ms)
            job.owner = marks.owner;
        fn(context, &job);
        free(marks.list);
        if (!mongo_rank_job(mongo_of(st), report, fn, context, e))
            return false;
    }
    return true;
}
