#include "ingest/file/input_unpack.h"

#include "base/library.h"
#include "base/mem.h"
#include "base/slice.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(archive_error_string) X(archive_read_data_block) X(archive_read_free) X(archive_read_new) \
    X(archive_read_next_header) X(archive_read_open) X(archive_read_support_filter_bzip2) \
    X(archive_read_support_filter_xz) X(archive_read_support_filter_zstd) \
    X(archive_read_support_format_empty) X(archive_read_support_format_raw) \
    X(archive_set_error)
/* clang-format on */

LIBRARY(libarchive, FUNCTIONS, "libarchive.so.13", "libarchive13");

struct input_unpack {
    enum packing packing;
    input_unpack_source *source;
    void *context;
    bool failed; /* every later read returns `err` */
    struct err err;

    z_stream gzip;
    bool in_member;

    struct archive *archive; /* NULL until the first read */
    const char *block;       /* unpacked bytes that are not delivered yet */
    size_t block_len;
    bool is_over;      /* libarchive has no more data */
    const char *ahead; /* packed bytes behind that, of a file that has grown */
    size_t ahead_len;
};

static const struct {
    const char *name, *magic;
    size_t magic_len;
} packings[PACKING_COUNT] = {
    [PACKING_NONE] = {"plain", "", 0},
    [PACKING_GZIP] = {"gzip", "\x1F\x8B", 2},
    [PACKING_ZSTD] = {"zstd", "\x28\xB5\x2F\xFD", 4},
    [PACKING_BZIP2] = {"bzip2", "BZh", 3},
    [PACKING_XZ] = {"xz", "\xFD\x37zXZ\0", 6},
};

enum packing input_unpack_detect(const char *bytes, size_t len, bool *more)
{
    *more = false;
    for (int i = PACKING_NONE + 1; i < PACKING_COUNT; i++) {
        size_t magic_len = packings[i].magic_len, n = len < magic_len ? len : magic_len;
        if (memcmp(bytes, packings[i].magic, n) != 0)
            continue;
        if (n == magic_len)
            return (enum packing)i;
        *more = true;
    }
    return PACKING_NONE;
}

const char *input_unpack_name(enum packing packing)
{
    ASSERT((unsigned)packing < PACKING_COUNT);
    return packings[packing].name;
}

static bool fail(struct input_unpack *u, const char *what)
{
    u->failed = true;
    return err_set(&u->err, EX_DATAERR, "%s data: %s", input_unpack_name(u->packing), what);
}

/* Gets more packed bytes for zlib. False: they have ended, or a failure. */
static bool refill(struct input_unpack *u)
{
    const char *bytes;
    size_t len;
    if (u->gzip.avail_in > 0)
        return true;
    if (!u->source(u->context, &bytes, &len, &u->err)) {
        u->failed = true;
        return false;
    }
    ASSERT(len <= UINT_MAX);
    u->gzip.next_in = (z_const Bytef *)bytes;
    u->gzip.avail_in = (uInt)len;
    if (len == 0 && u->in_member)
        fail(u, "it ends in the middle");
    return len > 0;
}

/* Moves to the first byte of the next member. False: there is none. */
static bool next_member(struct input_unpack *u)
{
    while (refill(u) && *u->gzip.next_in == 0) {
        u->gzip.next_in++;
        u->gzip.avail_in--;
    }
    if (u->gzip.avail_in == 0)
        return false;
    u->in_member = true;
    int rc = inflateReset(&u->gzip);
    ASSERT(rc == Z_OK);
    return true;
}

static void read_gzip(struct input_unpack *u, void *buf, size_t cap, size_t *got)
{
    uInt room = cap < UINT_MAX ? (uInt)cap : UINT_MAX;
    u->gzip.next_out = buf;
    u->gzip.avail_out = room;
    while (u->gzip.avail_out == room) {
        if (!u->in_member && !next_member(u))
            break;
        if (!refill(u))
            break;
        int rc = inflate(&u->gzip, Z_NO_FLUSH);
        ASSERT(rc != Z_STREAM_ERROR);
        if (rc == Z_STREAM_END) {
            u->in_member = false;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            fail(u, u->gzip.msg != NULL ? u->gzip.msg : "damaged");
            break;
        }
    }
    *got = room - u->gzip.avail_out;
}

static la_ssize_t archive_source(struct archive *a, void *context, const void **bytes)
{
    struct input_unpack *u = context;
    const char *from = u->ahead;
    size_t len = u->ahead_len;
    u->ahead_len = 0;
    if (len == 0 && !u->source(u->context, &from, &len, &u->err)) {
        u->failed = true;
        lib.archive_set_error(a, EX_IOERR, "%s", "source failed");
        return ARCHIVE_FATAL;
    }
    *bytes = from;
    return (la_ssize_t)len;
}

