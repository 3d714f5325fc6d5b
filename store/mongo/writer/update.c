/* Turns a batch into updates: one for each document that it changes, in the order of their collections. Those
 * of longer documents have a log of their own, and are written once more when many batches are rolled up. */
#include "store/mongo/writer/update.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/common/watermarks.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/prealloc.h"
#include "store/mongo/writer/sums.h"
#include "store/mongo/writer/update_internal.h"
#include "store/writer.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#define MAYBE_NEW   (UINT64_C(1) << 63)
#define BUCKET_BITS 15 /* of a signature: the time buckets, of which a batch has few combinations */

/* ---- which series */

/* The number of a series: known, new, or `other` if the report is full. Names are not read while there is
 * room. */
static bool resolve(void *context, size_t report, struct slice key, uint32_t *number, struct err *e)
{
    struct mongo_store *m = context;
    struct mongo_report *more = &m->more[report];
    uint32_t max = m->reports[report].series_max;
    *number = mongo_names_find(&more->names, key);
    if (*number != 0)
        return true;
    if (!more->has_all_names && (size_t)more->series_found + more->names.count >= max) {
        if (!mongo_read_names(m, report, e))
            return false;
        *number = mongo_names_find(&more->names, key);
    }
    if (*number == 0 && more->names.count < max)
        *number = mongo_names_add(&more->names, key);
    return true; /* 0 is `other` */
}

bool mongo_resolve(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    for (size_t p = 0; p < batch->part_count; p++) {
        for (size_t r = 0; r < m->store.report_count; r++) {
            if (!series_map_add(&m->more[r].map, batch->parts[p], r, resolve, m, e))
                return false;
        }
    }
    return true;
}

void mongo_note_stored(struct mongo_store *m)
{
    for (size_t r = 0; r < m->store.report_count; r++) {
        struct mongo_names *names = &m->more[r].names;
        for (; names->stored < names->count; names->stored++)
            names->names[names->stored].is_stored = true;
    }
}

/* ---- one update */

void mongo_begin_update(struct update *u)
{
    bson_init(&u->inc);
    bson_init(&u->min);
    bson_init(&u->max);
    bson_init(&u->push);
    bson_init(&u->unset);
}

void mongo_drop_update(struct update *u)
{
    bson_destroy(&u->inc);
    bson_destroy(&u->min);
    bson_destroy(&u->max);
    bson_destroy(&u->push);
    bson_destroy(&u->unset);
}

/* The log that the next update goes to. A roll-up has pieces: mongo/writer/longer.h. */
static struct mongo_log *next_log(const struct update *u)
{
    struct mongo_longer *l = &u->m->longer;
    if (!u->rolls_up)
        return u->log;
    if (l->piece_count == 0 || l->piece_updates == MONGO_ROLL_UP_UPDATES) {
        const size_t before = l->piece_capacity;
        if (l->piece_count > 0)
            mongo_log_end(&l->pieces[l->piece_count - 1]);
        l->pieces = xgrow(l->pieces, &l->piece_capacity, l->piece_count + 1, sizeof *l->pieces);
        memset(l->pieces + before, 0, (l->piece_capacity - before) * sizeof *l->pieces);
        mongo_log_begin(&l->pieces[l->piece_count++]);
        l->piece_updates = 0;
    }
    l->piece_updates++;
    return &l->pieces[l->piece_count - 1];
}

