/* A report takes another one's place for a range of times, in one transaction: its rows are deleted, filled
 * again from both reports, and it is renamed. */
#include "store/splice.h"
#include "base/failpoint.h"
#include "store/sqlite/internal.h"

#include <stdio.h>

static bool delete_rows(struct sqlite_store *st, struct err *e)
{
    struct sqlite_report *t = &st->tables[0];
    char sql[64];
    bool good = true;
    for (int l = 0; good && l < LEVEL_COUNT; l++) {
        snprintf(sql, sizeof sql, "DELETE FROM %s_%lld", sqlite_level_names[l], (long long)t->id);
        good = sqlite_execute(st, sql, "deleting counts", e);
        t->levels[l].last_at = -1;
    }
    return good;
}

static bool fill(struct store *base, const struct batch *batch, struct err *e)
{
    if (!sqlite_fill_report(sqlite_of(base), 0, batch, e))
        return false;
    failpoint(FAILPOINT_REPLACE_FILLED);
    return true;
}

bool sqlite_splice_begin(struct store *base, const char *report, const struct watermarks *watermarks,
                         struct err *e)
{
    static const struct store_fill_ops fills = {.fill = fill};
    struct sqlite_store *st = sqlite_of(base);
    (void)report;
    if (!sqlite_begin(st, e) || !delete_rows(st, e))
        return false;
    st->tables[0].watermarks = *watermarks;
    st->reports[0].series_max = SERIES_MAX - 1; /* both reports decided what is `other` */
    base->fill = &fills;
    return sqlite_put_watermarks(st, 0, watermarks, e);
}

bool sqlite_splice_end(struct store *base, const struct store_book *books, size_t count, const char *by,
                       const char *report, bool drops_old, struct store_replaced *done, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = sqlite_put_book(st, &books[i], e);
    return good && sqlite_replace_begun(st, by, report, drops_old, done, e);
}
