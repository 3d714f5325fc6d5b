/* Applies a batch in one transaction: dictionary, rows, books, positions. */
#include "base/civil.h"
#include "base/failpoint.h"
#include "store/backfill.h"
#include "store/common/watermarks.h"
#include "store/sqlite/internal.h"

/* Check that the range begins at the position, or that a range which backfills ends before it. */
static bool check_range(struct sqlite_store *st, const struct range *r, bool backfills, struct err *e)
{
    sqlite3_stmt *s = st->position_get;
    sqlite_bind_source(s, r->source, r->partition);
    int rc = sqlite3_step(s);
    int64_t next = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : backfills ? -1 : r->from;
    sqlite3_reset(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading the position");
    if (backfills)
        return r->to <= next || backfill_ahead(r, e);
    if (next != r->from)
        return err_set(e, EX_DATAERR,
                       "%s has been counted up to %lld, the batch begins at %lld: nothing applied", r->label,
                       (long long)next, (long long)r->from);
    return true;
}

/* Write the witnesses. An imported file has none. */
static bool put_witnesses(struct sqlite_store *st, const struct range *r, struct err *e)
{
    unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
    sqlite3_stmt *s = st->witness_put;
    if (r->partition[0] == '\0' && r->witnesses.count == 0)
        return true;
    size_t len = witnesses_pack(&r->witnesses, bytes);
    sqlite_bind_source(s, r->source, r->partition);
    sqlite3_bind_blob(s, 3, bytes, (int)len, SQLITE_TRANSIENT);
    return sqlite_run(st, s, e, "writing the witnesses");
}

bool sqlite_put_position(struct sqlite_store *st, const struct range *r, struct err *e)
{
    sqlite3_stmt *s = st->position_put;
    sqlite_bind_source(s, r->source, r->partition);
    sqlite3_bind_text(s, 3, r->label, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 4, r->to);
    sqlite3_bind_int64(s, 5, (int64_t)r->tail_hash);
    sqlite3_bind_int64(s, 6, r->tail_len);
    sqlite3_bind_int64(s, 7, r->latest_ms);
    return sqlite_run(st, s, e, "writing the position") && put_witnesses(st, r, e);
}

/* Write an entry of the books by `s`, which is book_add or book_set. */
static bool put_book(struct sqlite_store *st, sqlite3_stmt *s, const struct range *r, int64_t report,
                     const char *entry, int64_t value, struct err *e)
{
    sqlite_bind_source(s, r != NULL ? r->source : "", r != NULL ? r->partition : "");
    sqlite3_bind_int64(s, 3, report);
    sqlite3_bind_text(s, 4, entry, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 5, value);
    return sqlite_run(st, s, e, "writing the books");
}

/* Note the offsets between which the report counts this source. */
static bool note_span(struct sqlite_store *st, const struct range *r, int64_t report, struct err *e)
{
    char name[STORE_ENTRY_BYTES];
    sqlite3_stmt *s = st->book_until;
    sqlite_bind_source(s, r->source, r->partition);
    sqlite3_bind_int64(s, 3, report);
    int rc = sqlite3_step(s);
    int64_t until = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_reset(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading the books");
    if (until < 0 && !put_book(st, st->book_set, r, report, "since", r->from, e))
        return false;
    if (until >= 0 && until != r->from &&
        !put_book(st, st->book_set, r, report, store_gap_entry(until, name), r->from, e))
        return false;
    return put_book(st, st->book_set, r, report, "until", r->to, e);
}

static bool add_source_books(struct sqlite_store *st, const struct range *r, const struct books *b,
                             struct err *e)
{
    char name[BOOK_NAME_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        int64_t value = b->entries[i];
        if (value != 0 && !put_book(st, st->book_add, r, 0, books_source_name(i, name), value, e))
            return false;
    }
    return true;
}

static bool add_report_books(struct sqlite_store *st, const struct range *r, const struct books *b,
                             struct err *e)
{
    for (size_t n = 0; n < b->report_count; n++) {
        const int64_t *entries = &b->entries[BOOK_SOURCE_COUNT + n * BOOK_REPORT_COUNT];
        for (int i = 0; i < BOOK_REPORT_COUNT; i++) {
            int64_t value = entries[i];
            if (value != 0 &&
                !put_book(st, st->book_add, r, st->tables[n].id, books_report_name(i), value, e))
                return false;
        }
    }
    return true;
}

/* Do the batch's cells of this report lie in at most FRESH_MINUTES_MAX minutes, as in a live flush? */
static bool is_fresh(const struct batch *batch, size_t report)
{
    uint32_t seen[FRESH_MINUTES_MAX];
    size_t count = 0;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct cells *cells = &batch->parts[p]->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++) {
            uint32_t minute = cells_at(cells, i)->time;
            size_t k = 0;
            while (k < count && seen[k] != minute)
                k++;
            if (k < count)
                continue;
            if (count == FRESH_MINUTES_MAX)
                return false;
            seen[count++] = minute;
        }
    }
    return true;
}