void mongo_end_update(struct update *u, const bson_t *filter, const bson_t *set)
{
    const struct mongo_store *m = u->m;
    char applied[MONGO_SLOT_BYTES + 16];
    bson_t entry = BSON_INITIALIZER, f, up, s, on_insert;
    snprintf(applied, sizeof applied, "applied.%s", m->writer.slot);
    BSON_APPEND_UTF8(&entry, "c", u->collection);
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "f", &f);
    bson_concat(&f, filter);
    if (m->writer.fills_from > 0)
        mongo_add_guard_of_copy(&f, applied, m->writer.fills_from, u->after + 1);
    else
        mongo_add_guard(&f, applied, u->after + 1);
    bson_append_document_end(&entry, &f);
    BSON_APPEND_DOCUMENT_BEGIN(&entry, "u", &up);
    mongo_add_operator(&up, "$inc", &u->inc);
    mongo_add_operator(&up, "$min", &u->min);
    mongo_add_operator(&up, "$max", &u->max);
    mongo_add_operator(&up, "$push", &u->push);
    mongo_add_operator(&up, "$unset", &u->unset);
    BSON_APPEND_DOCUMENT_BEGIN(&up, "$set", &s);
    BSON_APPEND_INT64(&s, applied, u->number);
    BSON_APPEND_DATE_TIME(&s, "modified", u->now_ms);
    if (set != NULL)
        bson_concat(&s, set);
    bson_append_document_end(&up, &s);
    BSON_APPEND_DOCUMENT_BEGIN(&up, "$setOnInsert", &on_insert);
    BSON_APPEND_INT32(&on_insert, "v", MONGO_SCHEMA);
    bson_append_document_end(&up, &on_insert);
    bson_append_document_end(&entry, &up);
    mongo_log_add(next_log(u), &entry);
    bson_destroy(&entry);
}

/* Adds the columns of every measure without a sketch at a time bucket: "daily", "hourly.13". */
static void add_slot(struct update *u, const char *slot, const int64_t *columns)
{
    const struct report *r = &u->m->reports[u->report];
    const struct mongo_report *more = &u->m->more[u->report];
    char path[128];
    for (size_t i = 0; i < r->measure_count; i++) {
        if (measure_has_sketch(&r->measures[i]))
            continue;
        snprintf(path, sizeof path, "%s%s", more->fields[i], slot);
        mongo_add_value(&u->inc, &u->min, &u->max, &r->measures[i], more->is_decimal, path,
                        &columns[r->measures[i].column]);
    }
}

void mongo_end_document(struct update *u, uint32_t series, enum span span, int64_t date_ms)
{
    bson_t filter = BSON_INITIALIZER;
    mongo_add_document(&filter, u->m, u->report, span, date_ms, mongo_key(&u->m->more[u->report], series));
    mongo_end_update(u, &filter, NULL);
    bson_destroy(&filter);
}

/* ---- cells of one report, sorted by series and time */

static void need_room(struct mongo_store *m, size_t count)
{
    ASSERT(count < UINT32_MAX);
    if (count <= m->sorting.item_capacity)
        return;
    m->sorting.item_capacity = count;
    m->sorting.items = xrealloc(m->sorting.items, count * sizeof *m->sorting.items);
    m->sorting.scratch = xrealloc(m->sorting.scratch, count * sizeof *m->sorting.scratch);
    m->sorting.cells = xrealloc(m->sorting.cells, count * sizeof *m->sorting.cells);
    m->sorting.documents = xrealloc(m->sorting.documents, count * sizeof *m->sorting.documents);
}

static void sort_items(struct mongo_store *m, size_t count)
{
    if (count > 0 && radix_sort(m->sorting.items, m->sorting.scratch, count) == m->sorting.scratch) {
        struct radix_item *swap = m->sorting.items;
        m->sorting.items = m->sorting.scratch;
        m->sorting.scratch = swap;
    }
}

static size_t sort_cells(struct mongo_store *m, const struct batch *batch, size_t report)
{
    size_t count = 0, n = 0;
    for (size_t p = 0; p < batch->part_count; p++)
        count += batch->parts[p]->reports[report].cells.count;
    need_room(m, count);
    m->sorting.newest = 0;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct part *part = batch->parts[p];
        const struct cells *cells = &part->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++, n++) {
            struct cell *c = cells_at(cells, i);
            uint32_t series = series_map_number(&m->more[report].map, part, c->series);
            m->sorting.cells[n] = c;
            m->sorting.items[n] = (struct radix_item){(uint64_t)series << 32 | c->time, (uint32_t)n};
            m->sorting.newest = c->time > m->sorting.newest ? c->time : m->sorting.newest;
        }
    }
    sort_items(m, count);
    return count;
}

