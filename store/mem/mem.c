#include "store/mem/mem.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/index.h"
#include "base/mem.h"
#include "store/backfill.h"
#include "store/common/series_map.h"
#include "store/common/values.h"
#include "store/common/watermarks.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#define KEYS_CHUNK_BYTES ((size_t)64 << 10)

struct table {
    struct slice *keys; /* keys of series 1, 2, … */
    size_t key_count, key_capacity;
    struct index by_key;
    struct series_map map;
    struct cells cells; /* cells, by the store's series numbers */
    struct watermarks watermarks;
    struct index by_time;
};

struct book {
    char source[RANGE_SOURCE_BYTES], partition[RANGE_SOURCE_BYTES];
    char report[REPORT_NAME_BYTES], entry[STORE_ENTRY_BYTES];
    int64_t value;
};

struct mem {
    struct store store; /* first: a struct mem is a struct store */
    struct report *reports;
    struct table *tables;
    struct arena keys, sketch_memory;
    struct text packed; /* sketches of one cell */
    struct position *positions;
    size_t position_count, position_capacity;
    struct book *books;
    size_t book_count, book_capacity;
};

static bool find_series(const struct table *t, struct slice key, uint32_t *series)
{
    uint64_t hash = XXH3_64bits(key.ptr, key.len);
    for (size_t at = hash; (*series = index_next(&t->by_key, hash, &at)) != 0;) {
        if (slice_equal(t->keys[*series - 1], key))
            return true;
    }
    return false;
}

/* Set *number to the number of a key: its own, a new one, or `other` if the report is full. */
static bool resolve(void *context, size_t report, struct slice key, uint32_t *number, struct err *e)
{
    struct mem *m = context;
    struct table *t = &m->tables[report];
    (void)e;
    if (find_series(t, key, number))
        return true;
    *number = STORE_SERIES_OTHER;
    if (t->key_count >= m->reports[report].series_max)
        return true;
    t->keys = xgrow(t->keys, &t->key_capacity, t->key_count + 1, sizeof *t->keys);
    t->keys[t->key_count++] = arena_copy(&m->keys, key);
    *number = index_add(&t->by_key, XXH3_64bits(key.ptr, key.len));
    return true;
}

static struct cell *cell_of(struct table *t, uint32_t series, uint32_t time)
{
    ASSERT(series <= t->key_count); /* or `other` */
    uint32_t name[2] = {series, time}, number;
    uint64_t hash = XXH3_64bits(name, sizeof name);
    for (size_t at = hash; (number = index_next(&t->by_time, hash, &at)) != 0;) {
        struct cell *c = cells_at(&t->cells, number - 1);
        if (c->series == series && c->time == time)
            return c;
    }
    index_add(&t->by_time, hash);
    t->cells.data = xgrow(t->cells.data, &t->cells.capacity, t->cells.count + 1, t->cells.stride);
    struct cell *c = cells_at(&t->cells, t->cells.count++);
    memset(c, 0, t->cells.stride);
    c->series = series;
    c->time = time;
    return c;
}

static struct book *find_book(struct mem *m, const struct range *range, const char *report, const char *entry)
{
    for (size_t i = 0; i < m->book_count; i++) {
        struct book *b = &m->books[i];
        if (strcmp(b->source, range->source) == 0 && strcmp(b->partition, range->partition) == 0 &&
            strcmp(b->report, report) == 0 && strcmp(b->entry, entry) == 0)
            return b;
    }
    return NULL;
}

static void book_put(struct mem *m, const struct range *range, const char *report, const char *entry,
                     int64_t value)
{
    m->books = xgrow(m->books, &m->book_capacity, m->book_count + 1, sizeof *m->books);
    struct book *b = &m->books[m->book_count++];
    snprintf(b->source, sizeof b->source, "%s", range->source);
    snprintf(b->partition, sizeof b->partition, "%s", range->partition);
    snprintf(b->report, sizeof b->report, "%s", report);
    snprintf(b->entry, sizeof b->entry, "%s", entry);
    b->value = value;
}

