/* The newest events of each series and day (aggregate/recent.h), in a table beside the rows: `recent_N`, with
 * a row for each, whose body is as they are packed. A batch reads, merges and writes the rows that it
 * touches. */
#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "store/common/watermarks.h"
#include "store/sqlite/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* A rowid is a day since 1970, and the number of a series. */
static int64_t row_of(int64_t day, uint32_t series)
{
    return day << SERIES_BITS | series;
}

static int64_t day_of(int64_t at)
{
    return at >> SERIES_BITS;
}

static uint32_t series_of(int64_t at)
{
    return (uint32_t)at & (SERIES_MAX - 1);
}

bool sqlite_recent_prepare(struct sqlite_store *st, size_t report, enum store_mode mode, struct err *e)
{
    struct recent_table *t = &st->tables[report].recent;
    const long long n = (long long)st->tables[report].id;
    if (st->reports[report].newest == 0)
        return true;
    if (!sqlite_prepare(st, &t->range, e,
                        "SELECT at, body FROM recent_%lld WHERE at BETWEEN ? AND ? ORDER BY at", n) ||
        !sqlite_prepare(st, &t->seek, e, "SELECT at, body FROM recent_%lld WHERE at >= ? ORDER BY at LIMIT 1",
                        n))
        return false;
    return mode == STORE_READ ||
           (sqlite_prepare(st, &t->get, e, "SELECT body FROM recent_%lld WHERE at = ?", n) &&
            sqlite_prepare(st, &t->put, e, "INSERT OR REPLACE INTO recent_%lld (at, body) VALUES (?, ?)",
                           n) &&
            sqlite_prepare(st, &t->drop, e,
                           "DELETE FROM recent_%lld WHERE at IN"
                           " (SELECT at FROM recent_%lld WHERE at < ? ORDER BY at LIMIT ?)",
                           n, n));
}

static bool fail_damaged(const struct sqlite_store *st, size_t report, int64_t at, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "%s is damaged: the newest events of report \"%s\", row %lld, do not decode; restore it from "
        "a backup",
        st->path, st->reports[report].name, (long long)at);
}

/* ---- writing */

/* Sort the cells of a batch that have newest events, by row. Returns their number. */
static size_t sort_cells(struct sqlite_store *st, size_t report, const struct batch *batch)
{
    const struct report *r = &st->reports[report];
    struct recent_sorting *s = &st->sorting;
    size_t count = 0;
    for (size_t p = 0; p < batch->part_count; p++)
        count += batch->parts[p]->reports[report].cells.count;
    ASSERT(count < UINT32_MAX);
    s->items = xgrow(s->items, &s->capacity, count, sizeof *s->items);
    s->scratch = xgrow(s->scratch, &s->scratch_capacity, s->capacity, sizeof *s->scratch);
    s->of = xgrow(s->of, &s->of_capacity, count, sizeof *s->of);
    count = 0;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct cells *cells = &batch->parts[p]->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++) {
            struct cell *c = cells_at(cells, i);
            const uint32_t series = series_map_number(&st->tables[report].map, batch->parts[p], c->series);
            const struct recent *recent = &report_sketch(r, c, r->sketch_count)->recent;
            if (recent->count == 0)
                continue;
            s->items[count] = (struct radix_item){
                (uint64_t)row_of((int64_t)c->time * MINUTE_MS / DAY_MS, series), (uint32_t)count};
            s->of[count++] = recent;
        }
    }
    return count;
}

/* Merge a row's old events, if it has some. */
static bool merge_old(struct sqlite_store *st, size_t report, int64_t at, struct recent *to,
                      struct arena *arena, struct err *e)
{
    sqlite3_stmt *s = st->tables[report].recent.get;
    sqlite3_bind_int64(s, 1, at);
    int rc = sqlite3_step(s);
    bool good = rc == SQLITE_DONE || rc == SQLITE_ROW || sqlite_fail(st, e, "reading the newest events");
    if (rc == SQLITE_ROW)
        good = recent_merge(to, arena,
                            slice_of(sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0))) ||
               fail_damaged(st, report, at, e);
    sqlite3_reset(s);
    return good;
}

static bool write_row(struct sqlite_store *st, size_t report, int64_t at, const struct recent *recent,
                      struct err *e)
{
    sqlite3_stmt *s = st->tables[report].recent.put;
    text_clear(&st->body.packed);
    recent_pack(recent, &st->body.packed);
    sqlite3_bind_int64(s, 1, at);
    sqlite3_bind_blob(s, 2, st->body.packed.ptr, (int)st->body.packed.len, SQLITE_STATIC);
    return sqlite_run(st, s, e, "writing the newest events");
}

bool sqlite_recent_write(struct sqlite_store *st, size_t report, const struct batch *batch, struct err *e)
{
    const int64_t kept = st->tables[report].watermarks.before_ms[SPAN_DAY] / DAY_MS;
    struct recent_sorting *s = &st->sorting;
    if (st->reports[report].newest == 0)
        return true;
    const size_t count = sort_cells(st, report, batch);
    const struct radix_item *sorted = count > 0 ? radix_sort(s->items, s->scratch, count) : NULL;
    for (size_t i = 0; i < count;) {
        const int64_t at = (int64_t)sorted[i].key;
        struct recent all = {0};
        struct arena *arena = sketch_work_ready(&st->body.work);
        const bool is_kept = day_of(at) >= kept;
        if (is_kept && !merge_old(st, report, at, &all, arena, e))
            return false;
        for (; i < count && (int64_t)sorted[i].key == at; i++) {
            if (is_kept)
                recent_add_all(&all, arena, s->of[sorted[i].index]);
        }
        if (is_kept && !write_row(st, report, at, &all, e))
            return false;
    }
    return true;
}

