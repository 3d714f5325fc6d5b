/* prealloc.h - decides when to make the document of a series' next period, before anything is counted in it.
 * A MongoDB writer asks after each batch. Nothing here can fail.
 *
 *   PREALLOC_AUTO    once a period, at a moment of the series' own: a share of the last period's hits, or of
 *                    the period's time. A hash of series and period chooses the share, so the moments of many
 *                    series lie evenly, and a restarted daemon chooses the same share.
 *   PREALLOC_CHANCE  at each hit with a chance of 1 in N, as the literature has it: 1/500000
 *
 *   hits of the last period    |-------------------------------------------|
 *   moments by hits            |aabbccddeeffgghhiijjkkllmmnnoopp|          shares of these hits
 *   moments by time                                  |aabbccddeeffgghh|    shares of the period's later part
 *
 * Why      : a constant chance front-loads: to make 99 of 100 documents in time, it makes 4.6 times as many
 *            in the first minute as in the average one. One chance is too small for most series, and too
 *            large for a few. A clock alone misses series that are busy in the morning only. Hits alone miss
 *            series that are quieter today than yesterday. So the earlier of the two moments decides.
 * Stopped  : only a hit makes a document, so a series that stops leaves at most one unused document a kind.
 * Rare     : PREALLOC_AUTO makes none for a series with fewer than PREALLOC_EVIDENCE hits in this period and
 *            the last together. Most such documents would never be used.
 * Restart  : a handle that begins within a period knows no earlier hits. It treats the rest of the period as
 *            the whole period, so that it does not make all due documents at once. So its moments move.
 * Time     : all times are those of the hits; no clock is read.
 * Threads  : a struct prealloc belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum prealloc_when { PREALLOC_OFF, PREALLOC_AUTO, PREALLOC_CHANCE };

#define PREALLOC_EVIDENCE 4

struct prealloc_options {
    enum prealloc_when when;
    int64_t one_in; /* PREALLOC_CHANCE: N */
    bool zeros;     /* whether documents are made with zeros wherever possible, else without any count */
};

struct prealloc {
    struct prealloc_options options;
    int64_t since_ms; /* start of the handle, by the clock of the events */
    uint64_t dice;    /* state of the random numbers */
};

/* One series in one kind of documents, as of its last hit's period. All zeros before the first hit. */
struct prealloc_state {
    uint8_t now;    /* hits in this period, as a code of prealloc_hits() */
    uint8_t before; /* hits in the period before, as a code of prealloc_hits() */
    bool is_made;   /* whether the next period's document is made */
};

struct prealloc_period {
    int64_t from_ms, to_ms;
};

void prealloc_init(struct prealloc *p, const struct prealloc_options *options, int64_t since_ms,
                   uint64_t seed);
/* The hits that a code stands for: exact up to 16, above that to about an 8th. */
int64_t prealloc_hits(uint8_t code);

/* Begin a period at its first hit. `old` is the state's period; `follows`: the new one is next after it.
 * True: the new period's document had been made. */
bool prealloc_turn(struct prealloc *p, struct prealloc_state *s, const struct prealloc_period *old,
                   bool follows);
/* Add hits to the period of the state. */
void prealloc_count(struct prealloc *p, struct prealloc_state *s, int64_t hits);
/* Call it after prealloc_count(). True, once a period: make the next document. `series` is a hash of its
 * name. */
bool prealloc_is_due(struct prealloc *p, struct prealloc_state *s, uint64_t series,
                     const struct prealloc_period *period, int64_t at_ms, int64_t hits);

/* ---- figures of one handle: coverage is used / begun, waste is at least unused / made */

struct prealloc_figures {
    int64_t begun;       /* documents that got their first count, in periods after the handle's first */
    int64_t used;        /* documents among `begun` that the handle had made before */
    int64_t made;        /* documents that the handle had to make; some existed already */
    int64_t unused;      /* documents among `made` whose series was next hit in a later period */
    int64_t spike_milli; /* documents of the day's busiest minute, in thousandths of its average minute */
};

/* Documents made in each minute of a day, for `spike_milli`. */
struct prealloc_pace {
    int64_t day, first_minute, minute; /* the day; its first observed and its last minute; since 1970 */
    int64_t in_minute, most, total;    /* documents in `minute`, in the day's busiest minute, in the day */
};

void prealloc_note_made(struct prealloc_pace *pace, struct prealloc_figures *f, int64_t now_ms,
                        int64_t count);