static bool check_archive(struct input_unpack *u, int rc)
{
    if (rc >= ARCHIVE_WARN || u->failed)
        return !u->failed;
    const char *text = lib.archive_error_string(u->archive);
    return fail(u, text != NULL ? text : "damaged");
}

static bool open_archive(struct input_unpack *u)
{
    struct archive_entry *entry;
    if (!library_load(&libarchive, &u->err)) {
        u->failed = true;
        return false;
    }
    u->archive = lib.archive_read_new();
    if (u->archive == NULL)
        return fail(u, "out of memory");
    if (u->packing == PACKING_ZSTD)
        lib.archive_read_support_filter_zstd(u->archive);
    else if (u->packing == PACKING_BZIP2)
        lib.archive_read_support_filter_bzip2(u->archive);
    else
        lib.archive_read_support_filter_xz(u->archive);
    lib.archive_read_support_format_raw(u->archive);
    lib.archive_read_support_format_empty(u->archive);
    if (!check_archive(u, lib.archive_read_open(u->archive, u, NULL, archive_source, NULL)))
        return false;
    int rc = lib.archive_read_next_header(u->archive, &entry);
    u->is_over = rc == ARCHIVE_EOF; /* the packed file is empty */
    return check_archive(u, u->is_over ? ARCHIVE_OK : rc);
}

/* A file may have grown by a frame since its end was found. */
static bool begin_again(struct input_unpack *u)
{
    bool more;
    if (!u->source(u->context, &u->ahead, &u->ahead_len, &u->err)) {
        u->failed = true;
        return false;
    }
    for (; u->ahead_len > 0 && *u->ahead == '\0'; u->ahead_len--)
        u->ahead++; /* padding */
    if (u->ahead_len == 0)
        return false;
    if (input_unpack_detect(u->ahead, u->ahead_len, &more) != u->packing)
        return fail(u, more ? "it ends in the middle" : "other bytes follow");
    lib.archive_read_free(u->archive);
    u->archive = NULL;
    return open_archive(u);
}

static void read_archive(struct input_unpack *u, void *buf, size_t cap, size_t *got)
{
    if (u->is_over ? !begin_again(u) : u->archive == NULL && !open_archive(u))
        return;
    while (u->block_len == 0 && !u->is_over) {
        const void *block;
        size_t len;
        la_int64_t offset;
        int rc = lib.archive_read_data_block(u->archive, &block, &len, &offset);
        u->is_over = rc == ARCHIVE_EOF;
        if (u->is_over || !check_archive(u, rc))
            return;
        u->block = block;
        u->block_len = len;
    }
    if (u->block_len == 0)
        return;
    *got = u->block_len < cap ? u->block_len : cap;
    memcpy(buf, u->block, *got);
    u->block += *got;
    u->block_len -= *got;
}

struct input_unpack *input_unpack_new(enum packing packing, input_unpack_source *source, void *context)
{
    ASSERT(packing > PACKING_NONE && packing < PACKING_COUNT);
    struct input_unpack *u = xcalloc(1, sizeof *u);
    u->packing = packing;
    u->source = source;
    u->context = context;
    if (packing == PACKING_GZIP && inflateInit2(&u->gzip, 16 + MAX_WBITS) != Z_OK)
        fail(u, "zlib cannot start");
    return u;
}

void input_unpack_free(struct input_unpack *u)
{
    if (u == NULL)
        return;
    if (u->packing == PACKING_GZIP)
        inflateEnd(&u->gzip);
    if (u->archive != NULL)
        lib.archive_read_free(u->archive);
    free(u);
}

bool input_unpack_read(struct input_unpack *u, void *buf, size_t cap, size_t *got, struct err *e)
{
    *got = 0;
    if (!u->failed && u->packing == PACKING_GZIP)
        read_gzip(u, buf, cap, got);
    else if (!u->failed)
        read_archive(u, buf, cap, got);
    if (u->failed && *got == 0) {
        *e = u->err;
        return false;
    }
    return true;
}

bool input_unpack_has_size(const char *path, int64_t size)
{
    unsigned char magic[2] = {0}, length[4] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    off_t end = lseek(fd, 0, SEEK_END);
    bool good = end > 18 && pread(fd, magic, 2, 0) == 2 && pread(fd, length, 4, end - 4) == 4;
    close(fd);
    uint32_t says =
        length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 | (uint32_t)length[3] << 24;
    return good && magic[0] == 0x1f && magic[1] == 0x8b && says == (uint32_t)size;
}