void sqlite_recent_fini(struct recent_sorting *s)
{
    free(s->items);
    free(s->scratch);
    free(s->of);
}

bool sqlite_recent_expire(struct sqlite_store *st, size_t report, size_t limit, size_t *count, struct err *e)
{
    sqlite3_stmt *s = st->tables[report].recent.drop;
    *count = 0;
    if (st->reports[report].newest == 0)
        return true;
    sqlite3_bind_int64(s, 1, row_of(st->tables[report].watermarks.before_ms[SPAN_DAY] / DAY_MS, 0));
    sqlite3_bind_int64(s, 2, (int64_t)limit);
    bool good = sqlite_run(st, s, e, "deleting expired events");
    *count = good ? (size_t)sqlite3_changes(st->db) : 0;
    return good;
}

/* ---- reading */

/* A scan of the table. */
struct walk {
    struct sqlite_store *st;
    const struct scan *scan;
    void *context;
    struct scan_stats *stats;
    uint64_t rows; /* read by this scan */
};

static bool walk_row(struct walk *w, sqlite3_stmt *s, struct err *e)
{
    const int64_t at = sqlite3_column_int64(s, 0);
    const struct slice body = slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
    w->stats->rows++;
    w->stats->bytes += body.len;
    if (!deadline_check(w->st->base.deadline, e))
        return false;
    if (++w->rows > w->scan->rows_max)
        return err_set(e, EX_UNAVAILABLE, "too many rows: more than %llu would be read",
                       (unsigned long long)w->scan->rows_max);
    return !series_set_has(&w->scan->series, series_of(at)) ||
           w->scan->sketch(w->context, series_of(at), day_of(at) * DAY_MS,
                           w->st->reports[w->scan->report].sketch_count, body, e);
}

static bool walk_all(struct walk *w, int64_t first_day, int64_t end_day, struct err *e)
{
    sqlite3_stmt *s = w->st->tables[w->scan->report].recent.range;
    bool good = true;
    int rc = SQLITE_DONE;
    sqlite3_bind_int64(s, 1, row_of(first_day, 0));
    sqlite3_bind_int64(s, 2, row_of(end_day, 0) - 1);
    while (good && (rc = sqlite3_step(s)) == SQLITE_ROW)
        good = walk_row(w, s, e);
    sqlite3_reset(s);
    return good && (rc == SQLITE_DONE || sqlite_fail(w->st, e, "reading the newest events"));
}

/* Seek the rows of one series: a gap of any length costs one seek. */
static bool walk_one(struct walk *w, int64_t first_day, int64_t end_day, struct err *e)
{
    sqlite3_stmt *s = w->st->tables[w->scan->report].recent.seek;
    const uint32_t one = w->scan->series.one;
    bool good = true;
    for (int64_t day = first_day; good && day < end_day;) {
        sqlite3_bind_int64(s, 1, row_of(day, one));
        int rc = sqlite3_step(s);
        if (rc == SQLITE_ROW) {
            const int64_t at = sqlite3_column_int64(s, 0);
            day = day_of(at);
            if (day < end_day && series_of(at) == one)
                good = walk_row(w, s, e);
            day += series_of(at) >= one; /* else the series may follow on the same day */
        } else {
            good = rc == SQLITE_DONE || sqlite_fail(w->st, e, "reading the newest events");
            day = end_day;
        }
        sqlite3_reset(s);
    }
    return good;
}

bool sqlite_recent(struct store *base, const struct scan *scan, void *context, struct scan_stats *stats,
                   struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    struct walk w = {.st = st, .scan = scan, .context = context, .stats = stats};
    struct watermarks watermarks;
    if (!st->holds && !sqlite_run(st, st->begin, e, "beginning a read"))
        return false;
    const int64_t first = scan->from_ms / DAY_MS, end = scan->to_ms / DAY_MS;
    bool good = sqlite_read_watermarks(st, scan->report, &watermarks, e) &&
                store_check_watermark(scan, &watermarks, e) &&
                (scan->series.kind == SERIES_ONE ? walk_one(&w, first, end, e) : walk_all(&w, first, end, e));
    return sqlite_end_reading(st, good, e);
}

bool sqlite_recent_check(struct sqlite_store *st, size_t report, check_fn *problem, void *context,
                         struct err *e)
{
    sqlite3_stmt *s = st->tables[report].recent.range;
    char line[512];
    int rc = SQLITE_DONE;
    if (st->reports[report].newest == 0)
        return true;
    sqlite3_bind_int64(s, 1, INT64_MIN);
    sqlite3_bind_int64(s, 2, INT64_MAX);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (recent_is_whole(slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1))))
            continue;
        snprintf(line, sizeof line, "%s: row %lld of the newest events of report %s does not decode",
                 st->path, (long long)sqlite3_column_int64(s, 0), st->reports[report].name);
        problem(context, line);
    }
    bool good = rc == SQLITE_DONE || sqlite_fail(st, e, "checking the newest events");
    sqlite3_reset(s);
    return good;
}
