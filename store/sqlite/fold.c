/* Folds fresh rows of hours that are over into hour, day, month and year rows. */
#include "base/civil.h"
#include "base/failpoint.h"
#include "store/sqlite/internal.h"

/* Blocks folded in one transaction, so that a flush never waits long. */
#define FOLD_BLOCKS        16
/* Minutes after the end of an hour for which it stays unfolded, since late events may come. */
#define FOLD_GRACE_MINUTES 5

struct fold {
    struct sqlite_store *st;
    const struct report *report;
    uint32_t minute, first_series;
};

static bool fold_slot(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                      const struct slice *sketches)
{
    struct fold *f = context;
    struct items *it = &f->st->items[LEVEL_HOUR];
    (void)slot;
    items_reserve(it, 1, f->report);
    int64_t *to =
        items_add(it, items_key(f->minute / 60, f->first_series + series, f->minute % 60), f->report);
    for (size_t i = 0; i < f->report->column_count; i++)
        to[i] = values[i];
    return items_merge_packed(it, f->report, it->count - 1, sketches);
}

/* Read and delete the fresh row of one minute and block. */
static bool take_minute(struct fold *f, struct sqlite_report *t, uint32_t minute, uint32_t block,
                        struct err *e)
{
    static const struct body_want all = {{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX};
    int64_t first = (int64_t)minute << BLOCK_SHIFT | block;
    sqlite3_stmt *s = t->levels[LEVEL_FRESH].range;
    int rc;
    f->minute = minute;
    sqlite3_bind_int64(s, 1, first);
    sqlite3_bind_int64(s, 2, first);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        f->first_series = (uint32_t)(sqlite3_column_int64(s, 0) & ((1 << BLOCK_SHIFT) - 1)) * BODY_SERIES;
        struct slice body = slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
        if (!body_each(body, f->report, &all, fold_slot, f, &f->st->body.loose)) {
            sqlite3_reset(s);
            return err_set(e, EX_DATAERR, "%s is damaged: a fresh row does not decode", f->st->path);
        }
    }
    sqlite3_reset(s);
    if (rc != SQLITE_DONE)
        return sqlite_fail(f->st, e, "reading fresh counts");
    sqlite3_bind_int64(t->fresh_delete, 1, first);
    sqlite3_bind_int64(t->fresh_delete, 2, first);
    return sqlite_run(f->st, t->fresh_delete, e, "removing folded counts");
}

static bool fold_blocks(struct sqlite_store *st, size_t report, uint32_t hour, uint32_t block, struct err *e)
{
    struct fold f = {.st = st, .report = &st->reports[report]};
    for (uint32_t b = block; b < block + FOLD_BLOCKS && b < 1u << BLOCK_SHIFT; b++) {
        items_clear(&st->items[LEVEL_HOUR]);
        for (uint32_t m = 0; m < 60; m++) {
            if (!take_minute(&f, &st->tables[report], hour * 60 + m, b, e))
                return false;
        }
        if (!rows_write_folded(st, report, ROWS_ADD, e))
            return false;
    }
    return true;
}

/* Set *at to the oldest fresh row; *found is false if there is none. Each fold deletes the oldest row, so *at
 * must grow. If it does not, the tree is damaged and the loop must end. */
static bool oldest_fresh(struct sqlite_store *st, struct sqlite_report *t, int64_t *at, bool *found,
                         struct err *e)
{
    int64_t before = *at;
    sqlite3_stmt *s = t->levels[LEVEL_FRESH].seek;
    sqlite3_bind_int64(s, 1, 0);
    int rc = sqlite3_step(s);
    *found = rc == SQLITE_ROW;
    *at = *found ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    if (*at >> BLOCK_SHIFT >= CIVIL_END_MS / MINUTE_MS)
        return err_set(e, EX_DATAERR,
                       "%s is damaged: a fresh row has an impossible minute; restore it from a backup",
                       st->path);
    if (*found && *at <= before)
        return err_set(e, EX_DATAERR,
                       "%s is damaged: a fresh row that was folded is still there; restore it from a backup",
                       st->path);
    return rc == SQLITE_ROW || rc == SQLITE_DONE || sqlite_fail(st, e, "reading fresh counts");
}

/* Is an hour over? It is if its minutes have expired, or if fresh rows reach FOLD_GRACE_MINUTES past it. */
static bool is_over(uint32_t hour, const struct sqlite_report *t)
{
    if ((int64_t)(hour + 1) * HOUR_MS <= t->watermarks.before_ms[SPAN_MINUTE])
        return true;
    uint32_t newest = (uint32_t)(t->levels[LEVEL_FRESH].last_at >> BLOCK_SHIFT);
    return newest >= (hour + 1) * 60 + FOLD_GRACE_MINUTES;
}

/* Fold one piece of one report; *folded: there was one. *at is the last piece's first row, at first -1; it
 * becomes this piece's. */
static bool fold_step(struct sqlite_store *st, size_t report, bool all, int64_t *at, bool *folded,
                      struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    if (!oldest_fresh(st, t, at, folded, e))
        return false;
    if (!*folded)
        return true;
    uint32_t hour = (uint32_t)(*at >> BLOCK_SHIFT) / 60;
    if (!all && !is_over(hour, t)) {
        *folded = false;
        return true;
    }
    if (!sqlite_begin(st, e))
        return false;
    uint32_t block = (uint32_t)*at & ((1 << BLOCK_SHIFT) - 1);
    if (fold_blocks(st, report, hour, block, e)) {
        failpoint(FAILPOINT_FOLD_BEFORE_COMMIT);
        if (sqlite_commit(st, e)) {
            failpoint(FAILPOINT_FOLD_AFTER_COMMIT);
            return true;
        }
    }
    sqlite_undo(st);
    return false;
}

bool sqlite_fold_all(struct sqlite_store *st, struct err *e)
{
    for (size_t r = 0; r < st->base.report_count; r++) {
        bool found = true;
        for (int64_t at = -1; found;) {
            if (!oldest_fresh(st, &st->tables[r], &at, &found, e))
                return false;
            uint32_t hour = (uint32_t)(at >> BLOCK_SHIFT) / 60,
                     block = (uint32_t)at & ((1 << BLOCK_SHIFT) - 1);
            if (found && !fold_blocks(st, r, hour, block, e))
                return false;
        }
    }
    return true;
}

bool sqlite_housekeep(struct store *base, bool all, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    if (!sqlite_check_files(st, e)) /* checks the files even while nothing is counted */
        return false;
    for (size_t r = 0; r < base->report_count; r++) {
        bool folded = true;
        int64_t at = -1;
        do {
            if (!fold_step(st, r, all, &at, &folded, e))
                return false;
        } while (all && folded);
    }
    return true;
}
