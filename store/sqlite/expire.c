/* Expires rows: it first moves the expiry watermarks, in a transaction of their own, then deletes rows. */
#include "base/clock.h"
#include "base/failpoint.h"
#include "store/common/watermarks.h"
#include "store/sqlite/internal.h"

#include <stdio.h>

/* Rows deleted between two looks at the clock: about 0.2 MiB. */
#define EXPIRE_ROWS     16
/* Free pages are given back if they are more than 1/FREE_SHARE of the file. */
#define FREE_SHARE      8
/* Pages given back at a time. SQLite moves the pages at the end of the file: 1 MiB of log. */
#define GIVE_BACK_PAGES 128

static const char prefix[] = "expired.";

bool sqlite_read_watermarks(struct sqlite_store *st, size_t report, struct watermarks *watermarks,
                            struct err *e)
{
    sqlite3_stmt *s = st->watermarks_get;
    int rc;
    *watermarks = (struct watermarks){0};
    sqlite3_bind_int64(s, 1, st->tables[report].id);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *entry = sqlite_text(s, 0);
        int64_t before_ms = sqlite3_column_int64(s, 1);
        enum span span;
        bool good = strncmp(entry, prefix, sizeof prefix - 1) == 0 &&
                    span_parse(slice_text(entry + sizeof prefix - 1), &span) && before_ms >= 0 &&
                    before_ms <= CIVIL_END_MS && span_floor(span, before_ms) == before_ms;
        if (!good) {
            sqlite3_reset(s);
            return err_set(e, EX_DATAERR, "%s is damaged: the books have an impossible entry", st->path);
        }
        watermarks->before_ms[span] = before_ms;
    }
    sqlite3_reset(s);
    return rc == SQLITE_DONE || sqlite_fail(st, e, "reading the expiry watermarks and books");
}

bool sqlite_watermarks(struct store *base, size_t report, struct watermarks *watermarks, struct err *e)
{
    return sqlite_read_watermarks(sqlite_of(base), report, watermarks, e);
}

static bool put_watermark(struct sqlite_store *st, size_t report, enum span span, int64_t before_ms,
                          struct err *e)
{
    char entry[STORE_ENTRY_BYTES];
    sqlite3_stmt *s = st->book_set;
    snprintf(entry, sizeof entry, "%s%s", prefix, span_name(span));
    sqlite_bind_source(s, "", "");
    sqlite3_bind_int64(s, 3, st->tables[report].id);
    sqlite3_bind_text(s, 4, entry, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 5, before_ms);
    return sqlite_run(st, s, e, "writing the books of expired counts");
}

bool sqlite_put_watermarks(struct sqlite_store *st, size_t report, const struct watermarks *watermarks,
                           struct err *e)
{
    for (int s = SPAN_MINUTE; s < SPAN_COUNT; s++) {
        if (watermarks->before_ms[s] > 0 &&
            !put_watermark(st, report, (enum span)s, watermarks->before_ms[s], e))
            return false;
    }
    return true;
}

/* Move the expiry watermarks, within a transaction. *moved: there is something to commit. */
static bool move_watermarks(struct sqlite_store *st, int64_t now_ms, bool *moved, struct err *e)
{
    for (size_t r = 0; r < st->base.report_count; r++) {
        struct watermarks *watermarks = &st->tables[r].watermarks;
        if (!store_move_watermarks(&st->base, &st->reports[r], st->reports[r].keep_ms, now_ms, watermarks))
            continue;
        *moved = true;
        if (!sqlite_put_watermarks(st, r, watermarks, e))
            return false;
    }
    if (*moved)
        failpoint(FAILPOINT_EXPIRE_BEFORE_WATERMARK);
    return true;
}

