/* remote_write.h - messages of Prometheus' remote write: each sample and each native histogram is an event.
 * chain.c calls it.
 *
 *   remote_write_begin(w, message, &why);
 *   while ((what = remote_write_next(w, &ev, &why, &bytes)) != REMOTE_END)
 *       …
 *
 * Messages: prometheus.WriteRequest (1.0) and io.prometheus.write.v2.Request (2.0), told apart by their
 *           fields; packed as a Snappy block, or not.
 * Labels  : fill the fields that have their names: just texts, as `host`, and known own ones. __type__ and
 *           __unit__, or the metadata of 2.0, are the own fields `type` and `unit`.
 * Levels  : a sample is an event, unless it is a total since a start (a counter): by its type, else by its
 *           name, since 1.0 sends no types. A series of totals is one reject (`cumulative`). If the step is
 *           {remote_write: totals}, totals are events, too, as levels are.
 * Deltas  : histograms count if their series has the label __temporality__="delta". Others are totals, or the
 *           states of a gauge histogram (`gauge_histogram`). If the step is {remote_write: deltas}, samples
 *           without a type and histograms with the reset hint GAUGE are deltas: so Prometheus sends those of
 *           OpenTelemetry that it took in as they were.
 * Skipped : exemplars and metadata are neither events nor rejects. A stale marker is a reject (`stale`).
 * Limits  : a message over line_max, or over REMOTE_WRITE_UNPACKED_LINES times that unpacked, and a label
 *           with a text over REMOTE_TEXT_MAX (remote_series.h) are rejects. So is, as one, what comes behind
 *           REMOTE_WRITE_VALUES_MAX events and rejects of a message: events behind would share a place.
 * Owner   : texts are slices of the unpacked message, or of the arena, which takes at most
 *           REMOTE_WRITE_GROWTH times line_max for a message. A lane flushes it once messages have taken more
 *           than line_max (chain_holds_much()), and a flush keeps one chunk of it.
 * Threads : one at a time.
 * Source  : https://prometheus.io/docs/specs/prw/remote_write_spec/ and remote_write_spec_2_0/
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/record.h"
#include "ingest/reject.h"

#define REMOTE_WRITE_UNPACKED_LINES 8
/* Unpacked bytes; beside 8 of them, the smallest histogram that is not empty takes 112. */
#define REMOTE_WRITE_GROWTH         (REMOTE_WRITE_UNPACKED_LINES * (1 + 14))

#define REMOTE_WRITE_VALUES_MAX ((1U << RECORD_ELEMENT_BITS) - 1) /* record_order() */

enum remote_result { REMOTE_EVENT, REMOTE_REJECT, REMOTE_END };

struct remote_write;

/* Both are borrowed. Pre: snappy_load(). */
struct remote_write *remote_write_new(const struct decode *d, size_t line_max, struct arena *memory);
void remote_write_free(struct remote_write *w);
/* Makes it also find the label of this name, which is borrowed; returns its number. */
size_t remote_write_add_tag(struct remote_write *w, const char *name);
/* The label of the last event; false: it has none. */
bool remote_write_tag(const struct remote_write *w, size_t tag, struct slice *text);

/* Begins a message, and sets *bytes to it, unpacked. False: *why says why it is none. */
bool remote_write_begin(struct remote_write *w, struct slice *bytes, struct reject *why);
/* Drops the series that are left. */
void remote_write_reset(struct remote_write *w);
/* Has a message begun whose REMOTE_END has not come? */
bool remote_write_has_begun(const struct remote_write *w);
/* Gets the next event, or *why the next sample, histogram or series is none. *bytes is that. */
enum remote_result remote_write_next(struct remote_write *w, struct event *ev, struct reject *why,
                                     struct slice *bytes);
