/* Preallocates documents: prealloc.h decides which, and this file writes the updates that make them. The
 * updates are in the log of the batch whose hits decided it, with what is applied at once. They insert a
 * document, and leave an existing one alone. Its `applied` is empty, since no batch is applied to it: so
 * every batch that is not yet applied passes the guard. */
#include "store/mongo/writer/prealloc.h"

#include "base/civil.h"
#include "base/mem.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/nest.h"
#include "store/mongo/wire/command.h"

static void note_begun(struct mongo_store *m, size_t report, size_t kind, uint32_t minute, bool was_made)
{
    uint32_t *first = &m->more[report].first_written[kind];
    if (*first == 0)
        *first = minute;
    if (minute <= *first) /* for earlier documents it is unknown whether they exist */
        return;
    m->making.figures.begun++;
    m->making.figures.used += was_made;
}

/* The series begins a new document. Returns true if that was preallocated. */
static bool turn(struct mongo_store *m, size_t report, size_t kind, struct mongo_name *name, uint32_t minute)
{
    enum span span = mongo_kinds(&m->reports[report], NULL)[kind].span;
    bool was_made = false;
    if (name->written[kind] != 0) {
        int64_t old_ms = (int64_t)(name->written[kind] - 1) * MINUTE_MS;
        struct prealloc_period old = {old_ms, span_next(span, old_ms)};
        bool follows = old.to_ms == (int64_t)(minute - 1) * MINUTE_MS;
        m->making.figures.unused += name->ahead[kind].is_made && !follows;
        was_made = prealloc_turn(&m->making.prealloc, &name->ahead[kind], &old, follows);
    }
    name->written[kind] = minute;
    note_begun(m, report, kind, minute, was_made);
    return was_made;
}

bool mongo_touch(struct mongo_store *m, size_t report, size_t kind, const struct mongo_touch *t)
{
    if (t->series == STORE_SERIES_OTHER)
        return false;
    const struct mongo_kind *k = &mongo_kinds(&m->reports[report], NULL)[kind];
    struct mongo_name *name = mongo_names_at(&m->more[report].names, t->series);
    uint32_t minute = (uint32_t)(t->start_ms / MINUTE_MS + 1);
    if (name->written[kind] > minute) /* a later document is written already */
        return true;
    bool is_there = name->written[kind] == minute || turn(m, report, kind, name, minute);
    if (m->making.prealloc.options.when == PREALLOC_OFF)
        return is_there;
    const struct prealloc_period period = {t->start_ms, span_next(k->span, t->start_ms)};
    prealloc_count(&m->making.prealloc, &name->ahead[kind], t->hits);
    if (t->is_last && period.to_ms < CIVIL_END_MS &&
        prealloc_is_due(&m->making.prealloc, &name->ahead[kind], name->hash, &period, t->last_ms, t->hits)) {
        m->making.ahead = xgrow(m->making.ahead, &m->making.ahead_capacity, m->making.ahead_count + 1,
                                sizeof *m->making.ahead);
        m->making.ahead[m->making.ahead_count++] = (struct mongo_ahead){t->series, period.to_ms};
    }
    return is_there;
}

/* ---- zeros */

/* Adds zeros for all buckets of a resolution in the document that begins at date_ms. */
static void add_zeros(const struct mongo_report *more, const struct measure *m, const char *prefix,
                      const struct mongo_kind *k, enum span resolution, int64_t date_ms, bson_t *to)
{
    static const int64_t zeros[MEASURE_COLUMNS_MAX];
    char name[MEASURE_NAME_BYTES + MONGO_PATH_BYTES], path[MONGO_PATH_BYTES];
    bson_t flat = BSON_INITIALIZER;
    for (int64_t at = date_ms; at < span_next(k->span, date_ms); at = span_next(resolution, at)) {
        snprintf(name, sizeof name, "%s%s", prefix, mongo_path(k, resolution, at, path));
        mongo_add_value(&flat, &flat, &flat, m, more->is_decimal, name, zeros);
    }
    snprintf(name, sizeof name, "%s%s", prefix, mongo_member(resolution));
    mongo_append_nested(to, name, &flat);
    bson_destroy(&flat);
}

/* Min, max and last have no zero; sketches are not in these documents. */
static void write_zeros(const struct mongo_store *m, size_t report, const struct mongo_kind *k,
                        int64_t date_ms, bson_t *to)
{
    const struct report *r = &m->reports[report];
    const struct mongo_report *more = &m->more[report];
    for (size_t i = 0; i < r->measure_count; i++) {
        const bool has_zero = measure_is_scalable(&r->measures[i]);
        for (int s = (int)k->span; has_zero && s >= (int)k->finest; s--)
            add_zeros(more, &r->measures[i], more->fields[i], k, (enum span)s, date_ms, to);
    }
}

/* ---- updates */

/* Writes { c, f, u } like other updates of mongo/handle/log.h, but without a guard: an existing document is
 * left alone. */
static void write_one(struct mongo_store *m, size_t report, const struct mongo_kind *k,
                      const struct mongo_ahead *a, const bson_t *on_insert, struct mongo_log *log)
{
    char collection[MONGO_NAME_BYTES];
    bson_t entry = BSON_INITIALIZER, f;
    BSON_APPEND_UTF8(&entry, "c", mongo_collection(m, report, span_name(k->span), collection));
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "f", &f);
    mongo_add_document(&f, m, report, k->span, a->date_ms, mongo_key(&m->more[report], a->series));
    bson_append_document_end(&entry, &f);
    BCON_APPEND(&entry, "u", "{", "$setOnInsert", BCON_DOCUMENT(on_insert), "}");
    mongo_log_add(log, &entry);
    bson_destroy(&entry);
}

void mongo_write_ahead(struct mongo_store *m, size_t report, size_t kind, int64_t now_ms,
                       struct mongo_log *log)
{
    const struct mongo_kind *k = &mongo_kinds(&m->reports[report], NULL)[kind];
    bool with_zeros = m->making.prealloc.options.zeros && m->more[report].plain >= 0;
    for (size_t i = 0, end; i < m->making.ahead_count; i = end) { /* usually all have one date */
        bson_t *on_insert =
            BCON_NEW("applied", "{", "}", "modified", BCON_DATE_TIME(now_ms), "v", BCON_INT32(MONGO_SCHEMA));
        if (with_zeros)
            write_zeros(m, report, k, m->making.ahead[i].date_ms, on_insert);
        for (end = i;
             end < m->making.ahead_count && m->making.ahead[end].date_ms == m->making.ahead[i].date_ms; end++)
            write_one(m, report, k, &m->making.ahead[end], on_insert, log);
        bson_destroy(on_insert);
    }
    if (m->making.ahead_count > 0)
        prealloc_note_made(&m->making.pace, &m->making.figures, now_ms, (int64_t)m->making.ahead_count);
    m->making.ahead_count = 0;
}

bool mongo_note_zeros(struct mongo_store *m, size_t report, struct err *e)
{
    struct mongo_report *more = &m->more[report];
    if (more->has_zeros || more->plain < 0)
        return true;
    bson_t *update = BCON_NEW("$set", "{", "zeros", BCON_BOOL(true), "}");
    bool good =
        mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(more->key)), update, false, NULL, e);
    more->has_zeros = good;
    return good;
}
