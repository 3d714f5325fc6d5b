/* reader.h - cuts an input into blocks of whole lines with their exact offsets. The pipeline of an
 * import and the follower of a daemon call it.
 *
 *   input bytes  … GET /a …\n… GET /b …\n… GET /c     →  block [from, to)  + a rest kept for the next
 *
 * Limits : a block holds READER_BLOCK_BYTES and one line more. A line over line_max is delivered with at
 *          least its first line_max + 1 bytes, so that the decoder sees that it is too long; offsets count
 *          every byte. No block ends within a line, however long: otherwise counting that resumes there would
 *          take the line's rest for a line.
 * Last   : a last line without line feed is delivered when a pipe ends, when LAST_LINE_COMPLETE sees that
 *          it is a whole combined line, or by LAST_LINE_TAKE. Otherwise it is left for later (reader_left()),
 *          also in a packed file: that cannot grow, but may be a copy of a file that does.
 * Fields : if it heeds directives, each block has the #Fields: that holds at its first line (directive.h). So
 *          the threads of an import, and a file that is continued, read each line by the right names. Then
 *          reader_skip() reads all that it skips.
 * Owner  : the caller owns input and block; the reader copies what it keeps.
 * Threads: one at a time: the follower's, or a worker of the pipeline under a lock.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "ingest/file/directive.h"
#include "ingest/file/input.h"

#include <stdint.h>

#define READER_BLOCK_BYTES ((size_t)256 << 10)
#define READER_TAIL_BYTES  4096

/* LAST_LINE_COMPLETE is for lines that end with the agent: in other formats half a line may look like one. */
enum last_line { LAST_LINE_LEAVE, LAST_LINE_COMPLETE, LAST_LINE_TAKE };

enum reader_result { READER_BLOCK, READER_WAIT, READER_END, READER_FAILED };

/* Whole lines. Each ends with a line feed in `data`, even if the input had none. */
struct block {
    char *data;
    size_t len, capacity;
    int64_t from, to;      /* offsets in the (decompressed) input */
    struct text directive; /* before the block, if the reader heeds directives; empty: there is none */
};

struct reader;

struct reader *reader_new(struct input *in, size_t line_max, enum last_line last_line);
void reader_free(struct reader *rd);

/* Both: once the first bytes may be known (reader_head()). Pre: no block was read, and nothing skipped. */
void reader_heed_directives(struct reader *rd);
void reader_set_last_line(struct reader *rd, enum last_line last_line);

void block_init(struct block *b, size_t line_max);
void block_fini(struct block *b);

/* Reads the first bytes of the input, at most READER_TAIL_BYTES. Pre: offset 0, nothing else was read. */
bool reader_head(struct reader *rd, struct slice *head, struct err *e) MUST_CHECK;
/* The next `len` bytes, or fewer if the input ends or fails. reader_next() delivers them all the same, and
 * then the failure. Waits for a pipe. A second call adds more. Valid until the next call. Pre: no block was
 * read. */
struct slice reader_peek(struct reader *rd, size_t len);
/* Takes the input to end at `offset`; a later call may take it to end further on. Pre: no byte behind
 * `offset` was read yet. */
void reader_end_at(struct reader *rd, int64_t offset);
/* Moves to `offset`, at or after the present offset, at or before the end. Pre: nothing was peeked at.
 * False: EX_DATAERR, the input ends before; or a read error. */
bool reader_skip(struct reader *rd, int64_t offset, struct err *e) MUST_CHECK;
/* Reads the next lines. READER_WAIT: nothing came within wait_ms, more may come. */
enum reader_result reader_next(struct reader *rd, struct block *b, int wait_ms, struct err *e) MUST_CHECK;

/* The last bytes before the present offset, at most READER_TAIL_BYTES; valid until the next call. */
struct slice reader_tail(const struct reader *rd);
/* The #Fields: that holds at the present offset, if the reader heeds directives; empty: there is none. Valid
 * until the next call. */
struct slice reader_directive(const struct reader *rd);
int64_t reader_offset(const struct reader *rd);
/* Bytes of the file that were read from disk. */
int64_t reader_raw_offset(const struct reader *rd);
enum input_fate reader_fate(const struct reader *rd);
/* Bytes of an unfinished last line that were left for later. */
size_t reader_left(const struct reader *rd);
