/* stages.pml - how longer documents are made of the logs of batches, by writes of single documents.
 *
 * The protocol of docs/LEDGER.md, "Next protocol", as the steps that a server sees: an `atomic` that
 * touches the store is one request for one document. Between any two of them everything else may happen.
 *
 * World   : one period, with a fine document and a longer one that is derived: all others go the same way. SLOTS slots
 *           with events of their own; DAEMONS that take any slot, TAKES times more than once each: then who had the slot
 *           goes on as a zombie. A daemon may be killed before any step, and never come back. RECOVERIES of open
 *           batches by others, each as slow as it likes. The fine document expires, or does not.
 *           ledger.pml has the rest: claims, lost replies, upserts.
 * Asserted: a reader misses nothing that was done when it began, and finds nothing twice (reader); when nothing moves
 *           any more, whoever takes the slots makes the longer document what was committed (init).
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
/* Events of each slot. */
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef DAEMONS
#define DAEMONS 2
#endif
#ifndef TAKES
#define TAKES 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef RECOVERIES
#define RECOVERIES 0
#endif
#ifndef EXPIRES
#define EXPIRES 0
#endif
/* Batches that daemons may begin in all, beside those of the end: a bound of the search. */
#ifndef BATCHES
#define BATCHES 3
#endif
#define NUMBERS (BATCHES + 2)
#define ANY     2

/* An event is a bit; a document has two bits of each: how often it counted the event. */
#define EVENT(s, n)      (1 << ((s) * EVENTS + (n)))
#define DOUBLED(e)       (((e) & 1) | (((e) & 2) << 1) | (((e) & 4) << 2) | (((e) & 8) << 3))
#define HAS_TWICE(v)     (((v) & 170) != 0)
#define LACKS(v, events) ((DOUBLED(events) & ~((v) | ((v) >> 1))) != 0)

typedef batch {
    byte inc;     /* of whom; 0: there is none */
    byte prev;    /* the slot's batch before it */
    byte event;   /* its part of the fine document */
    byte sum;     /* its part of the longer one: its own event, and those of the slot that were not in it yet */
    bool rolls;   /* it has such a part */
    bool is_late; /* the fine document has expired: no part of it */
};

typedef batches {
    batch at[NUMBERS]
};

typedef sequences {
    byte by[SLOTS]
};

/* ---- the ledger: one document */
byte inc[SLOTS], seq[SLOTS], next[SLOTS];
bool open[SLOTS], open_rolls[SLOTS];
byte open_inc[SLOTS];
byte rolled[SLOTS]; /* the last batch whose event is in the longer document */
bool dirty[SLOTS];  /* batches after it are done */
bool closing;       /* from now on, a batch with events of the period rolls up itself */
bool expired;       /* the fine document is not read any more */

/* ---- the log: if two incarnations used one number, only the later one's can have been committed */
batches log[SLOTS];

/* ---- the documents */
byte fine, longer;
sequences fine_applied, longer_applied;

/* ---- what the model knows, and no daemon */
byte done; /* events of batches that are done */
byte used[SLOTS]; /* the highest number yet: below the clock */
byte takes = TAKES, crashes = CRASHES, begun;
bool is_end;

/* ---- the rules that variants are without */
#ifdef WITHOUT_GUARD
#define PASSES(applied, p) true
#else
#define PASSES(applied, p) ((applied) <= (p))
#endif

#ifdef WITHOUT_INCARNATION
#define SAME_INC true
#else
#define SAME_INC (inc[s] == my_inc)
#endif

#ifdef WITHOUT_INCARNATION_IN_NAMES
#define IS_LOG_OF(q, whose) (log[s].at[q].inc > 0)
#else
#define IS_LOG_OF(q, whose) (log[s].at[q].inc == whose)
#endif

#ifdef WITHOUT_SEQ_AT_DONE
#define STILL(q) open[s]
#else
#define STILL(q) (open[s] && seq[s] == q)
#endif

#ifdef WITHOUT_LATE_ROLLS_UP
#define MAY_COMMIT true
#else
#define MAY_COMMIT (b.rolls || !closing)
#endif

inline copy(to, from)
{
    to.inc = from.inc;
    to.prev = from.prev;
    to.event = from.event;
    to.sum = from.sum;
    to.rolls = from.rolls;
    to.is_late = from.is_late
}

inline clear(b)
{
    d_step {
        b.inc = 0;
        b.prev = 0;
        b.event = 0;
        b.sum = 0;
        b.rolls = false;
        b.is_late = false
    }
}

inline may_die()
{
    if
    :: crashes > 0 -> crashes--; goto dead
    :: true
    fi
}

/* ---- apply, done: by the batch's writer, or by anybody who read its log */

inline apply_fine()
{
    atomic {
        may_die();
        if
        :: b.event && !b.is_late && PASSES(fine_applied.by[s], b.prev) ->
            fine = fine + DOUBLED(b.event);
            fine_applied.by[s] = q
        :: else
        fi
    }
}

