/* Takes a file's counts out again, in one transaction; drops a generation of a report, or has another report
 * take its place. */
#include "base/failpoint.h"
#include "store/sqlite/internal.h"

#include <stdio.h>

/* Refuse a source that was counted in a report, or a generation of it, that this handle does not have. */
static bool check_generations(struct sqlite_store *st, const struct range *of, struct err *e)
{
    sqlite3_stmt *s;
    bool good = true;
    int rc;
    if (!sqlite_prepare(st, &s, e,
                        "SELECT report.id, name, generation FROM book JOIN report ON report.id = book.report"
                        " WHERE source = ? AND part = ? AND entry = 'counted' AND value > 0"))
        return false;
    sqlite_bind_source(s, of->source, of->partition);
    while (good && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = sqlite_text(s, 1);
        const int generation = sqlite3_column_int(s, 2);
        bool has = false;
        for (size_t r = 0; r < st->base.report_count; r++)
            has = has || st->tables[r].id == sqlite3_column_int64(s, 0);
        if (!has)
            good = err_set(e, EX_CONFIG,
                           "it was counted in generation %d of report \"%s\", which counts no more: `tallyd "
                           "forget %s~%d` drops that generation first",
                           generation, name, name, generation);
    }
    if (good && rc != SQLITE_DONE)
        good = sqlite_fail(st, e, "reading the books");
    sqlite3_finalize(s);
    return good;
}

static bool check_position(struct sqlite_store *st, const struct range *of, struct err *e)
{
    sqlite3_stmt *s = st->position_get;
    sqlite_bind_source(s, of->source, of->partition);
    int rc = sqlite3_step(s);
    int64_t next = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_reset(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading the position");
    return next == of->to ||
           err_set(e, EX_TEMPFAIL, "another program has just counted more of it: run the same command again");
}

/* Delete what has expired and is still there. The watermark may move back once the newest events are taken
 * out, and the rows would be seen again. */
static bool delete_expired(struct sqlite_store *st, struct err *e)
{
    for (size_t r = 0; r < st->base.report_count; r++) {
        struct sqlite_report *t = &st->tables[r];
        for (enum level level = LEVEL_HOUR; level <= LEVEL_YEAR; level++) {
            int64_t first = sqlite_bucket(level, t->watermarks.before_ms[sqlite_span(level)]) << BLOCK_SHIFT;
            sqlite3_bind_int64(t->levels[level].drop, 1, first - 1);
            if (!sqlite_run(st, t->levels[level].drop, e, "deleting expired rows"))
                return false;
        }
        size_t count;
        if (!sqlite_recent_expire(st, r, INT32_MAX, &count, e))
            return false;
    }
    return true;
}

bool sqlite_forget_begin(struct store *base, const struct range *of, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    /* Counts are taken out of folded rows only. */
    return sqlite_begin(st, e) && check_position(st, of, e) && check_generations(st, of, e) &&
           sqlite_fold_all(st, e) && delete_expired(st, e);
}

/* Set *number to the number of a series that must be known. */
static bool find_series(void *context, size_t report, struct slice key, uint32_t *number, struct err *e)
{
    struct sqlite_store *st = context;
    bool found;
    if (!dict_find(st, report, key, number, &found, e))
        return false;
    return found ||
           err_set(e, EX_DATAERR, "report \"%s\" lacks a series of it: the lines were counted in another way",
                   st->reports[report].name);
}

bool sqlite_forget(struct store *base, const struct batch *batch, const bool *reports, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    for (size_t r = 0; r < base->report_count; r++) {
        if (!reports[r])
            continue;
        items_clear(&st->items[LEVEL_HOUR]);
        for (size_t p = 0; p < batch->part_count; p++) {
            if (!series_map_add(&st->tables[r].map, batch->parts[p], r, find_series, st, e))
                return false;
            rows_gather(st, r, batch->parts[p], LEVEL_HOUR);
        }
        if (!rows_write_folded(st, r, ROWS_TAKE, e))
            return false;
    }
    failpoint(FAILPOINT_FORGET_TAKEN);
    return true;
}

static bool delete_of(struct sqlite_store *st, const char *table, const struct range *of, struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "DELETE FROM %s WHERE source = ? AND part = ?", table))
        return false;
    sqlite_bind_source(s, of->source, of->partition);
    bool good = sqlite_run(st, s, e, "deleting the books");
    sqlite3_finalize(s);
    return good;
}

bool sqlite_forget_end(struct store *base, const struct range *of, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    if (!delete_of(st, "position", of, e) || !delete_of(st, "witness", of, e) ||
        !delete_of(st, "book", of, e))
        return false;
    failpoint(FAILPOINT_FORGET_BEFORE_COMMIT);
    if (!sqlite_commit(st, e))
        return false;
    failpoint(FAILPOINT_FORGET_AFTER_COMMIT);
    return true;
}

void sqlite_forget_undo(struct store *base)
{
    sqlite_undo(sqlite_of(base));
}

