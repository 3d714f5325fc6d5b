/* Brings a file of an older format to the present one: keeps a copy of it, then gives pages checksums. */
#include "base/failpoint.h"
#include "base/log.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <stdio.h>

#define MIB ((double)(1 << 20))

/* A file of an older format. */
struct older {
    int64_t format, page_bytes, pages;
    char kept[SQLITE_PATH_BYTES]; /* path of the copy */
};

static bool read_older(struct sqlite_store *st, struct older *o, struct err *e)
{
    char end[32];
    if (!sqlite_read_int(st, &o->format, e, "PRAGMA user_version") ||
        !sqlite_read_int(st, &o->page_bytes, e, "PRAGMA page_size") ||
        !sqlite_read_int(st, &o->pages, e, "PRAGMA page_count"))
        return false;
    snprintf(end, sizeof end, "-format%lld", (long long)o->format);
    (void)sqlite_beside(st, end, o->kept);
    return true;
}

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context, (void)what, (void)done, (void)total;
    return true;
}

/* An upgrade that was killed is done again, and so is its copy. */
static bool keep_copy(const struct sqlite_store *st, const struct older *o, struct err *e)
{
    struct text said = {0};
    const struct backup b = {.path = o->kept, .force = true, .goes_on = goes_on};
    bool good = sqlite_backup(st->path, &b, &said, e);
    text_fini(&said);
    failpoint(FAILPOINT_UPGRADE_KEPT);
    return good;
}

/* SQLite rewrites the file to make room for checksums. VACUUM makes a second file of this size, which must
 * not be in memory. */
static bool rewrite(struct sqlite_store *st, struct err *e)
{
    char pragma[64];
    int reserve = SQLITE_VFS_RESERVED;
    sqlite3_file_control(st->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
    bool good = sqlite_execute(st, "PRAGMA temp_store=FILE; VACUUM", "giving pages checksums", e);
    failpoint(FAILPOINT_UPGRADE_REWRITTEN);
    snprintf(pragma, sizeof pragma, "PRAGMA user_version=%d", SQLITE_SEALED_FORMAT);
    return good && sqlite_execute(st, pragma, "giving pages checksums", e);
}

bool sqlite_seal(struct sqlite_store *st, struct err *e)
{
    char quoted[LOG_QUOTE_BYTES], kept[LOG_QUOTE_BYTES];
    struct older o;
    if (!read_older(st, &o, e))
        return false;
    if (o.page_bytes != SQLITE_VFS_PAGE) {
        log_warn("store_without_checksums",
                 "file=%s next=\"pages of %lld bytes have no checksums: import into a new store\"", st->path,
                 (long long)o.page_bytes);
        return true;
    }
    log_info("store_gets_checksums", "file=%s bytes=%lld kept=%s", st->path,
             (long long)(o.page_bytes * o.pages), log_quote(o.kept, kept));
    bool good = keep_copy(st, &o, e) && rewrite(st, e);
    st->is_unsealed = !good;
    if (!good && e->code != EX_DATAERR) /* no room: the store continues without checksums */
        log_warn("store_without_checksums", "file=%s error=%s next=\"the next start tries again\"", st->path,
                 log_quote(e->text, quoted));
    struct err ignored;
    return (good || e->code != EX_DATAERR) &&
           sqlite_execute(st, "PRAGMA temp_store=MEMORY", "opening", &ignored);
}

/* ---- by command */

static bool upgrade(const char *path, const struct older *o, struct text *said, struct err *e)
{
    struct store *st = sqlite_open(path, STORE_WRITE, NULL, 0, e);
    if (st == NULL)
        return false;
    bool is_unsealed = sqlite_of(st)->is_unsealed;
    sqlite_close(st);
    if (is_unsealed)
        return err_set(e, EX_CANTCREAT, "%s keeps format %lld: the warning above says why", path,
                       (long long)o->format);
    text_printf(said, "%s: has format %d now; %s has it as it was\n", path, SQLITE_SEALED_FORMAT, o->kept);
    return true;
}

bool sqlite_upgrade(const char *path, bool dry, struct text *said, struct err *e)
{
    struct older o;
    struct store *st = sqlite_open(path, STORE_READ, NULL, 0, e);
    if (st == NULL)
        return false;
    bool good = read_older(sqlite_of(st), &o, e);
    sqlite_close(st);
    if (!good)
        return false;
    double mib = (double)(o.page_bytes * o.pages) / MIB;
    if (o.format >= SQLITE_SEALED_FORMAT)
        text_printf(said, "%s: has format %lld: nothing to do\n", path, (long long)o.format);
    else if (dry)
        text_printf(
            said,
            "%s: would get format %d instead of %lld: %.1f MiB are rewritten, which needs about %.1f MiB "
            "of free space for a while, and %.1f MiB for a copy of it as it is, %s\n",
            path, SQLITE_SEALED_FORMAT, (long long)o.format, mib, 2 * mib, mib, o.kept);
    else
        return upgrade(path, &o, said, e);
    return true;
}