inline apply_longer()
{
    atomic {
        may_die();
        if
        :: b.rolls && PASSES(longer_applied.by[s], b.prev) ->
            longer = longer + b.sum;
            assert(!HAS_TWICE(longer));
            longer_applied.by[s] = q
        :: else
        fi
    }
}

inline delete_logs(upto)
{
    i = 0;
    do
    :: i < NUMBERS ->
        if
        :: i <= upto -> clear(log[s].at[i])
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

#ifdef WITHOUT_ROLLED_WITH_DONE
#define SET_ROLLED skip
#else
#define SET_ROLLED rolled[s] = (b.rolls -> q : rolled[s])
#endif

#ifdef WITHOUT_DIRTY_WITH_DONE
#define SET_DIRTY dirty[s] = (b.rolls -> false : dirty[s])
#else
#define SET_DIRTY dirty[s] = !b.rolls
#endif

inline finish()
{
    if /* in any order; at once, in truth */
    :: apply_fine();
       apply_longer()
    :: b.rolls && b.event ->
       apply_longer();
       apply_fine()
    fi;
    atomic {
        may_die();
        if
        :: STILL(q) ->
            open[s] = false;
            done = done | b.event;
            SET_ROLLED;
            SET_DIRTY
        :: else
        fi
    };
#ifdef WITHOUT_ROLLED_WITH_DONE
    atomic {
        may_die();
        rolled[s] = (b.rolls && rolled[s] < q -> q : rolled[s])
    };
#endif
#ifdef WITHOUT_DIRTY_WITH_DONE
    atomic {
        may_die();
        dirty[s] = (!b.rolls && rolled[s] < q -> true : dirty[s])
    };
#endif
    atomic {
#ifdef WITHOUT_KEEPING_PARTS
        delete_logs(q)
#else
        if
        :: b.rolls -> delete_logs(q)
        :: else
        fi
#endif
    }
}

/* The open batch that the ledger showed, from its log; or another was quicker. */
inline recover()
{
    atomic {
        may_die();
        if
        :: IS_LOG_OF(q, whose) -> copy(b, log[s].at[q])
        :: else -> assert(!open[s] || seq[s] != q); goto lost
        fi
    };
    finish()
}

/* ---- take */

inline take()
{
    atomic {
        if
        :: which != 1 -> s = 0
#if SLOTS > 1
        :: which != 0 -> s = 1
#endif
        fi;
        inc[s]++;
        my_inc = inc[s];
        prev = seq[s];
        last = used[s];
        from = rolled[s];
        q = (open[s] -> seq[s] : 0);
        whose = open_inc[s]
    }
}

inline finish_open()
{
    if
    :: q > 0 ->
        recover();
        from = (b.rolls -> q : from)
    :: else
    fi;
    clear(b);
    q = 0;
    whose = 0
}

/* The parts that are not rolled up: from the last batch back, each names the one before it. */
inline read_parts()
{
    q = prev;
    do
    :: atomic {
        q > from ->
        may_die();
        if
        :: log[s].at[q].inc ->
            sum = sum + DOUBLED(log[s].at[q].event);
#ifdef WITHOUT_PREV
            q--
#else
            q = log[s].at[q].prev
#endif
        :: else ->
#ifdef WITHOUT_PREV
            q--
#else
            if
            :: SAME_INC && rolled[s] == from -> sum = sum /* its part is gone: the end finds it missing */
            :: else -> goto lost
            fi;
            q = 0
#endif
        fi
       }
    :: else -> break
    od;
    q = 0
}

/* ---- a batch */

/* Its log, under a number never used before: an event or none; with what is not rolled up, or not yet. */
inline write_log()
{
    atomic {
        may_die();
        begun = begun + (is_end -> 0 : 1);
        last = (last > prev -> last : prev) + 1;
        used[s] = (used[s] > last -> used[s] : last);
        b.inc = my_inc;
        b.prev = prev;
        if
        :: !is_end && next[s] < EVENTS -> b.event = EVENT(s, next[s])
        :: else
        fi;
        if
        :: !is_end && b.event && !is_pressed -> b.rolls = false
        :: b.rolls = true; b.sum = sum + DOUBLED(b.event)
        fi;
#ifdef WITHOUT_SUMS_AFTER_THE_COMMIT
        sum = (b.rolls -> 0 : sum + DOUBLED(b.event));
#endif
        if
        :: expired && b.rolls -> b.is_late = true
        :: true /* or it has not heard of it yet */
        fi;
        if
        :: log[s].at[last].inc <= my_inc -> copy(log[s].at[last], b)
        :: else
        fi
    }
}

inline commit()
{
    atomic {
        may_die();
        is_committed = SAME_INC && seq[s] == prev && !open[s] && MAY_COMMIT;
        if
        :: is_committed ->
            seq[s] = last;
            open[s] = true;
            open_rolls[s] = b.rolls;
            open_inc[s] = my_inc;
            next[s] = next[s] + (b.event -> 1 : 0);
#ifdef WITHOUT_DIRTY_UNTIL_DONE
            dirty[s] = dirty[s] && !b.rolls;
#endif
            q = last
        :: else ->
            is_pressed = closing;
            clear(b);
            if
            :: !SAME_INC -> goto lost
            :: else
            fi;
            prev = seq[s]
        fi
    }
}

inline forget()
{
    d_step {
        clear(b);
        my_inc = 0;
        prev = 0;
        last = 0;
        from = 0;
        sum = 0;
        s = 0;
        q = 0;
        i = 0;
        whose = 0;
        was_open = 0;
        is_committed = false;
        is_pressed = false
    }
}

#define MORE (is_end -> sum != 0 : begun < BATCHES && (next[s] < EVENTS || sum))

/* It takes slot `which`, or any if that is ANY. */
proctype daemon(byte which)
{
    byte s, my_inc, prev, last, q, i;
    byte whose, was_open;
    byte from, sum; /* the last batch that is rolled up; the events since then, as in a document */
    batch b;
    bool is_committed, is_pressed;

start:
    take();
#ifdef WITHOUT_FINISHING_FIRST
    was_open = q;
    read_parts();
    q = was_open;
    finish_open();
#else
    finish_open();
    read_parts();
#endif
    do
    :: MORE ->
        write_log();
        commit();
        if
        :: is_committed ->
            finish();
            d_step {
                is_committed = false;
                prev = last;
#ifndef WITHOUT_SUMS_AFTER_THE_COMMIT
                sum = (b.rolls -> 0 : sum + DOUBLED(b.event));
#endif
                clear(b);
                q = 0
            }
        :: else
        fi
    :: !is_end || !sum -> break
    od;
lost: /* Another took the slot; or it ends, or waits, or takes another one. */
dead:
    forget();
    if
    :: atomic { takes > 0 -> takes-- }; goto start
    :: true
    fi
}

/* ---- who claims a partition, and finds a batch open */

#if RECOVERIES
active [RECOVERIES] proctype recoverer()
{
    byte s, q, whose, i;
    batch b;
end:
    atomic {
        if
        :: open[0] -> s = 0
#if SLOTS > 1
        :: open[1] -> s = 1
#endif
        fi;
        q = seq[s];
        whose = open_inc[s]
    };
    recover();
lost:
dead:
    skip
}
#endif

/* ---- expiry */

#if EXPIRES
#if SLOTS > 1
#define WAITS (dirty[0] || dirty[1] || (open[0] && !open_rolls[0]) || (open[1] && !open_rolls[1]))
#else
#define WAITS (dirty[0] || (open[0] && !open_rolls[0]))
#endif

active proctype expirer()
{
    byte i;
end:
    closing = true;
#ifndef WITHOUT_EXPIRY_WAITS
    !WAITS;
#endif
    expired = true;
    atomic { /* Its numbers go with it. A slow recovery may make it again, and nobody reads it. */
        fine = 0;
        do
        :: i < SLOTS -> fine_applied.by[i] = 0; i++
        :: else -> break
        od
    }
}
#endif

/* ---- who reads a chart */

#if SLOTS > 1
#define IS_DIRTY (dirty[0] || dirty[1])
#else
#define IS_DIRTY dirty[0]
#endif

active proctype reader()
{
    byte were_done, value;
    bool reads_fine;
#ifdef WITHOUT_LEDGER_FIRST
    value = longer;
#endif
    atomic {
        were_done = done;
        reads_fine = IS_DIRTY
    };
#ifdef WITHOUT_LEDGER_FIRST
    value = (reads_fine -> fine : value);
#else
    value = (reads_fine -> fine : longer);
#endif
#ifndef WITHOUT_LOOKING_AGAIN
    if
    :: reads_fine && expired -> value = longer
    :: else
    fi;
#endif
    assert(!LACKS(value, were_done));
    assert(!HAS_TWICE(value))
}

init
{
    byte i, committed;
    atomic {
        do
        :: i < DAEMONS -> run daemon(ANY); i++
        :: else -> break
        od
    };
    timeout; /* Nothing moves any more. Then others take each slot, and die no more. */
    is_end = true;
    takes = 0;
    crashes = 0;
    run daemon(0);
    timeout;
#if SLOTS > 1
    run daemon(1);
    timeout;
#endif
    d_step {
        i = 0;
        do
        :: i < SLOTS * EVENTS ->
            committed = committed | (i % EVENTS < next[i / EVENTS] -> 1 << i : 0);
            i++
        :: else -> break
        od;
        assert(longer == DOUBLED(committed));
        assert(!IS_DIRTY)
    }
}
