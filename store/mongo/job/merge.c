#include "store/mongo/job/merge.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define ANSWER_DOCUMENTS 1000 /* documents of a month in one reply */
#define FIELD_BYTES      (MONGO_PATH_BYTES + MEASURE_NAME_BYTES + 16)

static const struct mongo_kind month_kind = {SPAN_MONTH, SPAN_DAY, false};

/* ---- the documents of a month, one by one */

/* Is the document preallocated? Nothing is counted in it yet, and most likely never will be. */
static bool is_made_ahead(const bson_t *document)
{
    bson_t applied;
    return mongo_find_document(document, "applied", &applied) && bson_empty(&applied);
}

/* "/%2Fa" of "201010/%2Fa"; NULL: a document of others, or without counts. */
static const char *rest_of(const struct mongo_merge *g, const struct mongo_source *source,
                           const bson_t *document)
{
    const char *id = mongo_text_at(document, "_id");
    char time[MONGO_TIME_BYTES];
    bool is_other;
    mongo_time(g->from->span, source->from_ms, time);
    bool is_ours = strncmp(id, time, strlen(time)) == 0 && !is_made_ahead(document) &&
                   mongo_key_in_document(g->m, g->report, document, &g->m->id, &is_other);
    return is_ours ? id + strlen(time) : NULL;
}

static bool next_document(struct mongo_merge *g, struct mongo_source *source, struct err *e)
{
    do {
        if (!mongo_cursor_next(source->cursor, &source->document, e))
            return false;
        source->rest = source->document != NULL ? rest_of(g, source, source->document) : NULL;
    } while (source->document != NULL && source->rest == NULL);
    source->documents += source->document != NULL;
    return true;
}

/* The names of a measure's members begin with this. */
static const char *prefix_of(const struct mongo_merge *g, size_t measure)
{
    return g->of_sketch ? "" : g->m->more[g->report].fields[measure];
}

/* Are documents of the measure set? */
static bool is_of(const struct mongo_merge *g, size_t measure)
{
    const struct report *r = &g->m->reports[g->report];
    return g->of_sketch ? measure == r->sketched[g->sketch] : !measure_has_sketch(&r->measures[measure]);
}

/* The path of a measure's value in the document of a month: "bytes.daily.10". */
static const char *field_from(const struct mongo_merge *g, size_t measure, int64_t ms, char buf[FIELD_BYTES])
{
    char path[MONGO_PATH_BYTES];
    snprintf(buf, FIELD_BYTES, "%s%s", prefix_of(g, measure),
             mongo_path(g->from, g->target->kind->finest, ms, path));
    return buf;
}

/* The path of the value in the document that is set. Days of a week count from its first day. */
static const char *field_to(const struct mongo_merge *g, size_t measure, int64_t ms, char buf[FIELD_BYTES])
{
    int key =
        g->target->kind == &mongo_week ? (int)((ms - g->start_ms) / DAY_MS) : mongo_key_in(SPAN_MONTH, ms);
    snprintf(buf, FIELD_BYTES, "%s%s.%d", prefix_of(g, measure), mongo_member(g->target->kind->finest), key);
    return buf;
}