static void book_add(struct mem *m, const struct range *range, const char *report, const char *entry,
                     int64_t value)
{
    struct book *b = find_book(m, range, report, entry);
    if (b != NULL)
        b->value = value_add(b->value, value);
    else if (value != 0)
        book_put(m, range, report, entry, value);
}

static void book_set(struct mem *m, const struct range *range, const char *report, const char *entry,
                     int64_t value)
{
    struct book *b = find_book(m, range, report, entry);
    if (b != NULL)
        b->value = value;
    else
        book_put(m, range, report, entry, value);
}

/* Note the offsets between which the report counts this source. */
static void note_span(struct mem *m, const struct range *range, const char *report)
{
    char name[STORE_ENTRY_BYTES];
    const struct book *until = find_book(m, range, report, "until");
    if (until == NULL)
        book_set(m, range, report, "since", range->from);
    else if (until->value != range->from)
        book_set(m, range, report, store_gap_entry(until->value, name), range->from);
    book_set(m, range, report, "until", range->to);
}

static void add_source_books(struct mem *m, const struct range *range, const struct books *books)
{
    char name[BOOK_NAME_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++)
        book_add(m, range, "", books_source_name(i, name), books->entries[i]);
}

static void add_report_books(struct mem *m, const struct range *range, const struct books *books)
{
    for (size_t r = 0; r < books->report_count; r++) {
        const int64_t *entries = &books->entries[BOOK_SOURCE_COUNT + r * BOOK_REPORT_COUNT];
        for (int i = 0; i < BOOK_REPORT_COUNT; i++)
            book_add(m, range, m->reports[r].name, books_report_name(i), entries[i]);
    }
}

/* Merge a cell's sketches into those of a cell of the store. */
static void add_sketches(struct mem *m, const struct report *r, struct cell *from, struct cell *to)
{
    for (size_t i = 0; i < r->sketch_count; i++) {
        const enum sketch_kind kind = measure_sketch_kind(report_sketched(r, i));
        sketch_unite(kind, report_sketch(r, to, i), &m->sketch_memory, report_sketch(r, from, i),
                     HISTOGRAM_SCHEMA_MAX);
    }
}

/* Pass the sketches of a cell on. */
static bool scan_cell_sketches(struct mem *m, const struct scan *scan, void *context, struct cell *c,
                               int64_t bucket_ms, struct err *e)
{
    const struct report *r = &m->reports[scan->report];
    for (size_t i = 0; scan->sketch != NULL && i < r->sketch_count; i++) {
        struct slice packed[REPORT_MEASURES_MAX] = {{NULL, 0}};
        text_clear(&m->packed);
        sketch_pack(measure_sketch_kind(report_sketched(r, i)), report_sketch(r, c, i), &m->packed);
        packed[i] = text_slice(&m->packed);
        if (!scan_sketches(scan, r, context, c->series, bucket_ms, packed, e))
            return false;
    }
    return true;
}

static bool add_part_report(struct mem *m, size_t report, const struct part *part, struct err *e)
{
    static const struct range of_report = {.source = ""};
    const struct part_report *pr = &part->reports[report];
    const struct report *r = &m->reports[report];
    struct table *t = &m->tables[report];
    if (!series_map_add(&t->map, part, report, resolve, m, e))
        return false;
    for (size_t i = 0; i < pr->cells.count; i++) {
        struct cell *from = cells_at(&pr->cells, i);
        struct cell *to = cell_of(t, series_map_number(&t->map, part, from->series), from->time);
        report_merge(r, to->value, from->value);
        add_sketches(m, r, from, to);
        if (to->series == STORE_SERIES_OTHER)
            book_add(m, &of_report, r->name, "other", store_cell_count(r, from));
    }
    return true;
}

static void book_late(struct mem *m, size_t report, const struct batch *batch)
{
    static const struct range of_report = {.source = ""};
    int64_t late[SPAN_COUNT];
    char entry[STORE_ENTRY_BYTES];
    if (!store_late(&m->store, report, &m->tables[report].watermarks, batch, late))
        return;
    for (int s = 0; s < SPAN_COUNT; s++)
        book_add(m, &of_report, m->reports[report].name, store_late_entry((enum span)s, entry), late[s]);
}

