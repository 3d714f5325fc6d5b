/* Reads counts, the dictionary, positions and books; each from one snapshot. */
#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "store/common/watermarks.h"
#include "store/sqlite/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_MASK      (((int64_t)1 << BLOCK_SHIFT) - 1)
/* Most wanted blocks that are sought one by one. For more, the scan reads every row of its range. */
#define SEEK_BLOCKS_MAX 8

static const enum level level_of_slot[SPAN_COUNT] = {
    [SPAN_MINUTE] = LEVEL_HOUR, [SPAN_HOUR] = LEVEL_DAY, [SPAN_DAY] = LEVEL_MONTH, [SPAN_MONTH] = LEVEL_YEAR};

/* One scan of one level's table. */
struct walk {
    struct sqlite_store *st;
    const struct scan *scan;
    struct scan_stats *stats;
    const struct report *report;
    enum level level;
    scan_fn *fn;
    void *context;
    uint32_t first_series;         /* first series of the current row */
    int64_t bucket;                /* bucket of the current row; -1: none yet */
    int64_t bucket_ms[BODY_SLOTS]; /* start of the scan's time bucket, by slot of the row */
    struct body_want want;         /* wanted part of the row */
    uint64_t rows;                 /* rows read by this scan */
    struct err *e;                 /* why a sketch was not taken; its code is 0 before */
};

int64_t sqlite_bucket(enum level level, int64_t ms)
{
    switch (level) {
    case LEVEL_FRESH:
        return ms / MINUTE_MS;
    case LEVEL_HOUR:
        return ms / HOUR_MS;
    case LEVEL_DAY:
        return ms / DAY_MS;
    case LEVEL_MONTH:
        return civil_month_index(ms);
    default:
        return civil_month_index(ms) / 12;
    }
}

int64_t sqlite_bucket_start(enum level level, int64_t bucket)
{
    static const int64_t lengths[] = {MINUTE_MS, HOUR_MS, DAY_MS};
    return level < LEVEL_MONTH ? bucket * lengths[level]
                               : civil_month_start(level == LEVEL_MONTH ? bucket : bucket * 12);
}

/* Set the slots for a new bucket. Rows are sorted by bucket, so this is rarely called. */
static void enter_bucket(struct walk *w, int64_t bucket)
{
    static const int64_t lengths[] = {0, MINUTE_MS, HOUR_MS, DAY_MS};
    int64_t start_ms = sqlite_bucket_start(w->level, bucket);
    if (w->level == LEVEL_FRESH)
        start_ms = span_floor(w->scan->resolution, start_ms);
    for (uint32_t slot = 0; slot < BODY_SLOTS; slot++)
        w->bucket_ms[slot] = w->level == LEVEL_YEAR ? civil_month_start(12 * bucket + slot)
                                                    : start_ms + slot * lengths[w->level];
    w->want.first = w->want.end = 0;
    for (uint32_t slot = 0; slot < BODY_SLOTS; slot++) {
        w->want.first += w->bucket_ms[slot] < w->scan->from_ms;
        w->want.end += w->bucket_ms[slot] < w->scan->to_ms;
    }
    w->bucket = bucket;
}

static bool walk_slot(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                      const struct slice *sketches)
{
    struct walk *w = context;
    w->fn(w->context, w->first_series + series, w->bucket_ms[slot], values);
    return scan_sketches(w->scan, w->report, w->context, w->first_series + series, w->bucket_ms[slot],
                         sketches, w->e);
}

/* The lowest `count` bits. */
static uint64_t below(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

/* Set the bits of the wanted series of a block; false: none is wanted. */
static bool wanted_in_block(const struct series_set *set, uint32_t block, uint64_t wanted[BODY_SERIES / 64])
{
    const uint32_t words = BODY_SERIES / 64;
    uint64_t any = 0;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t first = block * BODY_SERIES + i * 64;
        wanted[i] = 0;
        if (set->kind == SERIES_ALL)
            wanted[i] = UINT64_MAX;
        else if (set->kind == SERIES_ONE && set->one / 64 == first / 64)
            wanted[i] = (uint64_t)1 << (set->one % 64);
        else if (set->kind == SERIES_SET && first < set->bits_max)
            wanted[i] = set->bits[first / 64] & below(set->bits_max - first);
        any |= wanted[i];
    }
    return any != 0;
}