/* Delete the first rows of a level before its watermark. *count is their number. */
static bool delete_some(struct sqlite_store *st, size_t report, enum level level, struct expired *expired,
                        size_t *count, struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    struct level_table *lt = &t->levels[level];
    int64_t last_at = 0;
    int rc;
    *count = 0;
    sqlite3_bind_int64(lt->old, 1,
                       sqlite_bucket(level, t->watermarks.before_ms[sqlite_span(level)]) << BLOCK_SHIFT);
    sqlite3_bind_int(lt->old, 2, EXPIRE_ROWS);
    while ((rc = sqlite3_step(lt->old)) == SQLITE_ROW) {
        last_at = sqlite3_column_int64(lt->old, 0);
        expired->rows++;
        expired->bytes += (uint64_t)sqlite3_column_int64(lt->old, 1);
        ++*count;
    }
    sqlite3_reset(lt->old);
    if (rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading expired rows");
    if (*count == 0)
        return true;
    sqlite3_bind_int64(lt->drop, 1, last_at);
    if (!sqlite_run(st, lt->drop, e, "deleting expired rows"))
        return false;
    return (size_t)sqlite3_changes(st->db) >= *count || /* else each call would find them again */
           err_set(e, EX_DATAERR,
                   "%s is damaged: expired rows could not be deleted; restore it from a backup", st->path);
}

/* Delete newest events before the watermark of days, until none is left or the time is over. */
static bool delete_recent(struct sqlite_store *st, size_t report, int64_t end_ms, struct expired *expired,
                          struct err *e)
{
    size_t count = EXPIRE_ROWS;
    while (st->reports[report].newest > 0 && count == EXPIRE_ROWS) {
        expired->more = clock_mono_ms(st->base.clock) >= end_ms;
        if (expired->more)
            return true;
        if (!sqlite_recent_expire(st, report, EXPIRE_ROWS, &count, e))
            return false;
        expired->rows += count;
    }
    return true;
}

/* Delete rows before the watermarks, until none is left or the time is over. */
static bool delete_rows(struct sqlite_store *st, int64_t end_ms, struct expired *expired, struct err *e)
{
    for (size_t r = 0; r < st->base.report_count; r++) {
        for (enum level level = LEVEL_HOUR; level <= LEVEL_YEAR; level++) {
            size_t count = EXPIRE_ROWS;
            if (st->tables[r].watermarks.before_ms[sqlite_span(level)] == 0)
                continue;
            while (count == EXPIRE_ROWS) {
                expired->more = clock_mono_ms(st->base.clock) >= end_ms;
                if (expired->more)
                    return true;
                if (!delete_some(st, r, level, expired, &count, e))
                    return false;
            }
        }
        if (!delete_recent(st, r, end_ms, expired, e))
            return false;
        if (expired->more)
            return true;
    }
    return true;
}

static bool commit(struct sqlite_store *st, struct err *e)
{
    if (sqlite_commit(st, e))
        return true;
    sqlite_undo(st);
    return false;
}

static bool count_pages(struct sqlite_store *st, const char *pragma, int64_t *count, struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "PRAGMA %s", pragma))
        return false;
    int rc = sqlite3_step(s);
    *count = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW || sqlite_fail(st, e, "counting pages");
}

/* Has anything ever expired? If not, folding freed the pages, and the next hour's fresh rows take them. */
static bool has_watermarks(const struct sqlite_store *st)
{
    bool has = false;
    for (size_t r = 0; r < st->base.report_count; r++)
        has |= st->tables[r].watermarks.before_ms[SPAN_MINUTE] > 0;
    return has;
}

static bool give_back(struct sqlite_store *st, struct expired *expired, struct err *e)
{
    char pragma[64];
    int64_t unused, pages;
    if (!st->gives_back || !has_watermarks(st))
        return true;
    if (!count_pages(st, "freelist_count", &unused, e) || !count_pages(st, "page_count", &pages, e))
        return false;
    if (unused <= pages / FREE_SHARE)
        return true;
    expired->more = unused - GIVE_BACK_PAGES > (pages - GIVE_BACK_PAGES) / FREE_SHARE;
    snprintf(pragma, sizeof pragma, "PRAGMA incremental_vacuum(%d)", GIVE_BACK_PAGES);
    if (sqlite3_exec(st->db, pragma, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    sqlite_fail(st, e, "giving pages back");
    sqlite_undo(st);
    return false;
}

bool sqlite_expire(struct store *base, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    int64_t end_ms = clock_mono_ms(st->base.clock) + STORE_EXPIRE_MS;
    bool moved = false;
    (void)trusts_clock; /* the caller keeps watermarks from leaping */
    if (!sqlite_begin(st, e))
        return false;
    bool good = move_watermarks(st, now_ms, &moved, e);
    if (good && moved) { /* from this commit on, scans before the watermarks are refused */
        if (!commit(st, e))
            return false;
        failpoint(FAILPOINT_EXPIRE_WATERMARK_MOVED);
        if (!sqlite_begin(st, e))
            return false;
    }
    if (!good || !delete_rows(st, end_ms, expired, e)) {
        sqlite_undo(st);
        return false;
    }
    if (expired->rows > 0)
        failpoint(FAILPOINT_EXPIRE_BEFORE_COMMIT);
    if (!commit(st, e))
        return false;
    if (expired->rows > 0)
        failpoint(FAILPOINT_EXPIRE_AFTER_COMMIT);
    return expired->more || give_back(st, expired, e);
}

/* There is only one writer, so no other batch can have left out events by the old watermarks. */
bool sqlite_move_back(struct store *base, size_t report, int64_t now_ms, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    const struct report *r = &st->reports[report];
    struct watermarks watermarks = st->tables[report].watermarks;
    int64_t end_ms;
    if (!store_newest_end(base, report, &watermarks, watermarks.before_ms[SPAN_MINUTE], &end_ms, e))
        return false;
    if (!store_lower_watermarks(base, r, end_ms, now_ms, &watermarks))
        return true;
    if (!sqlite_begin(st, e))
        return false;
    if (!sqlite_put_watermarks(st, report, &watermarks, e)) {
        sqlite_undo(st);
        return false;
    }
    if (!commit(st, e))
        return false;
    st->tables[report].watermarks = watermarks;
    return true;
}
