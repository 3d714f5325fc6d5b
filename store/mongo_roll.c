#include "store/mongo_roll.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OPEN_WAIT_MS    20000 /* a batch is applied in less, or recovered after its writer's lease */
#define OPEN_LOOK_MS    50
#define LEASE_KEEP_MS   10000
#define STATEMENT_BYTES 16 /* of one update in a command, beside itself */

/* A month with counts that are not rolled up, as it was when it was looked at last. */
struct mongo_look {
    size_t report;
    int64_t month, written;
    int64_t first_ms, seen_ms; /* monotonic: since it waits; since it is so */
};

struct rolling {
    struct mongo_store *m;
    const struct store_roll *what;
    size_t report;
    struct mongo_marks marks;      /* as they were when the lease was taken */
    const struct mongo_mark *mark; /* of the month in hand */
    int64_t start_ms, now_ms;
    int64_t kept_ms; /* the lease, monotonic */
    uint64_t documents;
    bson_t command, updates; /* being written */
    uint32_t update_count;
    bool goes_on; /* false: another has the lease now, or it was told to stop, which is no failure */
    bool good;
    struct err *e;
};

static bool is_stopped(struct rolling *r)
{
    if (r->what->stop != NULL && atomic_load(r->what->stop))
        r->goes_on = false;
    return !r->goes_on;
}

/* ---- one document */

static const char *month_path(const struct rolling *r, const char *member, char *buf, size_t bytes)
{
    snprintf(buf, bytes, "%s.%d", member, mongo_key_in(SPAN_MONTH, r->start_ms));
    return buf;
}

/* What the month's document is of, in the year's. */
static void add_metadata(const struct rolling *r, const bson_iter_t *metadata, bson_t *filter)
{
    bson_iter_t at;
    char path[3 * sizeof(((struct dimension *)0)->name) + 16];
    if (!bson_iter_recurse(metadata, &at))
        return;
    while (bson_iter_next(&at)) {
        snprintf(path, sizeof path, "metadata.%s", bson_iter_key(&at));
        if (strcmp(bson_iter_key(&at), "date") == 0)
            BSON_APPEND_DATE_TIME(filter, path, span_floor(SPAN_YEAR, r->start_ms));
        else
            bson_append_iter(filter, path, -1, &at);
    }
}

/* "201010/%2Fa" is "2010/%2Fa". */
static void add_filter(const struct rolling *r, const char *id, const bson_iter_t *metadata, bson_t *filter)
{
    struct text *name = &r->m->id;
    char time[MONGO_TIME_BYTES], rolled[32];
    bson_t guard, not ;
    text_clear(name);
    text_puts(name, mongo_time(SPAN_YEAR, r->start_ms, time));
    text_puts(name, id + strlen(mongo_time(SPAN_MONTH, r->start_ms, time)));
    bson_append_utf8(filter, "_id", -1, name->ptr, (int)name->len);
    add_metadata(r, metadata, filter);
    bson_append_document_begin(filter, month_path(r, "rolled", rolled, sizeof rolled), -1, &guard);
    BSON_APPEND_DOCUMENT_BEGIN(&guard, "$not", &not );
    BSON_APPEND_INT64(&not, "$gte", r->marks.fence);
    bson_append_document_end(&guard, &not );
    bson_append_document_end(filter, &guard);
}

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

/* The month's values, as they stand. */
static void add_values(const struct rolling *r, const bson_t *document, bson_t *set)
{
    const struct report *report = &r->m->reports[r->report];
    const struct mongo_report *more = &r->m->more[r->report];
    for (size_t i = 0; i < report->measure_count; i++) {
        char from[128], to[144];
        bson_iter_t value;
        snprintf(from, sizeof from, "%s%s", more->fields[i], mongo_member(SPAN_MONTH));
        if (!mongo_find_member(document, from, &value))
            continue;
        month_path(r, from, to, sizeof to);
        if (report->measures[i].kind == MEASURE_MEAN && BSON_ITER_HOLDS_DOCUMENT(&value))
            add_mean(r, &report->measures[i], to, &value, set);
        else
            bson_append_iter(set, to, -1, &value);
    }
}