static bool walk_row(struct walk *w, sqlite3_stmt *s, struct err *e)
{
    int64_t at = sqlite3_column_int64(s, 0);
    uint32_t block = (uint32_t)(at & BLOCK_MASK);
    if (!wanted_in_block(&w->scan->series, block, w->want.series))
        return true;
    struct slice body = slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
    if (w->bucket != at >> BLOCK_SHIFT)
        enter_bucket(w, at >> BLOCK_SHIFT);
    w->first_series = block * BODY_SERIES;
    w->stats->bytes += body.len;
    w->stats->rows++;
    if (!deadline_check(w->st->base.deadline, e))
        return false;
    if (++w->rows > w->scan->rows_max)
        return err_set(
            e, EX_UNAVAILABLE,
            "the answer takes more than %llu rows (query.rows_max): ask for a shorter range, a coarser "
            "step, or declare a report with fewer dimensions",
            (unsigned long long)w->scan->rows_max);
    e->code = 0;
    w->e = e;
    if (!body_each(body, w->report, &w->want, walk_slot, w, &w->st->body.loose))
        return e->code != 0 ? false
                            : err_set(e, EX_DATAERR, "%s is damaged: row %lld of %s does not decode",
                                      w->st->path, (long long)at, sqlite_level_names[w->level]);
    return true;
}

static bool walk_range(struct walk *w, int64_t first_at, int64_t last_at, struct err *e)
{
    sqlite3_stmt *s = w->st->tables[w->scan->report].levels[w->level].range;
    bool good = true;
    int rc = SQLITE_DONE;
    sqlite3_bind_int64(s, 1, first_at);
    sqlite3_bind_int64(s, 2, last_at);
    while (good && (rc = sqlite3_step(s)) == SQLITE_ROW)
        good = walk_row(w, s, e);
    sqlite3_reset(s);
    return good && (rc == SQLITE_DONE || sqlite_fail(w->st, e, "reading counts"));
}

/* Seek from row to row of one block: a gap of any length costs one seek. */
static bool walk_block(struct walk *w, int64_t first, int64_t last, uint32_t block, struct err *e)
{
    sqlite3_stmt *s = w->st->tables[w->scan->report].levels[w->level].seek;
    bool good = true;
    for (int64_t bucket = first; good && bucket <= last;) {
        sqlite3_bind_int64(s, 1, bucket << BLOCK_SHIFT | block);
        int rc = sqlite3_step(s);
        if (rc == SQLITE_ROW) {
            int64_t at = sqlite3_column_int64(s, 0);
            bucket = at >> BLOCK_SHIFT;
            if (bucket <= last && (at & BLOCK_MASK) == block)
                good = walk_row(w, s, e);
            /* If the row is of an earlier block, the wanted block may follow in the same bucket. */
            bucket += (at & BLOCK_MASK) >= block;
        } else {
            good = rc == SQLITE_DONE || sqlite_fail(w->st, e, "reading counts");
            bucket = last + 1;
        }
        sqlite3_reset(s);
    }
    return good;
}

/* List the blocks of the set; false: they are more than SEEK_BLOCKS_MAX. */
static bool few_blocks(const struct series_set *set, uint32_t blocks[SEEK_BLOCKS_MAX], size_t *count)
{
    uint64_t wanted[BODY_SERIES / 64];
    *count = 0;
    if (set->kind == SERIES_ALL)
        return false;
    if (set->kind == SERIES_ONE) {
        blocks[(*count)++] = set->one / BODY_SERIES;
        return true;
    }
    for (uint32_t block = 0; block * BODY_SERIES < set->bits_max; block++) {
        if (!wanted_in_block(set, block, wanted))
            continue;
        if (*count == SEEK_BLOCKS_MAX)
            return false;
        blocks[(*count)++] = block;
    }
    return true;
}

