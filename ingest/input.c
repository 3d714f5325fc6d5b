#include "ingest/input.h"

#include "base/mem.h"
#include "ingest/input_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_BYTES ((size_t)64 * 1024)
#define STOP_MS   100 /* how often a wait looks whether it is time to stop */

struct input {
    char *name;
    int fd;
    bool is_stdin;    /* which is not ours to close */
    bool is_regular;  /* and opened by its name: may be sought in, and may grow */
    bool is_detected; /* `packing` is known: the first bytes have been seen */
    enum packing packing;
    struct input_unpack *unpack; /* NULL: plain */
    input_read_fn *read_fn;
    void *context;
    const atomic_bool *stop; /* NULL: nothing interrupts */
    ino_t successor;         /* 0: its path has no other file yet */
    int64_t position, raw_position;
    size_t raw_from, raw_to; /* bytes of `raw` that were read to detect the packing, not used yet */
    char raw[RAW_BYTES];
};

static ssize_t read_really(void *context, int fd, void *buf, size_t cap)
{
    (void)context;
    return read(fd, buf, cap);
}

/* False: it is time to stop. Waits for what may be long in coming. */
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

static bool read_raw(struct input *in, void *buf, size_t cap, size_t *got, struct err *e)
{
    ssize_t n;
    if (!may_read(in))
        return err_set_retryable(e, EX_TEMPFAIL, "interrupted while reading %s", in->name);
    do {
        n = in->read_fn(in->context, in->fd, buf, cap);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, EX_IOERR, "cannot read %s at byte %lld: %s", in->name, (long long)in->raw_position,
                       strerror(errno));
    *got = (size_t)n;
    in->raw_position += n;
    return true;
}

static bool open_file(struct input *in, const char *path, struct err *e)
{
    struct stat st;
    in->is_stdin = strcmp(path, "-") == 0;
    in->fd = in->is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        return err_set(e, errno == EACCES ? EX_NOPERM : EX_NOINPUT, "cannot open %s: %s", in->name,
                       strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(e, EX_NOINPUT, "cannot read %s: it is a directory", in->name);
    in->is_regular = S_ISREG(st.st_mode) && !in->is_stdin;
    return true;
}

struct input *input_open_with(const char *path, input_read_fn *read_fn, void *context, struct err *e)
{
    struct input *in = xcalloc(1, sizeof *in);
    in->name = xstrdup(strcmp(path, "-") == 0 ? "standard input" : path);
    in->read_fn = read_fn;
    in->context = context;
    if (!open_file(in, path, e)) {
        input_close(in);
        return NULL;
    }
    return in;
}

struct input *input_open(const char *path, struct err *e)
{
    return input_open_with(path, read_really, NULL, e);
}

void input_close(struct input *in)
{
    if (in == NULL)
        return;
    input_unpack_free(in->unpack);
    if (in->fd >= 0 && !in->is_stdin)
        close(in->fd);
    free(in->name);
    free(in);
}

/* The packed bytes for the unpacker: first those that were read to detect the packing. */
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

/* Read just enough to tell what the input is packed with: on a pipe no more may come for long. */
static bool detect(struct input *in, struct err *e)
{
    bool more = true;
    while (!in->is_detected && more) {
        size_t got;
        if (!read_raw(in, in->raw + in->raw_to, sizeof in->raw - in->raw_to, &got, e))
            return false;
        in->raw_to += got;
        if (got == 0 && in->raw_to == 0)
            return true; /* empty as yet */
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
    if (held == 0)
        return !in->is_detected || read_raw(in, buf, cap, got, e);
    *got = held < cap ? held : cap;
    memcpy(buf, in->raw + in->raw_from, *got);
    in->raw_from += *got;
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
    in->raw_from = in->raw_to = 0;
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

enum input_fate input_fate(struct input *in)
{
    struct stat now, own;
    if (!input_can_grow(in) || fstat(in->fd, &own) != 0)
        return INPUT_STANDS;
    if (own.st_size < in->raw_position)
        return INPUT_TRUNCATED;
    bool same = stat(in->name, &now) != 0 || (now.st_dev == own.st_dev && now.st_ino == own.st_ino);
    if (same || now.st_size == 0)
        return INPUT_STANDS;
    if (in->successor == 0)
        in->successor = now.st_ino;
    return in->successor == now.st_ino ? INPUT_RENAMED : INPUT_RENAMED_AGAIN;
}