static void add_update(struct rolling *r, const char *id, const bson_iter_t *metadata, const bson_t *document)
{
    char room[16], rolled[32];
    const char *index;
    bson_t one, part, set;
    size_t len = bson_uint32_to_string(r->update_count++, &index, room, sizeof room);
    bson_append_document_begin(&r->updates, index, (int)len, &one);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "q", &part);
    add_filter(r, id, metadata, &part);
    bson_append_document_end(&one, &part);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "u", &part);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "$set", &set);
    add_values(r, document, &set);
    BSON_APPEND_INT64(&set, month_path(r, "rolled", rolled, sizeof rolled), r->marks.fence);
    BSON_APPEND_DATE_TIME(&set, "modified", r->now_ms);
    bson_append_document_end(&part, &set);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "$setOnInsert", &set);
    BSON_APPEND_INT32(&set, "v", MONGO_SCHEMA);
    bson_append_document_end(&part, &set);
    bson_append_document_end(&one, &part);
    BSON_APPEND_BOOL(&one, "upsert", true);
    bson_append_document_end(&r->updates, &one);
}

/* ---- one month */

static void begin_command(struct rolling *r)
{
    char collection[MONGO_NAME_BYTES];
    mongo_collection(r->m, r->report, span_name(SPAN_YEAR), collection);
    bson_init(&r->command);
    BSON_APPEND_UTF8(&r->command, "update", collection);
    BSON_APPEND_BOOL(&r->command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(&r->command, "updates", &r->updates);
    r->update_count = 0;
}

/* A duplicate key: the guard did not hold, so another has done more. */
static bool send_command(struct rolling *r)
{
    bson_t reply;
    int64_t now_ms = clock_mono_ms(&clock_system);
    bson_append_array_end(&r->command, &r->updates);
    bool good = true;
    if (r->update_count > 0) {
        good = mongo_write(r->m->client, &r->command, &reply, r->e) &&
               mongo_check_writes(r->m->client, &reply, "a roll-up", MONGO_DUPLICATE_KEY, r->e);
        bson_destroy(&reply);
        failpoint(FAILPOINT_ROLLUP_SENT);
    }
    bson_destroy(&r->command);
    if (!good || is_stopped(r))
        return false;
    if (now_ms - r->kept_ms < LEASE_KEEP_MS)
        return true;
    r->kept_ms = now_ms;
    bool held, asked = mongo_keep_lease(r->m, r->report, r->marks.fence, &held, r->e);
    r->goes_on = held || !asked;
    return held;
}

static bool see_document(void *context, const bson_t *document)
{
    struct rolling *r = context;
    const struct mongo_limits *limits = &r->m->limits;
    bson_iter_t id, metadata;
    if (!bson_iter_init_find(&id, document, "_id") || !BSON_ITER_HOLDS_UTF8(&id) ||
        !bson_iter_init_find(&metadata, document, "metadata") || !BSON_ITER_HOLDS_DOCUMENT(&metadata))
        return true; /* another hand's */
    add_update(r, bson_iter_utf8(&id, NULL), &metadata, document);
    r->documents++;
    /* One as large as this would have room. */
    if (r->update_count < limits->updates && r->updates.len + document->len + STATEMENT_BYTES < limits->bytes)
        return true;
    r->good = send_command(r);
    begin_command(r);
    return r->good;
}

static bool read_month(struct rolling *r)
{
    const struct report *report = &r->m->reports[r->report];
    char collection[MONGO_NAME_BYTES], from[MONGO_TIME_BYTES], to[MONGO_TIME_BYTES + 1];
    bson_t options, projection;
    mongo_time(SPAN_MONTH, r->start_ms, from);
    snprintf(to, sizeof to, "%s0", from); /* after all that goes on with "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_init(&options);
    BSON_APPEND_DOCUMENT_BEGIN(&options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "metadata", true);
    for (size_t i = 0; i < report->measure_count; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", r->m->more[r->report].fields[i], mongo_member(SPAN_MONTH));
        BSON_APPEND_BOOL(&projection, path, true);
    }
    bson_append_document_end(&options, &projection);
    mongo_collection(r->m, r->report, span_name(SPAN_MONTH), collection);
    begin_command(r);
    r->good = true;
    bool good = mongo_find(r->m->client, collection, filter, &options, see_document, r, r->e);
    bson_destroy(filter);
    bson_destroy(&options);
    if (good && r->good)
        return send_command(r);
    bson_append_array_end(&r->command, &r->updates);
    bson_destroy(&r->command);
    return false;
}

static size_t all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS])
{
    size_t count = 0;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        char slot[MONGO_SLOT_BYTES];
        snprintf(slot, sizeof slot, "w%d", i);
        count += mongo_open_of(ledger, slot, &open[count]);
    }
    return count;
}

static size_t still_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS], size_t count)
{
    size_t still = 0;
    for (size_t i = 0; i < count; i++) {
        struct mongo_open now;
        if (mongo_open_of(ledger, open[i].slot, &now) && now.seq == open[i].seq && now.inc == open[i].inc)
            open[still++] = open[i];
    }
    return still;
}

/* Every batch that is open now is applied, or recovered. */
static bool wait_for_open(struct rolling *r)
{
    int64_t until_ms = clock_mono_ms(&clock_system) + OPEN_WAIT_MS;
    struct mongo_open open[MONGO_SLOTS];
    bson_t ledger;
    bool good = mongo_read_ledger(r->m, &ledger, r->e);
    size_t count = all_open(&ledger, open);
    bson_destroy(&ledger);
    while (good && count > 0 && !is_stopped(r)) {
        if (clock_mono_ms(&clock_system) > until_ms)
            return err_set_retryable(r->e, EX_TEMPFAIL,
                                     "%s: a batch of writer %s is under way for long: is it away?",
                                     mongo_client_name(r->m->client), open[0].slot);
        nanosleep(&(struct timespec){.tv_nsec = OPEN_LOOK_MS * 1000000L}, NULL);
        good = mongo_read_ledger(r->m, &ledger, r->e);
        count = still_open(&ledger, open, count);
        bson_destroy(&ledger);
    }
    return good && r->goes_on;
}

static bool roll_month(struct rolling *r)
{
    r->now_ms = clock_wall_ms(&clock_system);
    r->kept_ms = clock_mono_ms(&clock_system);
    r->documents = 0;
    r->goes_on = true;
    if (!wait_for_open(r) || !read_month(r))
        return false;
    failpoint(FAILPOINT_ROLLUP_MARKING);
    bool held, asked = mongo_mark_rolled(r->m, r->report, &r->marks, r->mark, &held, r->e);
    r->goes_on = held || !asked;
    return held;
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
    if (mark->written == mark->rolled)
        return false;
    if (r->what->now)
        return true;
    return end_ms <= clock_wall_ms(&clock_system) && !(r->what->quiet_ms > 0 && must_wait(r, mark));
}

/* The lease, and what it found; *taken false: nothing is to be done of it, by us. */
static bool take_month(struct rolling *r, int64_t month, bool *taken)
{
    int64_t fence = r->marks.fence;
    free(r->marks.list);
    r->mark = NULL;
    if (!mongo_take_lease(r->m, r->report, fence, taken, &r->marks, r->e))
        return false;
    for (size_t i = 0; i < r->marks.count; i++) {
        if (r->marks.list[i].month == month)
            r->mark = &r->marks.list[i];
    }
    return true;
}

/* One that is due, if it is ours to do. */
static bool roll_one(struct rolling *r, int64_t month)
{
    bool taken = true;
    r->start_ms = civil_month_start(month);
    r->documents = 0;
    if (!r->what->dry) {
        if (!take_month(r, month, &taken))
            return false;
        r->goes_on = taken;
        if (!taken || r->mark == NULL || r->mark->written == r->mark->rolled)
            return true; /* another has it in hand, or had */
        if (!roll_month(r))
            return !r->goes_on;
        forget_look(r->m, r->report, month);
    }
    r->what->done(r->what->context, r->m->reports[r->report].name, r->start_ms, r->documents);
    return true;
}

static bool roll_due(struct rolling *r, const struct mongo_marks *found)
{
    bool good = true;
    for (size_t i = 0; good && !is_stopped(r) && i < found->count; i++) {
        if (is_due(r, &found->list[i]))
            good = roll_one(r, found->list[i].month);
    }
    int64_t fence = r->marks.fence;
    free(r->marks.list);
    return good && (fence == 0 || mongo_give_lease(r->m, r->report, fence, r->e));
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
                (!again || mongo_mark_again(r->m, r->report, found, what->from_ms, what->to_ms, r->e));
    free(found->list);
    found->list = NULL;
    return good && mongo_read_marks(r->m, r->report, found, r->e);
}

bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    bool good = true;
    for (size_t report = 0; good && report < st->report_count; report++) {
        struct rolling r = {.m = mongo_of(st), .what = what, .report = report, .e = e, .goes_on = true};
        struct mongo_marks found = {0};
        good = find_marks(&r, &found) && roll_due(&r, &found);
        free(found.list);
    }
    return good;
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
    }
    return true;
}