static bool open_source(struct mongo_merge *g, struct mongo_source *source, struct err *e)
{
    const struct report *report = &g->m->reports[g->report];
    enum span resolution = g->target->kind->finest;
    char from[MONGO_TIME_BYTES], to[MONGO_TIME_BYTES + 1], field[FIELD_BYTES];
    bson_t part;
    mongo_time(g->from->span, source->from_ms, from);
    snprintf(to, sizeof to, "%s0", from); /* sorts behind everything that continues with "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_t *options =
        BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "batchSize", BCON_INT32(ANSWER_DOCUMENTS));
    BSON_APPEND_DOCUMENT_BEGIN(options, "projection", &part);
    BSON_APPEND_BOOL(&part, "metadata", true);
    BSON_APPEND_BOOL(&part, "applied", true);
    for (size_t i = 0; i < report->measure_count; i++) {
        int64_t ms = is_of(g, i) ? source->from_ms : source->to_ms;
        for (; ms < source->to_ms; ms = span_next(resolution, ms))
            BSON_APPEND_BOOL(&part, field_from(g, i, ms, field), true);
    }
    bson_append_document_end(options, &part);
    source->cursor = mongo_cursor_open(g->m->client, g->from_collection, filter, options);
    bson_destroy(filter);
    bson_destroy(options);
    return next_document(g, source, e);
}

/* ---- one document that is set */

/* The update of one series. */
struct row {
    bson_t set;
    bool has_buckets;
    int64_t sum[REPORT_COLUMNS_MAX]; /* sum of all its buckets */
    bool is_in_sum[REPORT_MEASURES_MAX];
    union sketch sketch; /* of all its buckets */
};

/* The value of a mean. False: it has no events. */
static bool mean_of(const struct measure *measure, const int64_t *columns, double *mean)
{
    size_t count = measure_column_count(measure);
    double sum = (double)columns[0] + (count == 3 ? (double)columns[1] / EVENT_SCALE : 0);
    *mean = columns[count - 1] != 0 ? sum / (double)columns[count - 1] : 0;
    return columns[count - 1] != 0;
}

/* Adds the parts of a mean, and its value. */
static void add_mean(const struct mongo_merge *g, const struct measure *measure, const char *path,
                     const bson_iter_t *value, const int64_t *columns, bson_t *set)
{
    bson_t parts;
    double mean;
    bson_append_document_begin(set, path, -1, &parts);
    if (BSON_ITER_HOLDS_DOCUMENT(value)) /* another program may have changed it */
        mongo_append_members(&parts, value);
    if (mean_of(measure, columns, &mean)) {
        BSON_APPEND_DOUBLE(&parts, "mean", mean);
        BSON_APPEND_DATE_TIME(&parts, "at", g->now_ms);
    }
    bson_append_document_end(set, &parts);
}

/* Is it a bucket of zeros in a preallocated document? */
static bool is_nothing(const struct mongo_merge *g, const bson_t *document, int64_t ms)
{
    const struct mongo_report *more = &g->m->more[g->report];
    char field[FIELD_BYTES];
    bson_iter_t value;
    return g->target->kind == &mongo_week && !g->of_sketch && more->has_zeros &&
           mongo_find_member(document, field_from(g, (size_t)more->plain, ms, field), &value) &&
           bson_iter_as_int64(&value) == 0;
}

/* Copies the values of a bucket. */
static bool add_bucket(struct mongo_merge *g, const bson_t *document, int64_t ms, struct row *row,
                       struct err *e)
{
    const struct report *report = &g->m->reports[g->report];
    int64_t columns[REPORT_COLUMNS_MAX] = {0};
    if (is_nothing(g, document, ms))
        return true;
    for (size_t i = 0; i < report->measure_count; i++) {
        const struct measure *measure = &report->measures[i];
        int64_t *own = &columns[measure->column];
        char field[FIELD_BYTES];
        bson_iter_t value;
        if (!is_of(g, i) || !mongo_find_member(document, field_from(g, i, ms, field), &value))
            continue;
        if (!mongo_read_value(measure, &value, own) ||
            (g->of_sketch &&
             !mongo_merge_sketch(measure, mongo_bytes_of(&value), &row->sketch, &g->work.arena)))
            return err_set(
                e, EX_DATAERR,
                "%s: %s cannot be made: %s has a damaged %s at %s of \"%s\": restore it from a backup",
                mongo_client_name(g->m->client), g->collection, g->from_collection, measure->expression,
                field, mongo_text_at(document, "_id"));
        field_to(g, i, ms, field);
        if (measure->kind == MEASURE_MEAN && BSON_ITER_HOLDS_DOCUMENT(&value))
            add_mean(g, measure, field, &value, own, &row->set);
        else if (g->from->finest < g->from->span) /* else the day has a document, which says the same */
            bson_append_iter(&row->set, field, -1, &value);
        row->is_in_sum[i] = row->has_buckets = true;
    }
    report_merge(report, row->sum, columns);
    return true;
}

/* Adds the sum of a week. */
static void add_sum(const struct mongo_merge *g, struct row *row)
{
    const struct report *report = &g->m->reports[g->report];
    for (size_t i = 0; i < report->measure_count; i++) {
        const struct measure *measure = &report->measures[i];
        const int64_t *columns = &row->sum[measure->column];
        char field[FIELD_BYTES], part[FIELD_BYTES + 8];
        double mean;
        if (!row->is_in_sum[i])
            continue;
        snprintf(field, sizeof field, "%s%s", prefix_of(g, i), mongo_member(SPAN_WEEK));
        if (g->of_sketch) {
            mongo_append_bucket(&row->set, field, measure, g->m->more[g->report].is_decimal, columns,
                                &row->sketch);
            continue;
        }
        mongo_add_value(&row->set, &row->set, &row->set, measure, g->m->more[g->report].is_decimal, field,
                        columns);
        if (measure->kind != MEASURE_MEAN || !mean_of(measure, columns, &mean))
            continue;
        snprintf(part, sizeof part, "%s.mean", field);
        BSON_APPEND_DOUBLE(&row->set, part, mean);
        snprintf(part, sizeof part, "%s.at", field);
        BSON_APPEND_DATE_TIME(&row->set, part, g->now_ms);
    }
}

/* Writes the filter of mongo_add_document(), but with the `_id` that the months' documents have. */
static void add_filter(const struct mongo_merge *g, const struct mongo_source *first, bson_t *filter)
{
    char time[MONGO_TIME_BYTES];
    bool is_other = false;
    text_clear(&g->m->id);
    text_puts(&g->m->id, mongo_time(g->target->kind->span, g->start_ms, time));
    text_puts(&g->m->id, first->rest);
    bson_append_utf8(filter, "_id", -1, g->m->id.ptr, (int)g->m->id.len);
    BSON_APPEND_DATE_TIME(filter, "metadata.date", g->start_ms);
    (void)mongo_key_in_document(g->m, g->report, first->document, &g->m->id, &is_other);
    const struct slice key = text_slice(&g->m->id);
    mongo_add_metadata(filter, g->m, g->report, is_other ? NULL : &key);
    mongo_add_guard(filter, MONGO_ROLL_APPLIED, g->job->fence);
}

/* Logs the update. It does not remove members that months no longer have. */
static void log_update(struct mongo_merge *g, const struct mongo_source *first, const bson_t *set)
{
    bson_t entry, part;
    bson_init(&entry);
    BSON_APPEND_UTF8(&entry, "c", g->collection);
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "f", &part);
    add_filter(g, first, &part);
    bson_append_document_end(&entry, &part);
    BCON_APPEND(&entry, "u", "{", "$set", BCON_DOCUMENT(set), "$setOnInsert", "{", "v",
                BCON_INT32(MONGO_SCHEMA), "}", "}");
    mongo_log_add(&g->log, &entry);
    bson_destroy(&entry);
}

