/* Finds the newest time buckets that have rows. It seeks by rowid: one seek for each. */
#include "base/check.h"
#include "store/sqlite/internal.h"

/* Find a level's last row whose bucket begins before `end_ms`. Raise *start_ms to that bucket's start. */
static bool find_last(struct sqlite_store *st, size_t report, enum level level, int64_t end_ms,
                      int64_t *start_ms, struct err *e)
{
    sqlite3_stmt *s;
    long long end_at = (sqlite_bucket(level, end_ms - 1) + 1) << BLOCK_SHIFT;
    if (!sqlite_prepare(st, &s, e, "SELECT at FROM %s_%lld WHERE at < %lld ORDER BY at DESC LIMIT 1",
                        sqlite_level_names[level], (long long)st->tables[report].id, end_at))
        return false;
    int rc = sqlite3_step(s);
    int64_t bucket = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) >> BLOCK_SHIFT : -1;
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "looking for the newest counts");
    if (bucket < 0)
        return true;
    int64_t found_ms = sqlite_bucket_start(level, bucket);
    *start_ms = found_ms > *start_ms ? found_ms : *start_ms;
    return true;
}

/* Find the newest bucket of a resolution. Hours have rows of their own, and fresh rows of their minutes. */
static bool find_last_of(struct sqlite_store *st, size_t report, enum span span, int64_t end_ms,
                         int64_t *start_ms, struct err *e)
{
    _Static_assert((int)SPAN_HOUR == (int)LEVEL_HOUR + 1 && (int)SPAN_MONTH == (int)LEVEL_MONTH + 1,
                   "in step");
    *start_ms = -1;
    if (!find_last(st, report, (enum level)(span - 1), end_ms, start_ms, e))
        return false;
    if (span > SPAN_HOUR)
        return true;
    bool good = find_last(st, report, LEVEL_FRESH, end_ms, start_ms, e);
    if (*start_ms >= 0)
        *start_ms = span_floor(SPAN_HOUR, *start_ms);
    return good;
}

bool sqlite_newest(struct store *base, size_t report, int64_t before_ms, struct newest *newest, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    for (int span = SPAN_MONTH; span >= SPAN_HOUR; span--) {
        int64_t start_ms;
        if (!find_last_of(st, report, (enum span)span, before_ms, &start_ms, e))
            return false;
        if (start_ms >= newest->start_ms) { /* else the newest events had expired in this resolution */
            newest->span = (enum span)span;
            newest->start_ms = start_ms;
        }
    }
    return newest->start_ms <= 0 ||
           find_last_of(st, report, newest->span, newest->start_ms, &newest->before_ms, e);
}
