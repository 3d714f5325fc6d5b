/* Fills a new file with a copy of another store. Until the copy is whole, the file has a format of its own,
 * which every version refuses. */
#include "store/fill.h"
#include "base/failpoint.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the mark */

static bool read_mark(struct sqlite_store *st, int64_t *application, int64_t *format, int64_t *tables,
                      struct err *e)
{
    int rc =
        sqlite3_open_v2(st->path, &st->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, sqlite_vfs_name());
    bool good = (rc == SQLITE_OK || sqlite_fail(st, e, "opening")) &&
                sqlite_read_int(st, application, e, "PRAGMA application_id") &&
                sqlite_read_int(st, format, e, "PRAGMA user_version") &&
                sqlite_read_int(st, tables, e, "SELECT count(*) FROM sqlite_master");
    sqlite3_close(st->db);
    st->db = NULL;
    return good;
}

bool sqlite_clear_unfinished(struct sqlite_store *st, struct err *e)
{
    struct sqlite_store old = {.path = st->path, .lock_fd = -1, .file_fd = -1};
    struct stat status;
    int64_t application, format, tables;
    if (stat(st->path, &status) != 0 || status.st_size == 0)
        return true;
    if (!read_mark(&old, &application, &format, &tables, e))
        return false;
    if (application == 0 && format == 0 && tables == 0)
        return true;
    if (application != SQLITE_APPLICATION_ID || format != SQLITE_UNFINISHED_FORMAT)
        return err_set(e, EX_CANTCREAT, "%s holds something already: name a new file", st->path);
    if (truncate(st->path, 0) != 0)
        return err_set(e, EX_IOERR, "cannot write %s: %s", st->path, strerror(errno));
    static const char *const beside[] = {"-wal", "-shm"};
    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        char path[SQLITE_PATH_BYTES];
        if (unlink(sqlite_beside(st, beside[i], path)) != 0 && errno != ENOENT)
            return err_set(e, EX_IOERR, "cannot remove %s: %s", path, strerror(errno));
    }
    return true;
}

/* ---- filling */

bool sqlite_fill_report(struct sqlite_store *st, size_t report, const struct batch *batch, struct err *e)
{
    for (size_t p = 0; p < batch->part_count; p++) {
        if (!dict_resolve_added(st, report, batch->parts[p], e))
            return false;
    }
    if (batch->of_newest)
        return dict_write_new(st, report, e) && sqlite_recent_write(st, report, batch, e);
    items_clear(&st->items[LEVEL_HOUR]);
    for (size_t p = 0; p < batch->part_count; p++)
        rows_gather(st, report, batch->parts[p], LEVEL_HOUR);
    return dict_write_new(st, report, e) && rows_write_folded(st, report, ROWS_ADD, e);
}

static bool fill(struct store *base, const struct batch *batch, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    bool good = sqlite_begin(st, e);
    for (size_t r = 0; good && r < base->report_count; r++) {
        st->tables[r].watermarks = st->fills[r]; /* as the file will have them */
        good = sqlite_fill_report(st, r, batch, e);
    }
    if (good && sqlite_commit(st, e)) {
        failpoint(FAILPOINT_COPY_FILLED);
        return true;
    }
    sqlite_undo(st);
    return false;
}

bool sqlite_put_book(struct sqlite_store *st, const struct store_book *book, struct err *e)
{
    sqlite3_stmt *s = st->book_set;
    sqlite_bind_source(s, book->source, book->partition);
    sqlite3_bind_int64(s, 3, book->report == STORE_NO_REPORT ? 0 : st->tables[book->report].id);
    sqlite3_bind_text(s, 4, book->entry, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, book->value);
    return sqlite_run(st, s, e, "writing the books");
}

static bool put_content(struct sqlite_store *st, const struct store_content *content, struct err *e)
{
    char pragma[64];
    for (size_t r = 0; r < st->base.report_count; r++) {
        if (!sqlite_put_watermarks(st, r, &st->fills[r], e))
            return false;
    }
    for (size_t i = 0; i < content->position_count; i++) {
        if (!sqlite_put_position(st, &content->positions[i], e))
            return false;
    }
    for (size_t i = 0; i < content->book_count; i++) {
        if (!sqlite_put_book(st, &content->books[i], e))
            return false;
    }
    snprintf(pragma, sizeof pragma, "PRAGMA user_version=%d",
             st->body.packs_tight ? SQLITE_STORE_FORMAT : SQLITE_SEALED_FORMAT);
    failpoint(FAILPOINT_COPY_FINISHING);
    return sqlite_execute(st, pragma, "ending the copy", e);
}

static bool finish(struct store *base, const struct store_content *content, struct err *e)
{
    struct sqlite_store *st = sqlite_of(base);
    if (sqlite_begin(st, e) && put_content(st, content, e) && sqlite_commit(st, e))
        return true;
    sqlite_undo(st);
    return false;
}

const struct store_fill_ops sqlite_fill_ops = {.fill = fill, .finish = finish};