/* Adds the update of the series that `first` is at, from all months that are at this series. Then moves
 * these months on to their next document. */
static bool add_update(struct mongo_merge *g, const struct mongo_source *first, struct err *e)
{
    struct row row;
    enum span resolution = g->target->kind->finest;
    bool good = true, is_at[MONGO_SOURCES_MAX] = {false};
    memset(&row, 0, sizeof row); /* all of its sketch, too */
    bson_init(&row.set);
    (void)sketch_work_ready(&g->work);
    for (size_t i = 0; good && i < g->count; i++) {
        const struct mongo_source *source = &g->sources[i];
        is_at[i] = source->document != NULL && strcmp(source->rest, first->rest) == 0;
        int64_t ms = source->from_ms;
        for (; good && is_at[i] && ms < source->to_ms; ms = span_next(resolution, ms))
            good = add_bucket(g, source->document, ms, &row, e);
    }
    if (good && row.has_buckets) {
        if (g->target->kind == &mongo_week)
            add_sum(g, &row);
        BSON_APPEND_INT64(&row.set, MONGO_ROLL_APPLIED, g->job->fence);
        BSON_APPEND_DATE_TIME(&row.set, "modified", g->now_ms);
        log_update(g, first, &row.set);
        g->documents++;
    }
    bson_destroy(&row.set);
    for (size_t i = 0; good && i < g->count; i++)
        good = !is_at[i] || next_document(g, &g->sources[i], e);
    return good;
}

