/* prealloc.h - should the document of a series' next period be made now, before anything is counted in it?
 *
 *   PREALLOC_AUTO    once a period, at a moment of the series' own: where its hits have come so far, or where
 *                    the period itself has. Which moment is a hash of series and period, so that those of
 *                    many series lie evenly, and a restarted daemon's are the same.
 *   PREALLOC_CHANCE  at each hit with a chance of 1 in N, as the literature has it: 1/500000
 *
 *   hits of the period before  |-------------------------------------------|
 *   moments                    |aabbccddeeffgghhiijjkkllmmnnoopp|          in the first SLOTS of them
 *   ... and without so many                          |aabbccddeeffgghh|    of the period's time
 *
 * Why      : a constant chance front-loads: to cover 99 of 100, it makes 4.6 times as many in the first
 *            minute as in the average one; and it is too rare for most series, too frequent for few. A clock
 *            alone misses series that are busy in the morning only, and hits alone those that are quieter
 *            today than yesterday: so whichever comes first, of the time a later part.
 * Stopped  : only a hit makes a document: a series that has none has at most one that nobody uses.
 * Rare     : no document is made for a series that had fewer than PREALLOC_EVIDENCE hits in this period and
 *            the last together: most of them would never be used.
 * Restart  : a handle that begins within a period knows nothing of what came before it: it takes the rest of
 *            that period for all of it, so that it does not make all that is due at once.
 * Time     : that of the hits, so that the same hits have the same documents made.
 * Threads  : a struct prealloc belongs to one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum prealloc_when { PREALLOC_OFF, PREALLOC_AUTO, PREALLOC_CHANCE };

#define PREALLOC_EVIDENCE 4

struct prealloc_options {
    enum prealloc_when when;
    int64_t one_in; /* PREALLOC_CHANCE: N */
    bool zeros;     /* with a zero for all that can have one, else without any count */
};

struct prealloc {
    struct prealloc_options options;
    int64_t since_ms; /* when the handle began, by the clock of the events */
    uint64_t dice;    /* its state */
};

/* Of one series and one kind of documents, as of its last hit's period: all zeros before the first. */
struct prealloc_state {
    uint8_t now;    /* hits in this period, … */
    uint8_t before; /* … and in the one before; both as prealloc_hits() reads them */
    bool is_made;   /* the next one's document */
};

struct prealloc_period {
    int64_t from_ms, to_ms;
};

void prealloc_init(struct prealloc *p, const struct prealloc_options *options, int64_t since_ms,
                   uint64_t seed);
/* About so many; up to 16 exactly, above to about an 8th. */
int64_t prealloc_hits(uint8_t code);

/* The first hit in a period after the one of the state, `old`, directly or not. True: its document had been
 * made. */
bool prealloc_turn(struct prealloc *p, struct prealloc_state *s, const struct prealloc_period *old,
                   bool follows);
/* More hits in the period of the state. */
void prealloc_count(struct prealloc *p, struct prealloc_state *s, int64_t hits);
/* After them: is the next document to be made? It is told once. `series` is a hash of its name. */
bool prealloc_is_due(struct prealloc *p, struct prealloc_state *s, uint64_t series,
                     const struct prealloc_period *period, int64_t at_ms, int64_t hits);

/* ---- what it came to, as far as one handle knows: coverage is used / begun, waste from unused / made on */

struct prealloc_figures {
    int64_t begun;       /* documents with their first count, of periods after the handle's first, … */
    int64_t used;        /* … and those of them that it had made before */
    int64_t made;        /* asked for, whether or not they were there */
    int64_t unused;      /* of these, passed over: their series was next hit in a later period */
    int64_t spike_milli; /* of the day so far: the busiest minute's, in thousandths of the average minute's */
};

/* How many were made in each minute, for `spike_milli`. */
struct prealloc_pace {
    int64_t day, first_minute, minute; /* since 1970 */
    int64_t in_minute, most, total;    /* of that minute; of the day */
};

void prealloc_note_made(struct prealloc_pace *pace, struct prealloc_figures *f, int64_t now_ms,
                        int64_t count);