static bool walk_level(struct walk *w, enum level level, struct err *e)
{
    uint32_t blocks[SEEK_BLOCKS_MAX];
    size_t count;
    w->level = level;
    w->bucket = -1;
    int64_t first = sqlite_bucket(level, w->scan->from_ms), last = sqlite_bucket(level, w->scan->to_ms - 1);
    if (!few_blocks(&w->scan->series, blocks, &count))
        return walk_range(w, first << BLOCK_SHIFT, last << BLOCK_SHIFT | BLOCK_MASK, e);
    for (size_t i = 0; i < count; i++) {
        if (!walk_block(w, first, last, blocks[i], e))
            return false;
    }
    return true;
}

bool sqlite_end_reading(struct sqlite_store *st, bool good, struct err *e)
{
    if (st->holds)
        return good;
    if (!good) {
        struct err ignored;
        (void)!sqlite_run(st, st->rollback, &ignored, "ending a read");
        return false;
    }
    return sqlite_run(st, st->commit, e, "ending a read");
}

bool sqlite_hold(struct store *base, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    ASSERT(st->lock_fd < 0 && !st->holds);
    st->holds = sqlite_run(st, st->begin, e, "beginning a read");
    return st->holds;
}

bool sqlite_scan(struct store *base, const struct scan *scan, scan_fn *fn, void *context,
                 struct scan_stats *stats, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    ASSERT(scan->report < base->report_count && scan->from_ms >= 0);
    if (scan->from_ms >= scan->to_ms)
        return true;
    struct walk w = {.st = st,
                     .scan = scan,
                     .stats = stats,
                     .report = &st->reports[scan->report],
                     .fn = fn,
                     .context = context};
    for (size_t i = 0; i < w.report->sketch_count; i++)
        w.want.sketches |= (uint64_t)scan_wants_sketch(scan, w.report, i) << i;
    if (!st->holds && !sqlite_run(st, st->begin, e, "beginning a read"))
        return false;
    struct watermarks watermarks;
    bool good = sqlite_read_watermarks(st, scan->report, &watermarks, e) &&
                store_check_watermark(scan, &watermarks, e) &&
                walk_level(&w, level_of_slot[scan->resolution], e) && walk_level(&w, LEVEL_FRESH, e);
    return sqlite_end_reading(st, good, e);
}

bool sqlite_series_find(struct store *base, size_t report, struct slice key, uint32_t *series, bool *found,
                        struct err *e)
{
    return dict_find(sqlite_of(base), report, key, series, found, e);
}

bool sqlite_series_key(struct store *base, size_t report, uint32_t series, struct text *key, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    struct slice text;
    bool found;
    if (series == STORE_SERIES_OTHER) {
        text_puts(key, STORE_OTHER_KEY);
        return true;
    }
    bool good = dict_key(st, report, series, &text, &found, e);
    if (good && found)
        text_add(key, text.ptr, text.len);
    else if (good)
        good = err_set(e, EX_DATAERR, "%s is damaged: series %u has no key", st->path, series);
    sqlite3_reset(st->tables[report].series_get);
    return good;
}

/* Walk the keys of one row of the dictionary. False: `fn` ended the walk. */
static bool each_line(struct slice keys, uint32_t number, series_fn *fn, void *context)
{
    const char *p = keys.ptr, *end = slice_end(keys), *newline;
    for (; p < end && (newline = memchr(p, '\n', (size_t)(end - p))) != NULL; p = newline + 1, number++) {
        if (number != STORE_SERIES_OTHER && !fn(context, number, slice_of(p, (size_t)(newline - p))))
            return false;
    }
    return true;
}

