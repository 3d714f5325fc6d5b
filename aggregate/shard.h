/* shard.h - the hash tables in which one ingest thread adds up its events: thousands of events become one
 * delta per cell.
 *
 * Shape   : per report, a hash table  key → series  and a hash table  (series, time) → cell.
 *
 *             slots [hash | series*] → series {number, last, key…}      stays until the table is full
 *                                          └→ cell {series, time, values}   of the open batch
 *
 *           Fast path: an event of a known series, in the minute (or second) that the series saw last,
 *           touches one slot, one series and one cell. Other events go through the cell index.
 * Seal    : shard_seal() swaps out all cells. Series stay, so that a known series costs nothing in the next
 *           batch. Two parts exist: while the writer applies one, the other fills.
 * Raw     : if the source has `raw`, the open part also takes each event as a document.
 * Sample  : a report with `sample` counts the events that sample.h draws, and filters the others out.
 * Limits  : cells_max per report and batch, series_max per report, key_bytes_max, sketch_bytes_max,
 *           raw_bytes_max; shard_is_full() asks for a seal once a limit is reached, so a block of lines may
 *           overshoot it.
 * Threads : one at a time, no locks. A part is read by the writer between shard_seal() and
 *           shard_give_back().
 * Errors  : none; a full shard is sealed, and loses no event.
 * Source  : seal and swap as in statsite's flush.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/arena.h"

struct shard_limits {
    size_t cells_max;           /* cells per report between two seals */
    size_t series_max;          /* series per report before the tables are emptied */
    size_t key_bytes_max;       /* bytes of keys in all reports before the tables are emptied */
    size_t dimension_bytes_max; /* bytes of one dimension's text */
    /* per report, the time before which events are late; NULL: none is. Other threads may move it */
    const _Atomic int64_t *late_ms;
    size_t raw_bytes_max;    /* bytes of raw events between two seals; 0: there are no raw events */
    size_t sketch_bytes_max; /* bytes of sketches in all reports between two seals */
};

struct shard;

struct shard *shard_new(uint32_t number, const struct report *reports, size_t report_count,
                        const struct shard_limits *limits);
void shard_free(struct shard *sh);

/* Sets the partition that the next events come from, and how they become documents; raw NULL: they do not.
 * Pre: raw_bytes_max > 0, unless raw is off. */
void shard_set_source(struct shard *sh, const struct range *of, const struct raw *raw);
/* Counts events in every report: in the books and, if they pass the report's filter, in their cells. It takes
 * up to SHARD_EVENTS_MAX events, so that their lookups wait for memory together: each step runs for all
 * events and prefetches what the next step reads. That is three times as fast as one by one. */
#define SHARD_EVENTS_MAX 16
void shard_add(struct shard *sh, const struct event *events, size_t count);
/* Counts a line that is no event in the books. */
void shard_reject(struct shard *sh, enum reject_reason reason);
/* Counts a line that is neither an event nor a reject (chain.h) in the books. */
void shard_note_directive(struct shard *sh);

/* Adds to `into` what was counted since the last call or seal. So a caller that knows when the partition
 * changes can keep books for each partition. */
void shard_take_books(struct shard *sh, struct books *into);
/* Must the batch be sealed before the next block of lines? */
bool shard_is_full(const struct shard *sh);
/* Must it be sealed because of its raw events? Cheap enough to ask between two events. */
bool shard_is_full_of_raw(const struct shard *sh);
bool shard_is_empty(const struct shard *sh);
/* Hands over what was counted since the last seal. Pre: the part sealed before was given back. */
struct part *shard_seal(struct shard *sh);
/* Will the tables of series be emptied? Then nothing may be added until the part is given back. */
bool shard_must_wait(const struct shard *sh);
/* Gives back a part that was applied or dropped. The batch after the next reuses its memory, except memory of
 * raw events beyond their limit. */
void shard_give_back(struct shard *sh, struct part *part);

/* About how many bytes one shard takes when it is as full as `limits` allow. */
size_t shard_bytes_max(const struct report *reports, size_t report_count, const struct shard_limits *limits);
/* The bytes that the shard takes, its parts included, for metrics and budgets. */
size_t shard_bytes(const struct shard *sh);