/* The same of the sums of a roll-up. */
static size_t sort_sums(struct mongo_store *m, size_t report)
{
    const struct cells *cells = &m->longer.sums[report].cells;
    need_room(m, cells->count);
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *c = cells_at(cells, i);
        m->sorting.cells[i] = c;
        m->sorting.items[i] = (struct radix_item){(uint64_t)c->series << 32 | c->time, (uint32_t)i};
    }
    sort_items(m, cells->count);
    return cells->count;
}

/* Merges a cell; or, if the batch takes events out, its opposite. Sums of a roll-up are opposites already. */
static void merge_cell(const struct update *u, const struct cell *c, int64_t *columns)
{
    const struct report *r = &u->m->reports[u->report];
    const bool takes = u->m->batch.taken != NULL && !u->rolls_up;
    int64_t opposite[REPORT_COLUMNS_MAX];
    for (size_t i = 0; takes && i < r->column_count; i++)
        opposite[i] = c->value[i] == INT64_MIN ? INT64_MAX : -c->value[i];
    report_merge(r, columns, takes ? opposite : c->value);
}

/* Merges the cells from *i on that have the same series and time. */
static void merge_cells(const struct update *u, size_t count, size_t *i, int64_t *columns)
{
    uint64_t key = u->m->sorting.items[*i].key;
    for (; *i < count && u->m->sorting.items[*i].key == key; ++*i)
        merge_cell(u, update_cell_at(u, *i), columns);
}

/* Writes one document, from the cells from `i` on. When a bucket ends, it is written unless it has expired,
 * and added to the next longer bucket. */
static void write_document(struct update *u, const struct mongo_kind *k, size_t i, size_t count)
{
    struct mongo_store *m = u->m;
    const struct report *r = &m->reports[u->report];
    int64_t sums[SPAN_COUNT][REPORT_COLUMNS_MAX] = {{0}};
    const struct watermarks *watermarks = &m->more[u->report].watermarks;
    const enum span longest = mongo_longest(r, k);
    uint32_t series = update_series_at(u, i);
    int64_t start_ms = span_floor(k->span, update_ms_at(u, i)), next_ms = span_next(k->span, start_ms);
    char path[MONGO_PATH_BYTES];
    bool goes_on = true;
    mongo_begin_update(u);
    while (goes_on) {
        int64_t at_ms = update_ms_at(u, i);
        merge_cells(u, count, &i, sums[k->finest]);
        goes_on = i < count && update_series_at(u, i) == series && update_ms_at(u, i) < next_ms;
        for (enum span s = k->finest; s < k->span; s++) {
            if (goes_on && span_floor(s, update_ms_at(u, i)) == span_floor(s, at_ms))
                break;
            if (s > longest || at_ms >= watermarks->before_ms[s])
                add_slot(u, mongo_path(k, s, at_ms, path), sums[s]);
            report_merge(r, sums[s + 1], sums[s]);
            memset(sums[s], 0, sizeof sums[s]);
        }
    }
    add_slot(u, mongo_member(k->span), sums[k->span]);
    mongo_end_document(u, series, k->span, start_ms);
}

/* The hits of a bucket. Without a count among the measures, a bucket is one hit. */
static int64_t hits_of(const struct update *u, const int64_t *columns)
{
    int plain = u->m->more[u->report].plain;
    return plain < 0 ? 1 : columns[u->m->reports[u->report].measures[plain].column];
}

/* Adds a period unless it is there. Cells come in order, so it is mostly the last one. */
static void note_written(struct mongo_written *written, int64_t start_ms)
{
    size_t i = written->count;
    while (i > 0 && written->starts[i - 1] != start_ms)
        i--;
    if (i > 0)
        return;
    written->starts = xgrow(written->starts, &written->capacity, written->count + 1, sizeof *written->starts);
    written->starts[written->count++] = start_ms;
}

/* Makes a signature of the document's update, below MAYBE_NEW: equal for alike updates, and close for updates
 * of the same time buckets. Describes the document for preallocation. Returns the first cell of the next
 * document. */