static struct position *find_position(struct mem *m, const struct range *range)
{
    for (size_t i = 0; i < m->position_count; i++) {
        struct position *p = &m->positions[i];
        if (strcmp(p->range.source, range->source) == 0 && strcmp(p->range.partition, range->partition) == 0)
            return p;
    }
    return NULL;
}

static void note_builds(struct mem *m, const struct range *range)
{
    struct build_stretches all = {0};
    char name[STORE_ENTRY_BYTES];
    for (size_t i = 0; i < m->book_count; i++) {
        const struct book *b = &m->books[i];
        struct build_stretch s;
        if (strcmp(b->source, range->source) == 0 && strcmp(b->partition, range->partition) == 0 &&
            b->report[0] == '\0' && build_read(b->entry, b->value, &s))
            builds_put(&all, &s);
    }
    for (int k = 0; k < BUILD_COUNT; k++) {
        struct build_stretch s;
        if (builds_after(&all, range, (enum build_kind)k, &s))
            book_set(m, range, "", build_entry(&s, name), s.to);
    }
    builds_fini(&all);
}

static void apply_range(struct mem *m, const struct range *range, const struct books *books)
{
    struct position *p = find_position(m, range);
    char name[STORE_ENTRY_BYTES];
    if (p == NULL) {
        m->positions =
            xgrow(m->positions, &m->position_capacity, m->position_count + 1, sizeof *m->positions);
        p = &m->positions[m->position_count++];
        if (range->partition[0] != '\0')
            book_set(m, range, "", "since", range->from);
    }
    p->range = *range;
    p->range.from = 0;
    p->range.state = RANGE_UNCHANGED; /* the books have it */
    add_source_books(m, range, books);
    add_report_books(m, range, books);
    for (size_t r = 0; r < m->store.report_count; r++)
        note_span(m, range, m->reports[r].name);
    if (books->entries[BOOK_REJECTED + REJECT_FUTURE] > 0)
        book_set(m, range, "", store_latest_entry(range, name), range->to);
    if (range->state != RANGE_UNCHANGED)
        book_set(m, range, "", STORE_STATE_ENTRY, range->state);
    note_builds(m, range);
}

/* May the report count the range, which is before the position? `writes`: note that it did. */
static bool backfill_range(struct mem *m, const struct batch *batch, const struct range *range, bool writes,
                           struct err *e)
{
    const char *report = m->reports[batch->report].name;
    struct backfill_entry entries[BACKFILL_ENTRIES_MAX];
    size_t count;
    struct backfill_span span = backfill_span(batch, range);
    for (size_t i = 0; i < m->book_count; i++) {
        const struct book *b = &m->books[i];
        if (strcmp(b->source, range->source) == 0 && strcmp(b->partition, range->partition) == 0 &&
            strcmp(b->report, report) == 0)
            backfill_read(&span, b->entry, b->value);
    }
    if (!backfill_change(&span, entries, &count, e))
        return false;
    for (size_t i = 0; writes && i < count; i++) {
        struct book *old = find_book(m, range, report, entries[i].name);
        if (entries[i].value >= 0)
            book_set(m, range, report, entries[i].name, entries[i].value);
        else
            *old = m->books[--m->book_count];
    }
    return true;
}

static bool check_range(struct mem *m, const struct batch *batch, const struct range *range, struct err *e)
{
    const struct position *p = find_position(m, range);
    if (batch->backfills)
        return p != NULL && range->to <= p->range.to ? backfill_range(m, batch, range, false, e)
                                                     : backfill_ahead(range, e);
    return p == NULL || p->range.to == range->from ||
           err_set(e, EX_DATAERR,
                   "%s: a batch from offset %" PRId64 " does not continue what is counted up to %" PRId64,
                   range->source, range->from, p->range.to);
}

