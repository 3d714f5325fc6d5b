/* judge.h - can any of the first lines of a file be parsed? `import` asks before it counts. So a wrong
 * decode, or a file of another program, counts nothing.
 *
 * Judged : the first JUDGE_LINES lines from the reader's offset, or all if there are fewer; at most
 *          JUDGE_BYTES. One event is enough, whatever its time. A last line without line feed is judged only
 *          if it would be counted.
 * Cost   : mostly one line is decoded. The lines stay in the reader (reader_peek()), so that a pipe can be
 *          judged, too.
 */
#pragma once

#include "daemon/source.h"
#include "ingest/decode/decode.h"

#define JUDGE_LINES 1000
#define JUDGE_BYTES ((size_t)8 << 20)

/* False: lines were judged, and none could be parsed; EX_DATAERR says why, and what to do. `takes_last`: a
 * last line without line feed would be counted. Pre: as reader_peek(). */
bool judge_lines(struct reader *rd, const struct decode *d, size_t line_max, bool takes_last,
                 struct err *e) MUST_CHECK;
/* Does `d` read the first line, but most likely with its fields moved (fit_moved())? Then `fits` gets the
 * format that would fit. Pre: as reader_peek(). */
bool judge_moved(const struct source *src, const struct decode *d, struct text *fits);
/* Judge the lines of a source, unless some of its lines were parsed before: so say the books of `books` and
 * `more` (NULL: no further ones). */
bool judge_source(const struct source *src, const struct decode *d, size_t line_max, bool takes_last,
                  struct store *books, struct store *more, struct err *e) MUST_CHECK;
