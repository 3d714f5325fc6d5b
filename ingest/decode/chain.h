/* chain.h - the chain of decoders of a source, for one thread: a record or line in, events and rejects out,
 * one by one. Lanes and the judge call it.
 *
 *   chain_start(c, &record);
 *   while ((what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END)
 *       …
 *
 * Several : a message holds one line or several, one JSON object, several objects or an array: each line and
 *           element is an event or a reject of its own. An empty message is one empty line. A line feed at
 *           the end of a message begins no further line. A tombstone is one reject (`tombstone`).
 * Directive: a line of `w3c` that begins with # is neither an event nor a reject. Its #Fields: is in force
 *           until the next one of the file, or until the end of the message. At the first line of a block,
 *           the caller sets the one that is in force.
 * Owner   : an event's slices point into the record or into memory of the chain, and live until chain_flush()
 *           or the record's end: several events may be collected before they are counted.
 * Limits  : lines over line_max and JSON deeper than CHAIN_DEPTH_MAX are rejects. Undone escapes take memory
 *           until the next flush: at most the bytes of the records started since the flush before; a message
 *           of remote_write may take more (remote_write.h).
 * Derived : the fields of derive.h are made last, of the fields that the event then has.
 * Cost    : no allocation once the memory has grown to its use; one pass over JSON, without a tree.
 * Threads : one at a time; each ingest thread makes its own.
 * Errors  : none; text that does not fit is a reject with a reason and a column (in `bytes`).
 */
#pragma once

#include "ingest/decode/chain_result.h"
#include "ingest/decode/constants.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/decoder.h"
#include "ingest/derive/derived.h"
#include "ingest/record.h"

#define CHAIN_DEPTH_MAX 64

struct chain;

/* `d` is borrowed. The chain does not look for own fields that become known later. */
struct chain *chain_new(const struct decode *d, size_t line_max);
void chain_free(struct chain *c);

/* Puts these fields into every event from here on, in place of those of the line; NULL: none. They are
 * borrowed until they are set anew, and cost nothing to set: the files of one source may share a chain. Pre:
 * no event that was decoded is waiting to be counted. */
void chain_set_constants(struct chain *c, const struct constants *constants);

/* The fast path for sources that find lines themselves: the decoder of a line, if records are plain lines and
 * the configuration adds nothing but constants and derived fields. The caller checks the line's length. Valid
 * until constants are set. NULL: chain_start() and chain_next() are needed. */
struct decoder *chain_decoder(struct chain *c);

/* Sets the #Fields: line that is in force for the next lines of a file, without its line feed; empty: none
 * is. The caller may cut a longer line than line_max, if it keeps more than line_max bytes: then none is,
 * either. */
void chain_set_directive(struct chain *c, struct slice fields);
/* Must the chain see each line of a file, even one that is too long, since it may be a directive? */
bool chain_heeds_directives(const struct chain *c);

/* Can this record be decoded now? Its schema may not be known yet (registry.h): then it will be fetched,
 * and the caller sets the record aside and asks again. True if no step needs a schema. */
bool chain_knows_schema(struct chain *c, const struct record *r);
/* Starts a message; or a line of a file, as a record with only its value (and offset). Pre:
 * chain_knows_schema(). */
void chain_start(struct chain *c, const struct record *r);
/* Gets the next event (*ev), reject (*why) or directive. *bytes is its origin: the line or JSON text that the
 * last step read. The caller sets ev->order. */
enum chain_result chain_next(struct chain *c, struct event *ev, struct reject *why, struct slice *bytes);
/* The index of the step that made the last event or reject; and the text that a step was given, which is this
 * one or one before it: the record for the first step (of remote_write, unpacked), else what the step before
 * it unwrapped. Pre:
 * chain_next() has just returned an event or a reject. */
size_t chain_step(const struct chain *c);
struct slice chain_text(const struct chain *c, size_t step);
/* The part of the chain that makes derived fields (derived.h); NULL: it makes none. It is the chain's. */
struct derived *chain_derived(const struct chain *c);
/* Hides addresses in a rejected line or element and in its record, if the configuration wants that (hide.h).
 * Their texts then live until chain_flush(). */
void chain_hide(struct chain *c, struct record *r, struct slice *bytes, struct reject *why);
/* Frees the chain's memory: slices of events since the last flush become invalid. */
void chain_flush(struct chain *c);
/* Have records since the last flush taken more than line_max? Then the caller flushes before the next one. */
bool chain_holds_much(const struct chain *c);