static bool mem_apply(struct store *st, const struct batch *batch, struct err *e)
{
    struct mem *m = (struct mem *)st;
    for (size_t i = 0; i < batch->range_count; i++) {
        if (!check_range(m, batch, &batch->ranges[i], e))
            return false;
    }
    for (size_t i = 0; i < batch->part_count; i++) {
        for (size_t r = 0; r < st->report_count; r++) {
            if (!add_part_report(m, r, batch->parts[i], e))
                return false;
        }
    }
    for (size_t r = 0; r < st->report_count; r++)
        book_late(m, r, batch);
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *range = &batch->ranges[i];
        if (!batch->backfills)
            apply_range(m, range, &batch->books[i]);
        else if (!backfill_range(m, batch, range, true, e))
            return false;
        else
            add_report_books(m, range, &batch->books[i]);
        if (batch->begun > 0)
            book_set(m, range, "", "since", batch->begun);
    }
    return true;
}

/* Every read is of the same state: no other handle can write. */
static bool mem_hold(struct store *st, struct err *e)
{
    (void)st, (void)e;
    return true;
}

static bool mem_housekeep(struct store *st, bool all, struct err *e)
{
    (void)st, (void)all, (void)e; /* every count is in its one place already */
    return true;
}

/* Cells before an expiry watermark stay, since longer resolutions need them; scans never begin before it. */
static bool mem_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                       struct err *e)
{
    struct mem *m = (struct mem *)st;
    (void)trusts_clock, (void)expired, (void)e;
    for (size_t r = 0; r < st->report_count; r++)
        (void)store_move_watermarks(&m->store, &m->reports[r], m->reports[r].keep_ms, now_ms,
                                    &m->tables[r].watermarks);
    return true;
}

static bool mem_watermarks(struct store *st, size_t report, struct watermarks *watermarks, struct err *e)
{
    (void)e;
    *watermarks = ((struct mem *)st)->tables[report].watermarks;
    return true;
}

static bool mem_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest,
                       struct err *e)
{
    const struct cells *cells = &((struct mem *)st)->tables[report].cells;
    (void)e;
    for (size_t i = 0; i < cells->count; i++) {
        int64_t at_ms = cells_at(cells, i)->time * report_cell_ms(&st->reports[report]);
        int64_t start_ms = span_floor(SPAN_HOUR, at_ms);
        if (start_ms >= before_ms)
            continue;
        if (start_ms > newest->start_ms) {
            newest->before_ms = newest->start_ms;
            newest->start_ms = start_ms;
        } else if (start_ms < newest->start_ms && start_ms > newest->before_ms) {
            newest->before_ms = start_ms;
        }
    }
    return true;
}

static bool mem_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e)
{
    struct watermarks *watermarks = &((struct mem *)st)->tables[report].watermarks;
    const struct report *r = &st->reports[report];
    int64_t end_ms;
    if (!store_newest_end(st, report, watermarks, watermarks->before_ms[report_cell(r)], &end_ms, e))
        return false;
    (void)store_lower_watermarks(st, r, end_ms, now_ms, watermarks);
    return true;
}

static bool mem_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e)
{
    const struct cells *cells = &((struct mem *)st)->tables[scan->report].cells;
    int64_t cell_ms = report_cell_ms(&st->reports[scan->report]);
    uint64_t rows = 0;
    if (!store_check_watermark(scan, &((struct mem *)st)->tables[scan->report].watermarks, e))
        return false;
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *c = cells_at(cells, i);
        int64_t at_ms = c->time * cell_ms;
        if (at_ms < scan->from_ms || at_ms >= scan->to_ms || !series_set_has(&scan->series, c->series))
            continue;
        if (!deadline_check(st->deadline, e))
            return false;
        if (rows++ == scan->rows_max)
            return err_set(e, EX_UNAVAILABLE, "too many rows: more than %" PRIu64 " would be read",
                           scan->rows_max);
        stats->rows++;
        stats->bytes += cells->stride;
        fn(context, c->series, span_floor(scan->resolution, at_ms), c->value);
        if (!scan_cell_sketches((struct mem *)st, scan, context, c, span_floor(scan->resolution, at_ms), e))
            return false;
    }
    return true;
}