/* ---- all of them */

/* Sends the log as a batch is sent. If a guard refuses an update, another holder has set the document
 * since. */
static bool send_log(struct mongo_merge *g, struct err *e)
{
    struct mongo_open of = {.slot = MONGO_ROLL_SLOT, .seq = g->job->fence, .prev = -1};
    mongo_log_end(&g->log);
    if (!mongo_send(g->m, &of, text_slice(&g->log.packed), e))
        return false;
    failpoint(FAILPOINT_ROLLUP_SENT);
    mongo_log_begin(&g->log);
    return mongo_job_keep(g->job);
}

/* The month that is at the least series; NULL: all are at their end. */
static struct mongo_source *least(struct mongo_merge *g)
{
    struct mongo_source *found = NULL;
    for (size_t i = 0; i < g->count; i++) {
        struct mongo_source *source = &g->sources[i];
        if (source->document != NULL && (found == NULL || strcmp(source->rest, found->rest) < 0))
            found = source;
    }
    return found;
}

static bool merge(struct mongo_merge *g, struct err *e)
{
    bool good = true;
    struct text last = {0};
    mongo_log_begin(&g->log);
    for (struct mongo_source *source; good && (source = least(g)) != NULL;) {
        if (last.len > 0 && strcmp(source->rest, last.ptr) <= 0) {
            good = err_set(e, EX_PROTOCOL, "%s: the documents of %s do not come sorted by _id",
                           mongo_client_name(g->m->client), g->from_collection);
            break;
        }
        text_clear(&last);
        text_puts(&last, source->rest);
        good = add_update(g, source, e) && (g->log.packed.len < MONGO_ROLL_LOG_BYTES || send_log(g, e));
    }
    text_fini(&last);
    return good && send_log(g, e);
}

static void name_collections(struct mongo_merge *g)
{
    const char *to = span_name(g->target->kind->span), *from = span_name(g->from->span);
    if (g->of_sketch) {
        mongo_sketch_collection(g->m, g->report, g->sketch, to, g->collection);
        mongo_sketch_collection(g->m, g->report, g->sketch, from, g->from_collection);
    } else {
        mongo_collection(g->m, g->report, to, g->collection);
        mongo_collection(g->m, g->report, from, g->from_collection);
    }
}

bool mongo_merge(struct mongo_merge *g)
{
    struct err *e = g->job->e;
    bool good = true;
    g->now_ms = clock_wall_ms(g->m->store.clock);
    g->from =
        g->of_sketch ? mongo_sketch_kind_for(&g->m->reports[g->report], g->sketch, SPAN_DAY) : &month_kind;
    name_collections(g);
    for (size_t i = 0; good && i < g->count; i++)
        good = open_source(g, &g->sources[i], e);
    good = good && merge(g, e);
    for (size_t i = 0; i < g->count; i++)
        mongo_cursor_close(g->sources[i].cursor);
    mongo_log_fini(&g->log);
    sketch_work_fini(&g->work);
    return good;
}