static size_t sign_document(const struct update *u, const struct mongo_kind *k, size_t i, size_t count,
                            uint64_t *signature, struct mongo_touch *t)
{
    uint32_t series = update_series_at(u, i);
    *t = (struct mongo_touch){.series = series, .start_ms = span_floor(k->span, update_ms_at(u, i))};
    int64_t end_ms = span_next(k->span, t->start_ms);
    uint64_t buckets = 0, values = 0;
    while (update_is_within(u, i, count, series, end_ms)) {
        int64_t slot[1 + REPORT_COLUMNS_MAX] = {span_floor(k->finest, update_ms_at(u, i))};
        if (k->finest == SPAN_DAY && u->m->with_weeks)
            note_written(&u->m->sorting.written[MONGO_WEEKS], civil_week_floor(u->m->week_start, slot[0]));
        int64_t next_ms = span_next(k->finest, slot[0]);
        while (update_is_within(u, i, count, series, next_ms)) {
            t->last_ms = update_ms_at(u, i);
            merge_cells(u, count, &i, slot + 1);
        }
        t->hits = value_add(t->hits, hits_of(u, slot + 1));
        buckets = XXH3_64bits_withSeed(slot, sizeof *slot, buckets);
        values = XXH3_64bits_withSeed(slot, sizeof slot, values);
    }
    *signature = buckets >> (64 - BUCKET_BITS) << (63 - BUCKET_BITS) | values >> (1 + BUCKET_BITS);
    t->is_last = i == count || update_series_at(u, i) != series;
    return i;
}

/* The start of the first document that is not expired. Documents of months are always written, so that every
 * event that was let in is counted somewhere. */
static int64_t first_kept(const struct update *u, const struct mongo_kind *k)
{
    enum span longest = mongo_longest(&u->m->reports[u->report], k);
    return longest == SPAN_MONTH ? 0 : u->m->more[u->report].watermarks.before_ms[longest];
}

/* The start of the first document that is not expired, by the time of the batch, too: another writer may move
 * the watermark meanwhile, by many periods if it is the first one, or if `keep` is shorter than it was. */
static int64_t first_kept_soon(const struct update *u, const struct mongo_kind *k)
{
    const struct mongo_store *m = u->m;
    const struct report *r = &m->reports[u->report];
    struct watermarks soon = m->more[u->report].watermarks;
    const int64_t newest_ms = (int64_t)m->sorting.newest * report_cell_ms(r);
    if (m->store.reader != NULL) /* else it is a copy: nobody else writes there */
        (void)store_move_watermarks(&m->store, r, r->keep_ms, newest_ms < u->now_ms ? newest_ms : u->now_ms,
                                    &soon);
    return soon.before_ms[mongo_longest(r, k)];
}

/* Notes which longer documents lack the batch until a roll-up. Readers would look for its counts in a fine
 * document meanwhile: one that has expired, or does so soon, cannot wait. */
static void note_fine(const struct update *u, enum span span, int64_t start_ms, int64_t kept_ms)
{
    if (kept_ms > 0 && start_ms < span_next(span, span_next(span, kept_ms)))
        u->m->batch.rolls_up = true;
    else
        mongo_sums_note(u->m, span, start_ms);
}

/* Writes documents that are sent together one behind the other (mongo/send/together.h): alike ones, beside
 * those that differ only in their values. Documents that may be new come last: if none is, nobody asks which
 * exist (mongo/send/chunk.h). */