static bool mem_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                            struct err *e)
{
    (void)e;
    *found = find_series(&((struct mem *)st)->tables[report], key, series);
    return true;
}

static bool mem_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    const struct table *t = &((struct mem *)st)->tables[report];
    if (series > t->key_count)
        return err_set(e, EX_DATAERR, "report %s has no series %" PRIu32, st->reports[report].name, series);
    if (series == STORE_SERIES_OTHER)
        text_puts(key, STORE_OTHER_KEY);
    else
        text_add(key, t->keys[series - 1].ptr, t->keys[series - 1].len);
    return true;
}

static bool mem_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    const struct table *t = &((struct mem *)st)->tables[report];
    (void)e;
    for (size_t i = 0; i < t->key_count; i++) {
        if (!fn(context, (uint32_t)i + 1, t->keys[i]))
            break;
    }
    return true;
}

static bool mem_positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    const struct mem *m = (struct mem *)st;
    (void)e;
    for (size_t i = 0; i < m->position_count; i++) {
        if (!fn(context, &m->positions[i]))
            break;
    }
    return true;
}

static bool mem_books(struct store *st, book_fn *fn, void *context, struct err *e)
{
    const struct mem *m = (struct mem *)st;
    (void)e;
    for (size_t i = 0; i < m->book_count; i++) {
        const struct book *b = &m->books[i];
        if (!fn(context, b->source, b->partition, b->report, b->entry, b->value))
            break;
    }
    return true;
}

static void mem_close(struct store *st)
{
    struct mem *m = (struct mem *)st;
    for (size_t r = 0; r < st->report_count; r++) {
        series_map_fini(&m->tables[r].map);
        free(m->tables[r].keys);
        index_fini(&m->tables[r].by_key);
        free(m->tables[r].cells.data);
        index_fini(&m->tables[r].by_time);
        report_fini(&m->reports[r]);
    }
    arena_fini(&m->keys);
    arena_fini(&m->sketch_memory);
    text_fini(&m->packed);
    free(m->tables);
    free(m->reports);
    free(m->positions);
    free(m->books);
    free(m);
}

static const struct store_writer_ops writer_ops = {.apply = mem_apply,
                                                   .backfills = true,
                                                   .housekeep = mem_housekeep,
                                                   .expire = mem_expire,
                                                   .move_back = mem_move_back};

static const struct store_reader_ops reader_ops = {
    .watermarks = mem_watermarks,
    .newest = mem_newest,
    .hold = mem_hold,
    .scan = mem_scan,
    .series_find = mem_series_find,
    .series_key = mem_series_key,
    .series_each = mem_series_each,
    .values = values_walk,
    .positions = mem_positions,
    .books = mem_books,
};

struct store *mem_open(enum store_mode mode, const struct report *reports, size_t report_count, struct err *e)
{
    if (mode == STORE_READ) {
        err_set(e, EX_NOINPUT,
                "the store mem: belongs to the process that counts into it: no other process can read it");
        return NULL;
    }
    struct mem *m = xcalloc(1, sizeof *m);
    m->reports = xcalloc(report_count, sizeof *m->reports);
    m->tables = xcalloc(report_count, sizeof *m->tables);
    arena_init(&m->keys, KEYS_CHUNK_BYTES);
    arena_init(&m->sketch_memory, KEYS_CHUNK_BYTES);
    for (size_t r = 0; r < report_count; r++) {
        m->reports[r] = reports[r];
        m->reports[r].definition = xstrdup(reports[r].definition);
        m->reports[r].given = NULL; /* which the definition has */
        m->tables[r].cells.stride = report_cell_bytes(&reports[r]);
    }
    m->store = (struct store){.close = mem_close,
                              .reader = &reader_ops,
                              .writer = mode == STORE_WRITE ? &writer_ops : NULL,
                              .reports = m->reports,
                              .report_count = report_count};
    return &m->store;
}