/* Book the events of the batch that went to the series `other`. */
static bool book_other(struct sqlite_store *st, size_t report, const struct batch *batch, struct err *e)
{
    const struct sqlite_report *t = &st->tables[report];
    int64_t other = 0;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct cells *cells = &batch->parts[p]->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++) {
            const struct cell *c = cells_at(cells, i);
            if (series_map_number(&t->map, batch->parts[p], c->series) == STORE_SERIES_OTHER)
                other += store_cell_count(&st->reports[report], c);
        }
    }
    return other == 0 || put_book(st, st->book_add, NULL, t->id, "other", other, e);
}

/* Book the events that came after their time bucket of a resolution had expired. */
static bool book_late(struct sqlite_store *st, size_t report, const struct batch *batch, struct err *e)
{
    const struct sqlite_report *t = &st->tables[report];
    int64_t late[SPAN_COUNT];
    bool good = true;
    if (!store_late(&st->base, report, &t->watermarks, batch, late))
        return true;
    for (int s = 0; good && s < SPAN_COUNT; s++) {
        char entry[STORE_ENTRY_BYTES];
        good = late[s] == 0 ||
               put_book(st, st->book_add, NULL, t->id, store_late_entry((enum span)s, entry), late[s], e);
    }
    return good;
}

static bool apply_report(struct sqlite_store *st, size_t report, const struct batch *batch, struct err *e)
{
    for (size_t p = 0; p < batch->part_count; p++) {
        if (!dict_resolve_added(st, report, batch->parts[p], e))
            return false;
    }
    if (!dict_write_new(st, report, e))
        return false;
    if (st->tables[report].series_count >= st->reports[report].series_max &&
        !book_other(st, report, batch, e))
        return false;
    if (!book_late(st, report, batch, e))
        return false;
    enum level level = is_fresh(batch, report) ? LEVEL_FRESH : LEVEL_HOUR;
    items_clear(&st->items[level]);
    for (size_t p = 0; p < batch->part_count; p++)
        rows_gather(st, report, batch->parts[p], level);
    return (level == LEVEL_FRESH ? rows_write_fresh(st, report, e)
                                 : rows_write_folded(st, report, ROWS_ADD, e)) &&
           sqlite_recent_write(st, report, batch, e);
}

/* Note where a topic's partition is first counted: a daemon begins it with an empty range. */
static bool note_begun(struct sqlite_store *st, const struct range *r, struct err *e)
{
    sqlite3_stmt *s = st->position_get;
    if (r->partition[0] == '\0' || r->from < r->to)
        return true;
    sqlite_bind_source(s, r->source, r->partition);
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(st, e, "reading the position");
    return rc == SQLITE_ROW || put_book(st, st->book_set, r, 0, "since", r->from, e);
}

static bool has_builds(const struct range *r)
{
    bool has = false;
    for (int k = 0; k < BUILD_COUNT; k++)
        has |= r->builds.of[k] != 0;
    return has;
}

/* Note the builds of the lists and databases that made fields of the range. */
static bool note_builds(struct sqlite_store *st, const struct range *r, struct err *e)
{
    struct build_stretches all = {0};
    struct build_stretch s;
    char name[STORE_ENTRY_BYTES];
    int rc = SQLITE_DONE;
    if (!has_builds(r))
        return true;
    sqlite_bind_source(st->book_list, r->source, r->partition);
    sqlite3_bind_int64(st->book_list, 3, 0);
    while ((rc = sqlite3_step(st->book_list)) == SQLITE_ROW) {
        if (build_read(sqlite_text(st->book_list, 0), sqlite3_column_int64(st->book_list, 1), &s))
            builds_put(&all, &s);
    }
    sqlite3_reset(st->book_list);
    bool good = rc == SQLITE_DONE || sqlite_fail(st, e, "reading the books");
    for (int k = 0; good && k < BUILD_COUNT; k++)
        good = !builds_after(&all, r, (enum build_kind)k, &s) ||
               put_book(st, st->book_set, r, 0, build_entry(&s, name), s.to, e);
    builds_fini(&all);
    return good;
}

