/* shard.h - the coalescing table of one ingest thread: thousands of events become one delta a cell.
 *
 * Shape   : per report, a hash table  key → series  and a hash table  (series, time) → cell.
 *
 *             slots [hash | series*] → series {number, last, key…}      stays until the table is full
 *                                          └→ cell {series, time, values}   of the open batch
 *
 *           An event of a known series in the minute (or second) that the series saw last touches one slot,
 *           one series and one cell; another one goes through the cell index.
 * Seal    : shard_seal() swaps the cells out whole; series stay, so that a known one costs nothing in
 *           the next batch. Two parts exist: while one is being applied the other fills.
 * Raw     : where shard_set_raw() says so, the open part also takes each event as a document.
 * Limits  : cells_max per report and batch, series_max per report, key_bytes_max, raw_bytes_max;
 *           shard_is_full() asks for a seal once one is passed, so a block of lines may overshoot them.
 * Threads : one at a time, no locks. A part is read by the writer between shard_seal() and
 *           shard_give_back().
 * Errors  : none; a full shard is a seal, never a lost event.
 * Source  : seal and swap as in statsite's flush.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/arena.h"

struct shard_limits {
    size_t cells_max;           /* per report, between two seals */
    size_t series_max;          /* per report, before the table starts anew */
    size_t key_bytes_max;       /* all reports, before the table starts anew */
    size_t dimension_bytes_max; /* of one dimension's text */
    /* NULL, or by report: events before this have no slot any more, they are late; others may move it */
    const _Atomic int64_t *late_ms;
    size_t raw_bytes_max; /* documents of events, between two seals; 0: there are none */
};

struct shard;

struct shard *shard_new(uint32_t number, const struct report *reports, size_t report_count,
                        const struct shard_limits *limits);
void shard_free(struct shard *sh);

/* From here on events are of this partition, and kept as documents as `raw` says; NULL: not. Pre: the limits
 * have room for them. */
void shard_set_raw(struct shard *sh, const struct raw *raw, const struct range *of);
/* Count events in every report: in the books, and where the report's filter lets them, in their cells.
 * Several at once (up to SHARD_EVENTS_MAX), because their lookups then wait for memory together: each step
 * is done for all of them and asks for what the next one reads. Thrice as fast as one by one. */
#define SHARD_EVENTS_MAX 16
void shard_add(struct shard *sh, const struct event *events, size_t count);
/* One line that was no event. */
void shard_reject(struct shard *sh, enum reject_reason reason);

/* Add to `into` what was counted since the last time, or the seal: so that one who knows that the next event
 * is of another partition keeps books for each. */
void shard_take_books(struct shard *sh, struct books *into);
/* Must the batch be sealed before the next block of lines? */
bool shard_is_full(const struct shard *sh);
/* … by its raw events alone: cheap enough to be asked between two events. */
bool shard_is_full_of_raw(const struct shard *sh);
bool shard_is_empty(const struct shard *sh);
/* Hand over what was counted since the last seal. Pre: the part sealed before was given back. */
struct part *shard_seal(struct shard *sh);
/* The table of series is to start anew: nothing may be added until the part comes back. */
bool shard_must_wait(const struct shard *sh);
/* The part was applied (or dropped); its memory serves the batch after the next, but for what raw events took
 * beyond their limit. */
void shard_give_back(struct shard *sh, struct part *part);

/* About what one shard takes when it is as full as `limits` let it be. */
size_t shard_bytes_max(const struct report *reports, size_t report_count, const struct shard_limits *limits);
/* What the open batch holds and the shard takes, for metrics and budgets. */
size_t shard_bytes(const struct shard *sh);
