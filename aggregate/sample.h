/* sample.h - a report that counts one event in n (`sample: 1/100`): which events are drawn, and how far its
 * figures may be off. Shards draw by it, the judge recounts by it, answers tell the error by it.
 *
 *   salt  = FNV-1a, 64 bits, of the source's identity and of the partition, each with a zero byte
 *   hash  = mix(salt + mix(order))          mix: the finalizer of splitmix64
 *   drawn = hash < 2^64 / n
 *
 * Identity: an event is known by its source and partition as the store names them, and by its place there,
 *           record_order(): offset, and number of the line or element within the record. So a restart, a
 *           replay, a backfill and `tallyd verify` draw the same events, and no order of counting matters.
 *           Samples are nested: 1/100 draws only events that 1/10 draws.
 * Figures : a drawn event counts n times, so counts and sums are estimates in units of their own, also in the
 *           documents. A count C has the standard error sqrt(C (n - 1)), which is n sqrt(k (1 - 1/n)) of k
 *           drawn events.
 * Limit   : SAMPLE_MAX, so that the largest number of an event, n times, is an int64.
 * Threads : any. Nothing fails, but for sample_parse().
 * Source  : the approximation pattern of the MongoDB Data Modeling Workshop, by a hash instead of dice.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "ingest/event.h"

#define SAMPLE_MAX 100000
_Static_assert(EVENT_NUMBER_MAX <= INT64_MAX / SAMPLE_MAX, "an event's number, scaled, must be an int64");

/* Reads "1/N", N from 1 to SAMPLE_MAX. False: it is something else; *one_in is unchanged. */
bool sample_parse(struct slice text, uint32_t *one_in) MUST_CHECK;
/* The salt of a partition's events. */
uint64_t sample_salt(const char *source, const char *partition);
/* The standard error of a count that is an estimate, rounded. */
int64_t sample_error(int64_t count, uint32_t one_in);

/* The finalizer of splitmix64. */
static inline uint64_t sample_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Is the event at this place drawn? */
static inline bool sample_draws(uint64_t salt, int64_t order, uint32_t one_in)
{
    uint64_t hash = sample_mix(salt + sample_mix((uint64_t)order));
    return (uint64_t)((unsigned __int128)hash * one_in >> 64) == 0;
}
