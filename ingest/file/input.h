/* input.h - reads the bytes of a log file in order, compressed or not. The reader (reader.h) calls it.
 *
 *   plain file            read(2); it can grow, so more may follow later
 *   gzip zstd bzip2 xz    unpacked (input_unpack.h); several members or frames in a row are one stream
 *   standard input, FIFO  plain or compressed, detected from the first bytes
 *
 * Position : counts decompressed bytes; it is the offset under which a file's lines are counted.
 * Pipes    : after input_wait(), input_read() does not block, so a live source can seal its batches by time.
 *            This does not hold for a compressed pipe, on which a wait always returns at once.
 * Space    : a plain file may end in NULs that its writer has not filled yet, as IIS makes them, at most 1
 *            MiB. The file ends before them, until something else is written there.
 * Never    : mmap: a file that is truncated while it is read must not kill the daemon.
 * Errors   : EX_NOINPUT: no such file, or a directory; EX_NOPERM; EX_IOERR, retryable if the file may be
 *            opened later; EX_DATAERR: a tar or zip
 *            archive, or a file of messages (foreign_head.h); or damaged or cut-off compressed data, returned
 *            only after every byte before the damage was delivered.
 * Threads  : one at a time.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct input;

/* Reads bytes from a file descriptor; tests replace it to simulate short reads and failures. */
typedef ssize_t input_read_fn(void *context, int fd, void *buf, size_t cap);

/* "-" is standard input. NULL on failure. Reads nothing yet, so a pipe may still be empty. */
struct input *input_open(const char *path, struct err *e) MUST_CHECK;
/* Takes over an open descriptor, which may be of a file that this process could not open by its name: `name`
 * is for messages only. NULL on failure, and the descriptor is closed then, too. */
struct input *input_take(int fd, const char *name, struct err *e) MUST_CHECK;
/* As input_open(), with `read_fn` instead of read(2); it must behave as read(2) does. */
struct input *input_open_with(const char *path, input_read_fn *read_fn, void *context,
                              struct err *e) MUST_CHECK;
void input_close(struct input *in);

/* Reads up to `cap` bytes into `buf`; *got is 0 at the end (for a file that can grow: at its end so far). */
bool input_read(struct input *in, void *buf, size_t cap, size_t *got, struct err *e) MUST_CHECK;
/* Moves to `position`. In a compressed stream or a pipe it must not be before the current position. False:
 * EX_DATAERR, the input ends earlier; or a read error. */
bool input_skip(struct input *in, int64_t position, struct err *e) MUST_CHECK;
/* Is there something to read (the end counts)? Waits up to timeout_ms, or for ever if negative; a signal ends
 * the wait early. Always true for files. On standard input and FIFOs, use it to keep a deadline. */
bool input_wait(struct input *in, int timeout_ms);

/* From now on a read fails with EX_TEMPFAIL, "interrupted", once *stop is true. It is checked at each read,
 * and on standard input and FIFOs also while waiting. */
void input_stop_by(struct input *in, const atomic_bool *stop);

/* For a progress bar: bytes of the file read from disk, and its size on disk; size 0: unknown. */
int64_t input_raw_position(const struct input *in);
int64_t input_raw_size(const struct input *in);
/* Is it a plain regular file, so that reading again after the end may bring more? Known after the first
 * read. */
bool input_can_grow(const struct input *in);
/* Is it this file? */
bool input_is(const struct input *in, dev_t device, ino_t inode);
/* Are both of one file? */
bool input_is_same(const struct input *a, const struct input *b);
/* Wall-clock time of its last change, in ms. */
int64_t input_changed_ms(const struct input *in);
/* Reads the first bytes of a file that can grow, wherever it is read now. Returns their number. */
size_t input_head(const struct input *in, char *buf, size_t capacity);
/* Has the file a name still, here or elsewhere? */
bool input_has_name(const struct input *in);
/* The first other file that input_fate() found in its place, held open although it may have been renamed or
 * deleted since; -1: none. It lives as long as `in`. */
int input_held_fd(const struct input *in);
/* Is it a file on disk, packed or not, and neither standard input nor a FIFO? */
bool input_is_regular(const struct input *in);
/* The fate of a regular file. */
enum input_fate {
    INPUT_STANDS,
    INPUT_RENAMED,       /* its path has another file, or none: logs were rotated */
    INPUT_RENAMED_AGAIN, /* the other file was renamed, too: nobody writes to this one any more */
    INPUT_TRUNCATED,     /* it is shorter than the bytes read from it, or has others: copied and truncated. Of
                            a packed one only its length tells */
};
enum input_fate input_fate(struct input *in);