bool sqlite_series_each(struct store *base, size_t report, series_fn *fn, void *context, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    sqlite3_stmt *s;
    int rc;
    bool more = true, good = true;
    if (!sqlite_prepare(st, &s, e, "SELECT block, keys FROM series_%lld ORDER BY block",
                        (long long)st->tables[report].id))
        return false;
    while (good && more && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t block = sqlite3_column_int64(s, 0);
        struct slice keys = slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
        if (block < 0 || block >= SERIES_MAX / BODY_SERIES)
            good = err_set(e, EX_DATAERR, "%s is damaged: the dictionary has an impossible row", st->path);
        else
            more = each_line(keys, (uint32_t)block * BODY_SERIES, fn, context);
    }
    good = good && (!more || rc == SQLITE_DONE || sqlite_fail(st, e, "reading the dictionary of series"));
    sqlite3_finalize(s);
    return good;
}

static void copy_column(sqlite3_stmt *s, int column, char *to, size_t size)
{
    snprintf(to, size, "%s", sqlite_text(s, column));
}

/* Read the witnesses of a partition. If they are damaged there are none, and only the tail is compared. */
static void take_witnesses(sqlite3_stmt *s, int column, struct range *r)
{
    const char *bytes = sqlite3_column_blob(s, column);
    if (bytes != NULL)
        (void)witnesses_unpack(&r->witnesses, slice_of(bytes, (size_t)sqlite3_column_bytes(s, column)));
}

bool sqlite_positions(struct store *base, position_fn *fn, void *context, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    sqlite3_stmt *s;
    int rc;
    bool more = true;
    int64_t has_witnesses; /* files of older versions have no such table until a writer opens them */
    if (!sqlite_read_int(st, &has_witnesses, e,
                         "SELECT count(*) FROM sqlite_master WHERE name = 'witness'") ||
        !sqlite_prepare(st, &s, e, "SELECT source, part, label, next, tail_hash, tail_len, latest_ms%s",
                        has_witnesses == 0 ? " FROM position"
                                           : ", list FROM position LEFT JOIN witness USING (source, part)"))
        return false;
    while (more && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct position p = {0};
        copy_column(s, 0, p.range.source, sizeof p.range.source);
        copy_column(s, 1, p.range.partition, sizeof p.range.partition);
        copy_column(s, 2, p.range.label, sizeof p.range.label);
        p.range.to = sqlite3_column_int64(s, 3);
        p.range.tail_hash = (uint64_t)sqlite3_column_int64(s, 4);
        p.range.tail_len = (uint32_t)sqlite3_column_int64(s, 5);
        p.range.latest_ms = sqlite3_column_int64(s, 6);
        if (has_witnesses != 0)
            take_witnesses(s, 7, &p.range);
        more = fn(context, &p);
    }
    bool good = !more || rc == SQLITE_DONE || sqlite_fail(st, e, "reading the positions");
    sqlite3_finalize(s);
    return good;
}

static const char *report_name(const struct sqlite_store *st, int64_t id)
{
    if (id == 0)
        return "";
    for (size_t r = 0; r < st->base.report_count; r++) {
        if (st->tables[r].id == id)
            return st->reports[r].name;
    }
    return NULL; /* the report is of an older generation, or no longer configured */
}

bool sqlite_books(struct store *base, book_fn *fn, void *context, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    sqlite3_stmt *s;
    int rc;
    bool more = true;
    if (!sqlite_prepare(st, &s, e, "SELECT source, part, report, entry, value FROM book"))
        return false;
    while (more && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = report_name(st, sqlite3_column_int64(s, 2));
        if (name != NULL)
            more = fn(context, sqlite_text(s, 0), sqlite_text(s, 1), name, sqlite_text(s, 3),
                      sqlite3_column_int64(s, 4));
    }
    bool good = !more || rc == SQLITE_DONE || sqlite_fail(st, e, "reading the books");
    sqlite3_finalize(s);
    return good;
}
