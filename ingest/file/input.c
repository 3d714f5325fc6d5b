#include "ingest/file/input.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/file/foreign_head.h"
#include "ingest/file/input_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_BYTES ((size_t)64 * 1024)
#define STOP_MS   100 /* interval at which a wait checks *stop */

/* Bytes that are compared before what was read behind them counts: a log that was truncated and has grown
 * again has others there. */
#define LAST_BYTES 512

/* Most NULs at a file's end that are taken for space; IIS makes 64 KiB. */
#define SPACE_MAX   ((int64_t)1 << 20)
#define SPACE_BYTES 4096 /* a step of the search */

struct input {
    char *name;
    int fd;
    bool is_stdin;    /* standard input, which input_close() leaves open */
    bool is_regular;  /* a regular file opened by its name: it can be sought in, and may grow */
    bool is_detected; /* `packing` is known: the first bytes have been seen */
    enum packing packing;
    struct input_unpack *unpack; /* NULL: plain */
    input_read_fn *read_fn;
    void *context;
    const atomic_bool *stop; /* NULL: nothing interrupts */
    int next_fd;             /* the first file found at its path after it; -1: none yet */
    struct stat next;
    int64_t position, raw_position;
    struct foreign_head head;
    char last[LAST_BYTES]; /* the last bytes before `position`, if it is plain */
    size_t last_len;
    bool was_at_end;         /* the last read found the end */
    bool is_truncated;       /* of a file that can grow */
    size_t raw_from, raw_to; /* range of `raw` that was read to detect the packing and is not used yet */
    char raw[RAW_BYTES];
};

static ssize_t read_really(void *context, int fd, void *buf, size_t cap)
{
    (void)context;
    return read(fd, buf, cap);
}

/* Waits for input on pipes. False: *stop is true. */
static bool may_read(const struct input *in)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    if (in->stop == NULL)
        return true;
    while (!atomic_load(in->stop)) {
        if (in->is_regular || poll(&p, 1, STOP_MS) != 0)
            return true;
    }
    return false;
}

static bool fail_read(const struct input *in, int64_t at, struct err *e)
{
    return err_set(e, EX_IOERR, "cannot read %s at byte %lld: %s", in->name, (long long)at, strerror(errno));
}