static void write_kind(struct update *u, const struct mongo_kind *k, size_t kind, size_t cell_count)
{
    struct mongo_store *m = u->m;
    size_t count = 0;
    int64_t kept_ms = first_kept(u, k), soon_ms = kind == 0 ? first_kept_soon(u, k) : 0;
    for (size_t i = 0; i < cell_count;) {
        uint64_t signature;
        int64_t start_ms = span_floor(k->span, update_ms_at(u, i));
        struct mongo_touch touch;
        if (kind == 0)
            note_fine(u, k->span, start_ms, soon_ms);
        if (k->span == SPAN_MONTH)
            note_written(&m->sorting.written[MONGO_YEARS], start_ms);
        size_t next = sign_document(u, k, i, cell_count, &signature, &touch);
        if (start_ms < kept_ms) {
            i = next;
            continue;
        }
        bool is_there = u->rolls_up || mongo_touch(m, u->report, kind, &touch);
        m->sorting.documents[count++] =
            (struct radix_item){signature | (is_there ? 0 : MAYBE_NEW), (uint32_t)i};
        i = next;
    }
    const struct radix_item *sorted =
        count > 0 ? radix_sort(m->sorting.documents, m->sorting.scratch, count) : NULL;
    for (size_t i = 0; i < count; i++)
        write_document(u, k, sorted[i].index, cell_count);
    if (u->rolls_up)
        m->store.longer.longer_updates += count;
    else if (kind == 0)
        m->store.longer.fine_updates += count;
    if (!u->rolls_up)
        mongo_write_ahead(m, u->report, kind, u->now_ms, &m->batch.log);
}

/* Stamps the periods that must be rolled up again. */
static void write_stamps(struct update *u, size_t target)
{
    const struct mongo_written *written = &u->m->sorting.written[target];
    bson_t filter;
    if (written->count == 0)
        return;
    bson_init(&filter);
    mongo_begin_update(u);
    mongo_stamp_id(u->m, &mongo_targets[target], u->report, &u->m->id);
    BSON_APPEND_UTF8(&filter, "_id", u->m->id.ptr);
    mongo_stamp_periods(&u->inc, &mongo_targets[target], written->starts, written->count);
    u->collection = MONGO_JOBS;
    mongo_end_update(u, &filter, NULL);
    bson_destroy(&filter);
}

/* Writes documents of the kinds from `first` up to `end`. */
static void write_kinds(struct update *u, size_t first, size_t end, size_t cell_count)
{
    size_t kind_count;
    const struct mongo_kind *kinds = mongo_kinds(&u->m->reports[u->report], &kind_count);
    for (size_t n = first; n < end && n < kind_count; n++) {
        char name[MONGO_NAME_BYTES];
        u->collection = mongo_collection(u->m, u->report, span_name(kinds[n].span), name);
        write_kind(u, &kinds[n], n, cell_count);
    }
}

static void write_longer(struct update *u, size_t cell_count)
{
    for (size_t t = 0; t < MONGO_TARGETS; t++)
        u->m->sorting.written[t].count = 0;
    write_kinds(u, 1, MONGO_KINDS_MAX, cell_count);
    for (size_t t = 0; t < MONGO_TARGETS; t++)
        write_stamps(u, t);
}

/* Adds the cells to the sums of a roll-up: a sum for each bucket of the shortest longer documents. */
static void add_sums(const struct update *u, size_t cell_count)
{
    const enum span finest = mongo_kinds(&u->m->reports[u->report], NULL)[1].finest;
    for (size_t i = 0; i < cell_count;) {
        int64_t columns[REPORT_COLUMNS_MAX] = {0};
        const uint32_t series = update_series_at(u, i);
        const int64_t start_ms = span_floor(finest, update_ms_at(u, i)),
                      next_ms = span_next(finest, start_ms);
        while (update_is_within(u, i, cell_count, series, next_ms))
            merge_cells(u, cell_count, &i, columns);
        mongo_sums_add(u->m, u->report, series, start_ms, columns);
    }
}

static void write_documents(struct update *u, size_t cell_count)
{
    struct mongo_log *fine = u->log;
    if (u->of_newest) {
        mongo_write_sketches(u, cell_count);
        return;
    }
    mongo_write_tops(u, cell_count); /* first: readers of open periods rely on their sums */
    write_kinds(u, 0, 1, cell_count);
    mongo_write_sketches(u, cell_count);
    u->log = &u->m->batch.longer;
    write_longer(u, cell_count);
    u->log = fine;
    add_sums(u, cell_count);
}

