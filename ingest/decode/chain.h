/* chain.h - one thread's decoder of a source: a record or line in, events and rejects out, one by one.
 *
 *   chain_start(c, &record);
 *   while ((what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END)
 *       …
 *
 * Several : a message is one line or several, one JSON object or an array of them: each line and each element
 *           is an event or a reject of its own. An empty message is one empty line; the line feed at the end
 *           of a message begins no further line. A tombstone is one reject (`tombstone`).
 * Owner   : an event's slices point into the record or into memory of the chain, and live until chain_flush()
 *           or the record's end: several events may be collected before they are counted.
 * Limits  : lines over line_max, JSON deeper than CHAIN_DEPTH_MAX, memory for undone escapes of what was
 *           started since the last flush: at most the bytes of those records.
 * Cost    : no allocation once the memory has grown to what is used; one pass over JSON (no tree of it).
 * Threads : one at a time; each ingest thread makes its own.
 * Errors  : none; what does not fit is a reject with a reason and a column (in `bytes`).
 */
#pragma once

#include "ingest/decode/decode.h"
#include "ingest/decode/decoder.h"
#include "ingest/record.h"

#define CHAIN_DEPTH_MAX 64

enum chain_result { CHAIN_EVENT, CHAIN_REJECT, CHAIN_END };

struct chain;

/* `d` is borrowed. Own fields that become known later are not looked for. */
struct chain *chain_new(const struct decode *d, size_t line_max);
void chain_free(struct chain *c);

/* Where records are plain lines and nothing else is asked for: their decoder, for sources that have found
 * the lines themselves. NULL: chain_start() and chain_next() are needed. The line's length is the caller's to
 * check. */
struct decoder *chain_decoder(struct chain *c);

/* A message; or a line of a file, as a record with nothing but its value (and offset). */
void chain_start(struct chain *c, const struct record *r);
/* The next event (*ev), or reject (*why). Of both, `bytes` is what it was made from: the line or element, or
 * the whole record where it could not be unwrapped. ev->order is left to the caller. */
enum chain_result chain_next(struct chain *c, struct event *ev, struct reject *why, struct slice *bytes);
/* What events got from chain_next() since the last flush is needed no more. */
void chain_flush(struct chain *c);