static bool apply_range(struct sqlite_store *st, const struct range *range, const struct books *books,
                        struct err *e)
{
    char name[STORE_ENTRY_BYTES];
    if (!add_source_books(st, range, books, e) || !add_report_books(st, range, books, e))
        return false;
    for (size_t r = 0; r < st->base.report_count; r++) {
        if (!note_span(st, range, st->tables[r].id, e))
            return false;
    }
    if (books->entries[BOOK_REJECTED + REJECT_FUTURE] > 0 &&
        !put_book(st, st->book_set, range, 0, store_latest_entry(range, name), range->to, e))
        return false;
    if (range->state != RANGE_UNCHANGED &&
        !put_book(st, st->book_set, range, 0, STORE_STATE_ENTRY, range->state, e))
        return false;
    return note_builds(st, range, e) && note_begun(st, range, e) && sqlite_put_position(st, range, e);
}

static bool read_span(struct sqlite_store *st, const struct range *r, int64_t report,
                      struct backfill_span *span, struct err *e)
{
    sqlite3_stmt *s = st->book_list;
    int rc;
    sqlite_bind_source(s, r->source, r->partition);
    sqlite3_bind_int64(s, 3, report);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        backfill_read(span, sqlite_text(s, 0), sqlite3_column_int64(s, 1));
    sqlite3_reset(s);
    return rc == SQLITE_DONE || sqlite_fail(st, e, "reading the books");
}

static bool delete_book(struct sqlite_store *st, const struct range *r, int64_t report, const char *entry,
                        struct err *e)
{
    sqlite3_stmt *s = st->book_drop;
    sqlite_bind_source(s, r->source, r->partition);
    sqlite3_bind_int64(s, 3, report);
    sqlite3_bind_text(s, 4, entry, -1, SQLITE_STATIC);
    return sqlite_run(st, s, e, "writing the books");
}

/* Note that the report has counted a range before the position. */
static bool backfill_range(struct sqlite_store *st, const struct batch *batch, const struct range *r,
                           struct err *e)
{
    struct backfill_span span = backfill_span(batch, r);
    struct backfill_entry entries[BACKFILL_ENTRIES_MAX];
    size_t count;
    const int64_t report = st->tables[batch->report].id;
    if (batch->begun > 0 && !put_book(st, st->book_set, r, 0, "since", batch->begun, e))
        return false;
    if (!read_span(st, r, report, &span, e) || !backfill_change(&span, entries, &count, e))
        return err_prefix(e, "%s", r->label);
    for (size_t i = 0; i < count; i++) {
        const struct backfill_entry *n = &entries[i];
        if (!(n->value < 0 ? delete_book(st, r, report, n->name, e)
                           : put_book(st, st->book_set, r, report, n->name, n->value, e)))
            return false;
    }
    return true;
}

static bool apply_all(struct sqlite_store *st, const struct batch *batch, struct err *e)
{
    for (size_t i = 0; i < batch->range_count; i++) {
        if (!check_range(st, &batch->ranges[i], batch->backfills, e))
            return false;
    }
    for (size_t r = 0; r < st->base.report_count; r++) {
        if (!apply_report(st, r, batch, e))
            return false;
    }
    failpoint(FAILPOINT_STORE_ROWS);
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *range = &batch->ranges[i];
        bool good = !batch->backfills ? apply_range(st, range, &batch->books[i], e)
                                      : backfill_range(st, batch, range, e) &&
                                            add_report_books(st, range, &batch->books[i], e);
        if (!good)
            return false;
    }
    failpoint(FAILPOINT_STORE_BEFORE_COMMIT);
    return true;
}

bool sqlite_apply(struct store *base, const struct batch *batch, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    if (!sqlite_begin(st, e))
        return false;
    failpoint(FAILPOINT_STORE_BEGUN);
    if (apply_all(st, batch, e) && sqlite_commit(st, e)) {
        failpoint(FAILPOINT_STORE_AFTER_COMMIT);
        return true;
    }
    sqlite_undo(st);
    return false;
}
