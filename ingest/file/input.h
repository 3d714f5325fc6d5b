/* input.h - the bytes of a log file in order, whatever it was packed with.
 *
 *   plain file            read(2), and more may follow later: it can grow
 *   gzip zstd bzip2 xz    by libarchive; several members or frames after each other are one stream
 *   standard input, FIFO  either of the two, as its first bytes say
 *
 * Position : counts decompressed bytes; it is the offset under which a file's lines are counted.
 * Pipes    : input_wait() first, and input_read() will not block: a live source can seal its batches by
 *            time. Not so a compressed pipe, where a wait is always over at once.
 * Never    : mmap: a file that is truncated while it is read must not kill the daemon.
 * Errors   : EX_NOINPUT: no such file, or a directory; EX_NOPERM; EX_IOERR; EX_DATAERR: damaged or cut-off
 *            compressed data, told only after every byte before the damage was delivered.
 * Threads  : one at a time.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct input;

/* How bytes come out of a file descriptor; tests put short reads and failures in its place. */
typedef ssize_t input_read_fn(void *context, int fd, void *buf, size_t cap);

/* "-" is standard input. NULL on failure. Reads nothing yet, so that a pipe may still be empty. */
struct input *input_open(const char *path, struct err *e) MUST_CHECK;
/* The same with `read_fn` instead of read(2); it must behave as read(2) does. */
struct input *input_open_with(const char *path, input_read_fn *read_fn, void *context,
                              struct err *e) MUST_CHECK;
/* The file that took the place of `before`, as input_fate() found it first, whatever took its own since;
 * where it found none, what is at that path now. `before` stays the caller's. */
struct input *input_open_next(const struct input *before, struct err *e) MUST_CHECK;
void input_close(struct input *in);

/* Up to `cap` bytes into `buf`; *got is 0 at the end (for a file that can grow: at its end so far). */
bool input_read(struct input *in, void *buf, size_t cap, size_t *got, struct err *e) MUST_CHECK;
/* Go on at `position`, which is not before the current one in a compressed stream or a pipe. False with
 * EX_DATAERR where the input ends earlier. */
bool input_skip(struct input *in, int64_t position, struct err *e) MUST_CHECK;
/* Is there something to read (the end counts)? Waits up to timeout_ms, or for ever below 0; a signal
 * ends the wait early. Always true for files. On standard input and FIFOs this is the way to a deadline. */
bool input_wait(struct input *in, int timeout_ms);

/* From now on a read ends with EX_TEMPFAIL, "interrupted", once *stop is true: at the next read, and on
 * standard input and FIFOs also while waiting. */
void input_stop_by(struct input *in, const atomic_bool *stop);

/* For a progress bar: bytes of the file read from disk, and its size there; 0 where nobody knows. */
int64_t input_raw_position(const struct input *in);
int64_t input_raw_size(const struct input *in);
/* A plain regular file: reading again after the end may bring more. Known after the first read. */
bool input_can_grow(const struct input *in);
/* A file on disk, packed or not: neither standard input nor a FIFO. */
bool input_is_regular(const struct input *in);
/* What became of a file that can grow? */
enum input_fate {
    INPUT_STANDS,
    INPUT_RENAMED,       /* its path has another file with something in it by now: logs were rotated */
    INPUT_RENAMED_AGAIN, /* and that was renamed, too: whoever wrote it has let go of this one */
    INPUT_TRUNCATED,     /* it is shorter than what was read of it: copied and truncated */
};
enum input_fate input_fate(struct input *in);