static bool find_report(struct sqlite_store *st, const char *name, int generation, int64_t *id, struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "SELECT id FROM report WHERE name = ? AND generation = ?"))
        return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, generation);
    int rc = sqlite3_step(s);
    *id = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading the reports");
    return *id > 0 ||
           err_set(e, EX_NOINPUT, "%s has no generation %d of report \"%s\"", st->path, generation, name);
}

/* Add up the rows of all levels, and the series. */
static bool weigh(struct sqlite_store *st, int64_t id, struct store_dropped *dropped, struct err *e)
{
    char sql[256];
    int64_t n;
    for (int l = 0; l < LEVEL_COUNT; l++) {
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s_%lld", sqlite_level_names[l], (long long)id);
        if (!sqlite_read_int(st, &n, e, sql))
            return false;
        dropped->rows += (uint64_t)n;
        snprintf(sql, sizeof sql, "SELECT coalesce(sum(length(body)), 0) FROM %s_%lld", sqlite_level_names[l],
                 (long long)id);
        if (!sqlite_read_int(st, &n, e, sql))
            return false;
        dropped->bytes += (uint64_t)n;
    }
    snprintf(
        sql, sizeof sql,
        "SELECT coalesce(sum(length(keys) - length(replace(keys, char(10), ''))), 1) - 1 FROM series_%lld",
        (long long)id);
    if (!sqlite_read_int(st, &n, e, sql))
        return false;
    dropped->series = (uint64_t)n;
    return true;
}

static bool drop_tables(struct sqlite_store *st, int64_t id, struct err *e)
{
    static const char *const tables[] = {"fresh", "hour",   "day",    "month",
                                         "year",  "series", "lookup", "recent"};
    char sql[128];
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS %s_%lld", tables[i], (long long)id);
        if (!sqlite_execute(st, sql, "dropping counts", e))
            return false;
    }
    snprintf(sql, sizeof sql, "DELETE FROM book WHERE report = %lld", (long long)id);
    if (!sqlite_execute(st, sql, "deleting the books", e))
        return false;
    snprintf(sql, sizeof sql, "DELETE FROM report WHERE id = %lld", (long long)id);
    return sqlite_execute(st, sql, "deleting the report", e);
}

bool sqlite_drop(struct store *base, const char *report, int generation, bool dry_run,
                 struct store_dropped *dropped, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    int64_t id;
    if (!sqlite_begin(st, e))
        return false;
    bool good = find_report(st, report, generation, &id, e) && weigh(st, id, dropped, e);
    if (good && !dry_run) {
        good = drop_tables(st, id, e);
        if (good)
            failpoint(FAILPOINT_FORGET_BEFORE_COMMIT);
        good = good && sqlite_commit(st, e);
    }
    if (!good || dry_run)
        sqlite_undo(st);
    return good;
}

/* The newest generation of a report. Fails if `alone` and there is an older one. */
static bool find_newest(struct sqlite_store *st, const char *name, bool alone, int64_t *id, int *generation,
                        struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "SELECT id, max(generation), count(*) FROM report WHERE name = ?"))
        return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    int count = rc == SQLITE_ROW ? sqlite3_column_int(s, 2) : 0;
    *id = count > 0 ? sqlite3_column_int64(s, 0) : 0;
    *generation = count > 0 ? sqlite3_column_int(s, 1) : 0;
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW)
        return sqlite_fail(st, e, "reading the reports");
    if (count == 0)
        return err_set(e, EX_NOINPUT, "%s has no report \"%s\"", st->path, name);
    return !alone || count == 1 ||
           err_set(e, EX_CONFIG, "%s has %d generations: `tallyd forget` drops the older ones first", name,
                   count);
}

/* Give a report another name and generation. */
static bool rename_report(struct sqlite_store *st, int64_t id, const char *name, int generation,
                          struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "UPDATE report SET name = ?, generation = ? WHERE id = ?"))
        return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, generation);
    sqlite3_bind_int64(s, 3, id);
    bool good = sqlite_run(st, s, e, "renaming a report");
    sqlite3_finalize(s);
    return good;
}

bool sqlite_replace_begun(struct sqlite_store *st, const char *by, const char *report, bool drops_old,
                          struct store_replaced *done, struct err *e)
{
    int64_t old_id, id;
    int generation;
    bool good = find_newest(st, report, false, &old_id, &done->replaced, e) &&
                find_newest(st, by, true, &id, &generation, e);
    done->generation = done->replaced + 1;
    good = good && rename_report(st, id, report, done->generation, e) &&
           (!drops_old || drop_tables(st, old_id, e));
    if (good)
        failpoint(FAILPOINT_REPLACE_BEFORE_COMMIT);
    good = good && sqlite_commit(st, e);
    if (good)
        failpoint(FAILPOINT_REPLACE_AFTER_COMMIT);
    else
        sqlite_undo(st);
    return good;
}

bool sqlite_replace(struct store *base, const char *by, const char *report, bool drops_old,
                    struct store_replaced *done, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    return sqlite_begin(st, e) && sqlite_replace_begun(st, by, report, drops_old, done, e);
}