/* Writes the series that the server may not have, so that they are found by their names. */
static void write_series(struct update *u)
{
    struct mongo_names *names = &u->m->more[u->report].names;
    char name[MONGO_NAME_BYTES];
    u->collection = mongo_collection(u->m, u->report, "series", name);
    for (size_t i = names->stored; i < names->count; i++) {
        bson_t filter;
        if (names->names[i].is_stored)
            continue;
        bson_init(&filter);
        mongo_begin_update(u);
        mongo_id(&u->m->id, u->m, u->report, NULL, &names->names[i].key);
        bson_append_utf8(&filter, "_id", -1, u->m->id.ptr != NULL ? u->m->id.ptr : "", (int)u->m->id.len);
        mongo_add_metadata(&filter, u->m, u->report, &names->names[i].key);
        mongo_end_update(u, &filter, NULL);
        bson_destroy(&filter);
    }
}

/* Events that went to `other`, for the report's books. */
static int64_t count_other(const struct update *u, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count && update_series_at(u, i) == STORE_SERIES_OTHER; i++)
        sum = value_add(sum, store_cell_count(&u->m->reports[u->report], update_cell_at(u, i)));
    return sum;
}

/* Writes series and documents of the report. Returns its number of cells. */
static size_t write_report(struct update *u, const struct batch *batch)
{
    write_series(u);
    size_t count = sort_cells(u->m, batch, u->report);
    write_documents(u, count);
    return count;
}

/* Begins the logs of the batch under way. */
static struct update begin_batch(struct mongo_store *m)
{
    mongo_log_begin(&m->batch.log);
    mongo_log_begin(&m->batch.longer);
    mongo_sums_begin(m);
    return (struct update){.m = m,
                           .log = &m->batch.log,
                           .after = m->writer.committed,
                           .number = m->writer.number,
                           .now_ms = clock_wall_ms(m->store.clock)};
}

static void end_batch(struct mongo_store *m)
{
    mongo_log_end(&m->batch.log);
    mongo_log_end(&m->batch.longer);
}

void mongo_write_counts(struct mongo_store *m, const struct batch *batch)
{
    struct update u = begin_batch(m);
    u.of_newest = batch->of_newest;
    for (u.report = 0; u.report < m->store.report_count; u.report++) {
        (void)write_report(&u, batch);
        if (m->batch.fills && !batch->of_newest) {
            u.collection = MONGO_BOOKS;
            mongo_write_report_books(&u, batch, 0);
        }
    }
    end_batch(m);
}

void mongo_write_opposites(struct mongo_store *m, const struct batch *batch)
{
    struct update u = begin_batch(m);
    for (u.report = 0; u.report < m->store.report_count; u.report++) {
        if (m->batch.taken[u.report])
            write_documents(&u, sort_cells(m, batch, u.report));
    }
    u.collection = MONGO_BOOKS;
    mongo_write_books(&u, batch);
    end_batch(m);
}

void mongo_write_updates(struct mongo_store *m, const struct batch *batch)
{
    struct update u = begin_batch(m);
    int64_t *others = xcalloc(m->store.report_count + 1, sizeof *others);
    for (u.report = 0; u.report < m->store.report_count; u.report++) {
        size_t count = write_report(&u, batch);
        others[u.report] = count_other(&u, count);
    }
    u.collection = MONGO_BOOKS;
    for (u.report = 0; u.report < m->store.report_count; u.report++)
        mongo_write_report_books(&u, batch, others[u.report]);
    mongo_write_books(&u, batch);
    free(others);
    end_batch(m);
}

void mongo_write_roll_up(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    struct update u = {.m = m,
                       .after = l->rolled,
                       .number = l->to,
                       .rolls_up = true,
                       .now_ms = clock_wall_ms(m->store.clock)};
    l->piece_count = l->sent = l->piece_updates = 0;
    for (u.report = 0; u.report < m->store.report_count; u.report++)
        write_longer(&u, sort_sums(m, u.report));
    if (l->piece_count > 0)
        mongo_log_end(&l->pieces[l->piece_count - 1]);
}