static bool read_raw(struct input *in, void *buf, size_t cap, size_t *got, struct err *e)
{
    ssize_t n;
    if (!may_read(in))
        return err_set_retryable(e, EX_TEMPFAIL, "interrupted while reading %s", in->name);
    do {
        n = in->read_fn(in->context, in->fd, buf, cap);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_read(in, in->raw_position, e);
    *got = (size_t)n;
    in->raw_position += n;
    return true;
}

static int open_path(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* A file that cannot be opened now may be there all the same. */
static bool fail_open(const struct input *in, int why, struct err *e)
{
    int code = why == EACCES || why == EPERM     ? EX_NOPERM
               : why == ENOENT || why == ENOTDIR ? EX_NOINPUT
                                                 : EX_IOERR;
    err_set(e, code, "cannot open %s: %s", in->name, strerror(why));
    e->retryable = why == EMFILE || why == ENFILE || why == ENOMEM || why == EIO || why == ESTALE;
    return false;
}

/* Look at what was opened; open(2) has set `errno` if there is no descriptor. */
static bool know_file(struct input *in, struct err *e)
{
    struct stat st;
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        return fail_open(in, errno, e);
    if (S_ISDIR(st.st_mode))
        return err_set(e, EX_NOINPUT, "cannot read %s: it is a directory", in->name);
    in->is_regular = S_ISREG(st.st_mode) && !in->is_stdin;
    return true;
}

static struct input *make(const char *name, int fd, bool is_stdin, struct err *e)
{
    struct input *in = xcalloc(1, sizeof *in);
    in->is_stdin = is_stdin;
    in->name = xstrdup(name);
    in->fd = fd;
    in->next_fd = -1;
    in->read_fn = read_really;
    if (know_file(in, e))
        return in;
    input_close(in);
    return NULL;
}

struct input *input_open(const char *path, struct err *e)
{
    if (strcmp(path, "-") == 0)
        return make("standard input", STDIN_FILENO, true, e);
    return make(path, open_path(path), false, e);
}

struct input *input_take(int fd, const char *name, struct err *e)
{
    return make(name, fd, false, e);
}

struct input *input_open_with(const char *path, input_read_fn *read_fn, void *context, struct err *e)
{
    struct input *in = input_open(path, e);
    if (in != NULL) {
        in->read_fn = read_fn;
        in->context = context;
    }
    return in;
}

void input_close(struct input *in)
{
    if (in == NULL)
        return;
    input_unpack_free(in->unpack);
    if (in->fd >= 0 && !in->is_stdin)
        close(in->fd);
    if (in->next_fd >= 0)
        close(in->next_fd);
    free(in->name);
    free(in);
}

/* Gives packed bytes to the unpacker: first the bytes that were read to detect the packing. */
static bool next_packed(void *context, const char **bytes, size_t *len, struct err *e)
{
    struct input *in = context;
    *bytes = in->raw + in->raw_from;
    *len = in->raw_to - in->raw_from;
    in->raw_from = in->raw_to;
    if (*len > 0)
        return true;
    *bytes = in->raw;
    return read_raw(in, in->raw, sizeof in->raw, len, e);
}

static void keep_last(struct input *in, const char *bytes, size_t len)
{
    size_t new_len = len < LAST_BYTES ? len : LAST_BYTES;
    size_t old_len = LAST_BYTES - new_len < in->last_len ? LAST_BYTES - new_len : in->last_len;
    memmove(in->last, in->last + in->last_len - old_len, old_len);
    memcpy(in->last + old_len, bytes + len - new_len, new_len);
    in->last_len = old_len + new_len;
}

/* Are the `want` bytes before a position still those that were read? */
static bool compare_before(const struct input *in, int64_t position, size_t want, bool *is_same,
                           struct err *e)
{
    char now[LAST_BYTES];
    size_t len = 0;
    ssize_t n = 1;
    while (n > 0 && len < want) {
        n = pread(in->fd, now + len, want - len, position - (int64_t)(want - len));
        len += n > 0 ? (size_t)n : 0;
    }
    *is_same = len == want && memcmp(now, in->last + in->last_len - want, want) == 0;
    return n >= 0 || fail_read(in, position, e);
}

static size_t without_nuls(const char *bytes, size_t len)
{
    while (len > 0 && bytes[len - 1] == '\0')
        len--;
    return len;
}

/* The end of what was written: behind it, the file has only NULs. `size`: there are too many of them. */
static int64_t written_end(const struct input *in, int64_t size)
{
    char bytes[SPACE_BYTES];
    int64_t end = size;
    while (end > 0 && size - end <= SPACE_MAX) {
        size_t len = end < SPACE_BYTES ? (size_t)end : SPACE_BYTES;
        if (pread(in->fd, bytes, len, end - (int64_t)len) != (ssize_t)len)
            return size;
        size_t left = without_nuls(bytes, len);
        end -= (int64_t)(len - left);
        if (left > 0)
            return end;
    }
    return end == 0 ? 0 : size;
}

/* Are the bytes [from, to) of the file still NULs? */
static bool are_nuls(const struct input *in, int64_t from, int64_t to)
{
    char bytes[SPACE_BYTES];
    while (from < to) {
        size_t len = to - from < SPACE_BYTES ? (size_t)(to - from) : SPACE_BYTES;
        if (pread(in->fd, bytes, len, from) != (ssize_t)len || without_nuls(bytes, len) > 0)
            return false;
        from += (int64_t)len;
    }
    return true;
}

/* Gives back the NULs at the end of the bytes that were read last, if nobody has written there yet: then only
 * NULs follow in the file. If they are none any more, they are read again. */
static bool give_back_space(struct input *in, const char *buf, size_t *got, struct err *e)
{
    struct stat st;
    size_t len = without_nuls(buf, *got);
    int64_t end = in->raw_position - (int64_t)(*got - len);
    if (LIKELY(len == *got) || !in->is_regular || fstat(in->fd, &st) != 0)
        return true;
    if (written_end(in, st.st_size) > end && are_nuls(in, end, in->raw_position))
        return true;
    if (lseek(in->fd, end, SEEK_SET) < 0)
        return fail_read(in, end, e);
    in->raw_position = end;
    *got = len;
    return true;
}

/* Read more bytes, and check that the bytes before them are those that were read: a truncated file has
 * others. As many are compared as were read, or all that were kept if the last read found the end. If
 * they differ, nothing is delivered. */
static bool read_more(struct input *in, void *buf, size_t cap, size_t *got, struct err *e)
{
    int64_t from = in->raw_position;
    bool is_same = true, may_be_truncated = in->is_regular && in->read_fn == read_really;
    if (in->is_truncated)
        return true;
    if (!read_raw(in, buf, cap, got, e) || !give_back_space(in, buf, got, e))
        return false;
    size_t want = in->was_at_end || *got > in->last_len ? in->last_len : *got;
    in->was_at_end = *got == 0;
    if (*got > 0 && want > 0 && may_be_truncated && !compare_before(in, from, want, &is_same, e))
        return false;
    in->is_truncated = !is_same;
    *got = is_same ? *got : 0;
    return true;
}

/* Reads just enough to detect the packing: on a pipe, more may come only much later. */
static bool detect(struct input *in, struct err *e)
{
    bool more = true;
    while (!in->is_detected && more) {
        size_t got;
        if (!read_raw(in, in->raw + in->raw_to, sizeof in->raw - in->raw_to, &got, e))
            return false;
        size_t before = in->raw_to;
        in->raw_to += got;
        if (input_unpack_detect(in->raw, in->raw_to, &more) == PACKING_NONE &&
            !give_back_space(in, in->raw, &in->raw_to, e))
            return false;
        got = in->raw_to - before;
        if (in->raw_to == 0)
            return true; /* still empty */
        in->packing = input_unpack_detect(in->raw, in->raw_to, &more);
        more = more && got > 0;
        in->is_detected = in->packing != PACKING_NONE || !more;
    }
    if (in->packing != PACKING_NONE && in->unpack == NULL)
        in->unpack = input_unpack_new(in->packing, next_packed, in);
    return true;
}

static bool read_plain(struct input *in, void *buf, size_t cap, size_t *got, struct err *e)
{
    size_t held = in->raw_to - in->raw_from;
    if (held > 0) {
        *got = held < cap ? held : cap;
        memcpy(buf, in->raw + in->raw_from, *got);
        in->raw_from += *got;
    } else if (in->is_detected && !read_more(in, buf, cap, got, e)) {
        return false;
    }
    if (in->is_regular)
        keep_last(in, buf, *got);
    return true;
}

bool input_read(struct input *in, void *buf, size_t cap, size_t *got, struct err *e)
{
    ASSERT(cap > 0);
    *got = 0;
    if (!detect(in, e))
        return false;
    if (in->unpack == NULL) {
        if (!read_plain(in, buf, cap, got, e))
            return false;
    } else if (!input_unpack_read(in->unpack, buf, cap, got, e)) {
        return e->code != EX_DATAERR
                   ? false
                   : err_prefix(e, "%s: cannot unpack past byte %lld", in->name, (long long)in->position);
    }
    const char *foreign = foreign_head_take(&in->head, in->position, buf, *got);
    if (foreign != NULL)
        return err_set(e, EX_DATAERR, "%s %s", in->name, foreign);
    in->position += (int64_t)*got;
    return true;
}

static bool ends_early(const struct input *in, int64_t position, struct err *e)
{
    return err_set(e, EX_DATAERR, "%s ends before byte %lld, up to which it has been counted", in->name,
                   (long long)position);
}

static bool seek(struct input *in, int64_t position, struct err *e)
{
    struct stat st;
    bool ok = fstat(in->fd, &st) == 0;
    if (ok && position > st.st_size)
        return ends_early(in, position, e);
    if (!ok || lseek(in->fd, position, SEEK_SET) < 0)
        return err_set(e, EX_IOERR, "cannot seek in %s: %s", in->name, strerror(errno));
    in->position = in->raw_position = position;
    in->raw_from = in->raw_to = in->last_len = 0;
    in->was_at_end = false;
    return true;
}

bool input_skip(struct input *in, int64_t position, struct err *e)
{
    if (position == in->position)
        return true;
    if (!detect(in, e))
        return false;
    if (in->is_detected && in->unpack == NULL && in->is_regular)
        return seek(in, position, e);
    ASSERT(position > in->position);
    char *buf = xmalloc(RAW_BYTES);
    size_t got = 1;
    bool ok = true;
    while (ok && got > 0 && in->position < position) {
        int64_t left = position - in->position;
        ok = input_read(in, buf, left < (int64_t)RAW_BYTES ? (size_t)left : RAW_BYTES, &got, e);
    }
    free(buf);
    return ok && (in->position == position || ends_early(in, position, e));
}

bool input_wait(struct input *in, int timeout_ms)
{
    if (in->is_regular || in->unpack != NULL || in->raw_from < in->raw_to)
        return true;
    struct pollfd pfd = {.fd = in->fd, .events = POLLIN};
    return poll(&pfd, 1, timeout_ms) > 0;
}

void input_stop_by(struct input *in, const atomic_bool *stop)
{
    in->stop = stop;
}

bool input_is(const struct input *in, dev_t device, ino_t inode)
{
    struct stat own;
    return fstat(in->fd, &own) == 0 && own.st_dev == device && own.st_ino == inode;
}

bool input_is_same(const struct input *a, const struct input *b)
{
    struct stat status;
    return fstat(b->fd, &status) == 0 && input_is(a, status.st_dev, status.st_ino);
}

int64_t input_changed_ms(const struct input *in)
{
    struct stat own;
    return fstat(in->fd, &own) == 0 ? clock_ns(own.st_mtim) / 1000000 : 0;
}

size_t input_head(const struct input *in, char *buf, size_t capacity)
{
    struct stat st;
    ssize_t n = input_can_grow(in) ? pread(in->fd, buf, capacity, 0) : 0;
    if (n > 0 && buf[n - 1] == '\0' && fstat(in->fd, &st) == 0) {
        int64_t end = written_end(in, st.st_size);
        n = end < n ? (ssize_t)end : n;
    }
    return n > 0 ? (size_t)n : 0;
}

bool input_has_name(const struct input *in)
{
    struct stat own;
    return fstat(in->fd, &own) == 0 && own.st_nlink > 0;
}

int input_held_fd(const struct input *in)
{
    return in->next_fd;
}

bool input_is_regular(const struct input *in)
{
    return in->is_regular;
}

int64_t input_raw_position(const struct input *in)
{
    return in->raw_position;
}

int64_t input_raw_size(const struct input *in)
{
    struct stat st;
    return in->is_regular && fstat(in->fd, &st) == 0 ? (int64_t)st.st_size : 0;
}

bool input_can_grow(const struct input *in)
{
    return in->is_regular && in->packing == PACKING_NONE;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum input_fate input_fate(struct input *in)
{
    struct stat now, own;
    if (!in->is_regular || fstat(in->fd, &own) != 0)
        return INPUT_STANDS;
    if (in->is_truncated || own.st_size < in->raw_position)
        return INPUT_TRUNCATED;
    bool is_there = stat(in->name, &now) == 0;
    bool is_other = is_there && !is_same(&now, &own);
    if (in->next_fd >= 0)
        return is_other && !is_same(&now, &in->next) ? INPUT_RENAMED_AGAIN : INPUT_RENAMED;
    if (!is_other)
        return is_there ? INPUT_STANDS : INPUT_RENAMED;
    in->next_fd = open_path(in->name); /* if this fails, it is found by its name */
    if (in->next_fd >= 0)
        (void)fstat(in->next_fd, &in->next);
    return INPUT_RENAMED;
}
