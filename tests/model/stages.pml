/* stages.pml - how longer documents get the counts of batches, by writes of single documents.
 *
 * The protocol of docs/LEDGER.md, "Longer documents", as the steps that a server sees: an `atomic` that
 * touches the store is one request for one document. Between any two of them everything else may happen.
 *
 * World   : one period, with a fine document and two longer ones: the first has all events, the second those that
 *           `shared` says. SLOTS slots with events of their own. DAEMONS, each of which takes any slot once: then who
 *           had the slot goes on as a zombie. REPLAYERS, who replay a slot at any time, also while its writer lives, and
 *           may finish its open batch first. Everybody may be killed before any step, and is as slow as he likes.
 *           The fine document expires, or does not. ledger.pml has the rest: claims, lost replies, upserts.
 * Asserted: a reader misses nothing that was done when it began, and finds nothing twice (reader); a replay finds each
 *           log that it needs (check_rolled); when nothing moves any more, whoever takes the slots leaves each committed
 *           event once in each longer document (init).
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
/* Events of each slot. */
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef DAEMONS
#define DAEMONS 1
#endif
#ifndef REPLAYERS
#define REPLAYERS 0
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef EXPIRES
#define EXPIRES 0
#endif
/* Batches that are logged in all: a bound of the search. */
#ifndef BATCHES
#define BATCHES 2
#endif
#define NUMBERS (BATCHES + 1)

/* An event is a bit; a document has two bits of each: how often it counted the event. */
#define EVENT(s, n)      (1 << ((s) * EVENTS + (n)))
#define DOUBLED(e)       (((e) & 1) | (((e) & 2) << 1) | (((e) & 4) << 2) | (((e) & 8) << 3))
#define HAS_TWICE(v)     (((v) & 170) != 0)
#define LACKS(v, events) ((DOUBLED(events) & ~((v) | ((v) >> 1))) != 0)
/* The part of sums, or of a fine document, that longer document d has. */
#define OF(d, v)         ((v) & has[d])

typedef batch {
    byte inc;   /* of whom; 0: there is none */
    byte prev;  /* the slot's batch before it */
    byte event;
    bool rolls; /* it is done only when the longer documents have it */
};

typedef batches {
    batch at[NUMBERS]
};

typedef document {
    byte value;
    byte applied[SLOTS]
};

/* ---- the seats; what only the claim of a partition needs is not here */
byte inc[SLOTS], seq[SLOTS], next[SLOTS];
bool open[SLOTS];
byte open_inc[SLOTS], open_event[SLOTS];
byte rolled[SLOTS];   /* the longer documents have all batches up to this one */
byte unrolled[SLOTS]; /* the last batch of the period that they may lack; 0: none */

/* ---- the logs: if two incarnations used one number, only the later one's can have been committed */
batches log[SLOTS];

/* ---- the documents */
document fine, longer[2];

/* ---- time */
bool closing; /* the fine document expires soon: batches with events of it roll up themselves */
bool expired; /* nobody reads it any more */

/* ---- what the model knows, and no daemon */
byte shared;      /* events that the second longer document has, too */
byte has[2];      /* by longer document: the bits of its events */
byte done;        /* events of batches that are done */
byte used[SLOTS]; /* the highest number yet: below the clock */
byte sealed[SLOTS]; /* numbers that were committed, as bits */
byte begun, taken;
bool is_end;
hidden byte amount;

/* ---- the rules that variants are without */
#ifdef WITHOUT_GUARD
#define PASSES(applied, p) true
#else
#define PASSES(applied, p) ((applied) <= (p))
#endif

#ifdef WITHOUT_ROLLED_IN_THE_GUARD
#define ROLLS_UP_FROM (to - 1)
#else
#define ROLLS_UP_FROM from
#endif

#ifdef WITHOUT_INCARNATION
#define SAME_INC true
#else
#define SAME_INC (inc[s] == my_inc)
#endif

#ifdef WITHOUT_SEQ_AT_DONE
#define IS_STILL_OPEN(n) open[s]
#else
#define IS_STILL_OPEN(n) (open[s] && seq[s] == n)
#endif

#if defined(WITHOUT_COMPARING_WHEN_REPLAYED) || defined(WITHOUT_COMPARING_ROLLED)
#define SAME_ROLLED true
#else
#define SAME_ROLLED (rolled[s] == r)
#endif
#if defined(WITHOUT_COMPARING_WHEN_REPLAYED) || defined(WITHOUT_COMPARING_SEQ)
#define SAME_SEQ true
#else
#define SAME_SEQ (seq[s] == q)
#endif

#ifdef WITHOUT_COMPARING_WHEN_TOLD
#define MAY_TELL true
#else
#define MAY_TELL (inc[s] == my_inc && seq[s] == prev)
#endif

#ifdef WITHOUT_ROLLED_AFTER_ALL
#define TOLD (from > to -> from : to)
#else
#define TOLD from
#endif

/* The seat does not compare this: a commit is in time if its writer does not sleep. */
#ifdef WITHOUT_MARGIN
#define IS_IN_TIME true
#else
#define IS_IN_TIME (b.rolls || !closing)
#endif

inline copy(to_, from_)
{
    to_.inc = from_.inc;
    to_.prev = from_.prev;
    to_.event = from_.event;
    to_.rolls = from_.rolls
}

inline clear(b_)
{
    b_.inc = 0;
    b_.prev = 0;
    b_.event = 0;
    b_.rolls = false
}

inline may_die()
{
    if
    :: !is_end -> goto dead
    :: true
    fi
}

/* Adds to a document under its guard. */
inline add_to(doc, below, number, what)
{
    amount = what;
    if
    :: amount && PASSES(doc.applied[s], below) ->
        doc.value = doc.value + amount;
        assert(!HAS_TWICE(doc.value));
        assert(sealed[s] & (1 << number)); /* or a document has a number that was never committed */
        doc.applied[s] = number
    :: else
    fi
}

#ifdef WITHOUT_KEEPING_LOGS
#define IS_NEEDLESS(n) ((n) <= seq[s] && !(open[s] && (n) == seq[s]))
#elif defined(WITHOUT_THE_SEATS_ROLLED)
#define IS_NEEDLESS(n) ((n) <= from && !(open[s] && (n) == seq[s]))
#else
#define IS_NEEDLESS(n) ((n) <= rolled[s])
#endif

/* By the writer, after the seat has said so. At once; in truth, later: nobody needs them. */
inline delete_logs()
{
    i = 1;
    do
    :: i < NUMBERS ->
        if
        :: IS_NEEDLESS(i) -> clear(log[s].at[i])
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline close_open()
{
    done = done | open_event[s];
    open[s] = false;
    open_inc[s] = 0;
    open_event[s] = 0
}

/* ---- replay: batches after r, up to q, from their logs */

/* A log that is missing is one that nobody needs: the seat says so by now. */
inline check_rolled(n)
{
#ifdef WITHOUT_THE_LOGS_NUMBER
    assert(rolled[s] >= q || (n) == 0)
#else
    assert(rolled[s] >= (n)) /* or a log is missing */
#endif
}

/* From the last one back: each names the one before it. Then the seat is read again: what it calls rolled up by now may
 * have been deleted, and a zombie may have inserted another log of the number. */
inline list_parts()
{
    at = q;
    do
    :: atomic {
        at > r ->
        may_die();
        if
        :: log[s].at[at].inc ->
            parts = parts | (1 << at);
            author[at] = log[s].at[at].inc;
#ifdef WITHOUT_PREV
            at--
        :: else -> at--
#else
            at = log[s].at[at].prev
        :: else ->
            missing = at;
            at = 0
#endif
        fi
       }
    :: at <= r -> break
    od;
    atomic {
        may_die();
        check_rolled(missing);
        missing = 0;
        at = 0;
#ifndef WITHOUT_LOOKING_AFTER_LISTING
        do
        :: at <= rolled[s] && at < NUMBERS -> parts = parts & ~(1 << at); author[at] = 0; at++
        :: else -> break
        od;
        at = 0
#endif
    }
}

#ifdef WITHOUT_ORDER
#define FIRST q
#define NEXT  at - 1
#else
#define FIRST r + 1
#define NEXT  at + 1
#endif

inline read_part()
{
    atomic {
        parts ->
        may_die();
        do
        :: !(parts & (1 << at)) -> at = NEXT
        :: else -> break
        od;
        parts = parts & ~(1 << at);
        if
        :: log[s].at[at].inc == author[at] ->
            event = log[s].at[at].event;
            before = log[s].at[at].prev
        :: else -> check_rolled(at)
        fi;
        author[at] = 0
    }
}

inline send_part(d)
{
    atomic {
        may_die();
        add_to(longer[d], before, at, OF(d, DOUBLED(event)))
    }
}

inline replay()
{
    list_parts();
    at = FIRST;
    do
    :: read_part();
        if
        :: event ->
            send_part(0);
            if
            :: event & shared -> send_part(1)
            :: else
            fi;
            event = 0;
            before = 0
        :: else
        fi
    :: !parts -> break
    od;
    at = 0
}

/* By somebody who is not the slot's writer, or not yet. */
inline note_rolled()
{
    atomic {
        may_die();
        if
        :: SAME_ROLLED && SAME_SEQ ->
            unrolled[s] = (has_unrolled -> 0 : unrolled[s]); /* by its name */
            rolled[s] = q;
#ifdef WITHOUT_DELETING_ONES_OWN
            delete_logs()
#endif
        :: else
        fi
    }
}

/* The open batch that the seat showed, from its log; or another was quicker. */
inline recover()
{
    atomic {
        may_die();
        if
        :: log[s].at[q].inc == whose -> copy(b, log[s].at[q])
        :: else -> assert(!open[s] || seq[s] != q); goto lost
        fi
    };
    atomic {
        may_die();
        add_to(fine, b.prev, q, DOUBLED(b.event))
    };
    if
    :: b.rolls ->
#ifndef WITHOUT_LONGER_BEFORE_DONE
        replay();
        note_rolled()
#endif
    :: else
    fi;
    atomic {
        may_die();
        if
        :: whose && IS_STILL_OPEN(was) -> close_open()
        :: else
        fi;
        clear(b)
    }
}

/* So that states differ only by what may still matter. */
inline forget_replay()
{
    forget_seat();
    clear(b);
    at = 0;
    parts = 0;
    event = 0;
    before = 0;
    missing = 0;
    i = 0;
    do
    :: i < NUMBERS -> author[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    s = 0
}

/* ---- take */

inline see_seat()
{
    r = rolled[s];
    q = seq[s];
    was = (open[s] -> seq[s] : 0);
    whose = open_inc[s];
    has_unrolled = unrolled[s] > 0
}

inline forget_seat()
{
    r = 0;
    q = 0;
    was = 0;
    whose = 0;
    has_unrolled = false
}

inline take()
{
    atomic {
        taken == id ->
        if
        :: which != 1 -> s = 0
#if SLOTS > 1
        :: which != 0 -> s = 1
#endif
        fi;
        taken++;
        inc[s]++;
        my_inc = inc[s];
        prev = seq[s];
        last = used[s];
        see_seat()
    };
    if
    :: was -> recover()
    :: else
    fi;
    atomic {
        may_die();
        see_seat();
        q = prev
    };
#ifndef WITHOUT_REPLAYING_FIRST
    if
    :: replay();
       note_rolled()
    :: !has_unrolled /* nothing to replay */
    fi;
#endif
    d_step {
        from = prev;
        forget_seat()
    }
}

/* ---- a batch */

/* Its log, under a number never used before. */
inline write_log()
{
    atomic {
        !is_end && !must && begun < BATCHES && next[s] < EVENTS ->
        may_die();
        begun++;
        last = (last > prev -> last : prev) + 1;
        used[s] = (used[s] > last -> used[s] : last);
        b.inc = my_inc;
        b.prev = prev;
        b.event = EVENT(s, next[s]);
        if
        :: !closing -> b.rolls = false
        :: b.rolls = true
        fi;
#ifdef WITHOUT_SUMS_AFTER_THE_COMMIT
        sum = sum + DOUBLED(b.event);
#endif
        if
        :: log[s].at[last].inc <= my_inc -> copy(log[s].at[last], b)
        :: else
        fi
    }
}

/* It ends the batch before, which is applied; and says how far longer documents are. */
inline commit()
{
    atomic {
        may_die();
        if
        :: SAME_INC && seq[s] == prev && IS_IN_TIME ->
            close_open();
            seq[s] = last;
            sealed[s] = sealed[s] | (1 << last);
            open[s] = true;
            open_inc[s] = my_inc;
            open_event[s] = b.event;
            next[s]++;
            unrolled[s] = (unrolled[s] <= TOLD -> 0 : unrolled[s]);
#ifndef WITHOUT_UNROLLED_WITH_THE_COMMIT
            unrolled[s] = (b.rolls -> unrolled[s] : last);
#endif
            rolled[s] = TOLD;
            delete_logs();
            prev = last;
#ifndef WITHOUT_SUMS_AFTER_THE_COMMIT
            sum = sum + DOUBLED(b.event);
#endif
            must = b.rolls
        :: else ->
            if
            :: SAME_INC && seq[s] == prev -> clear(b); goto next_step /* too late: it must roll up */
            :: else -> goto lost
            fi
        fi
    };
    atomic {
        may_die();
        add_to(fine, b.prev, prev, DOUBLED(b.event))
    };
#ifdef WITHOUT_UNROLLED_WITH_THE_COMMIT
    atomic {
        may_die();
        unrolled[s] = (!b.rolls && seq[s] == prev -> prev : unrolled[s])
    };
#endif
#ifdef WITHOUT_LONGER_BEFORE_DONE
    must = false;
#endif
    d_step {
        clear(b)
    }
}

/* ---- roll-ups: one update of each document for all batches after `from`, up to `to` */

inline begin_roll_up()
{
    atomic {
        !to && !from_logs && sum ->
        to = prev;
        rolling = sum;
        sum = 0;
        unsent = 3
    }
}

inline send_sums(d_)
{
    atomic {
        unsent & (1 << d_) ->
        may_die();
        unsent = unsent & ~(1 << d_);
        if
        :: OF(d_, rolling) != 0 && longer[d_].applied[s] > from && longer[d_].applied[s] < to ->
#ifdef WITHOUT_LOOKING_AT_NUMBERS
            skip
#elif defined(WITHOUT_ROLLED_IN_THE_GUARD)
            add_to(longer[d_], ROLLS_UP_FROM, to, OF(d_, rolling))
#else
            from_logs = true; /* somebody replays: part of it is there */
            unsent = 0
#endif
        :: else -> add_to(longer[d_], ROLLS_UP_FROM, to, OF(d_, rolling))
        fi;
        if
        :: !unsent ->
            from = (from_logs -> from : to);
            must = must && from != prev;
            to = 0;
            rolling = 0;
#ifdef WITHOUT_THE_SEATS_ROLLED
            delete_logs()
#endif
        :: else
        fi
    }
}

/* A part of the roll-up has failed, or somebody replays: so this one replays, too. */
inline replay_its_own()
{
    d_step {
        from_logs ->
        r = from;
        q = prev
    };
    replay();
    d_step {
        from = prev;
        sum = 0;
        from_logs = false;
        must = false;
        forget_seat()
    }
}

#define MUST_TELL (rolled[s] < from || open[s] || unrolled[s])

/* Tells readers, and ends the last batch, without a commit. */
inline tell()
{
    atomic {
        MUST_TELL && !must ->
        may_die();
        if
        :: MAY_TELL ->
            close_open();
            unrolled[s] = (unrolled[s] <= TOLD -> 0 : unrolled[s]);
            rolled[s] = TOLD;
            delete_logs()
        :: else -> goto lost
        fi
    }
}

/* It takes slot `which`, or any if that is ANY. */
#define ANY 2
proctype daemon(byte which; byte id)
{
    byte s, my_inc, prev, last, i;
    byte r, q, was, whose; /* as the seat showed them */
    bool has_unrolled;
    byte at, parts, author[NUMBERS], missing, event, before; /* of the replay under way */
    byte from, sum;           /* `rolled`, and the sums of batches after that, as in a document */
    byte to, rolling, unsent; /* the roll-up under way */
    bool from_logs, must;
    batch b;

    take();
next_step:
    do
    :: write_log(); commit()
    :: begin_roll_up()
    :: send_sums(0)
    :: send_sums(1)
    :: to && !is_end -> from_logs = true; to = 0; rolling = 0; unsent = 0 /* a request failed */
    :: replay_its_own()
    :: tell()
    :: !is_end -> break
    :: is_end && !MUST_TELL -> break
    od;
lost: /* Another took the slot. */
dead:
    skip;
    d_step {
        my_inc = 0;
        prev = 0;
        last = 0;
        from = 0;
        sum = 0;
        to = 0;
        rolling = 0;
        unsent = 0;
        from_logs = false;
        must = false;
        forget_replay()
    }
}

/* ---- who claims a partition and finds a batch open, or takes the writer for gone */

#if REPLAYERS
active [REPLAYERS] proctype replayer()
{
    byte s, i;
    byte r, q, was, whose;
    bool has_unrolled;
    byte at, parts, author[NUMBERS], missing, event, before; /* of the replay under way */
    batch b;
end:
    atomic {
        if
        :: open[0] || rolled[0] < seq[0] -> s = 0
#if SLOTS > 1
        :: open[1] || rolled[1] < seq[1] -> s = 1
#endif
        fi;
        see_seat()
    };
    if
    :: was -> recover()
    :: replay(); /* an open batch need not be finished for that */
       note_rolled()
    fi;
lost:
dead:
    skip;
    d_step {
        forget_replay()
    }
}
#endif

/* ---- expiry */

#if SLOTS > 1
#define IS_UNROLLED (unrolled[0] > rolled[0] || unrolled[1] > rolled[1])
#else
#define IS_UNROLLED (unrolled[0] > rolled[0])
#endif

#if EXPIRES
active proctype expirer()
{
    byte i;
end:
    closing = true;
#ifndef WITHOUT_EXPIRY_WAITS
    !IS_UNROLLED;
#endif
    expired = true;
    atomic { /* Its numbers go with it. A slow recovery may make it again, and nobody reads it. */
        fine.value = 0;
        do
        :: i < SLOTS -> fine.applied[i] = 0; i++
        :: else -> break
        od
    }
}
#endif

/* ---- who reads a chart of one of the longer documents, or of the same series in the fine one */

#if READERS
active proctype reader()
{
    byte d, were_done, value;
    bool reads_fine;
#ifdef WITHOUT_SEATS_FIRST
    atomic {
        if
        :: d = 0
        :: d = 1
        fi;
        value = longer[d].value
    };
#endif
    atomic {
        were_done = done;
        reads_fine = unrolled[0] > rolled[0]
    };
#if SLOTS > 1
    reads_fine = reads_fine || unrolled[1] > rolled[1];
#endif
    atomic {
#ifdef WITHOUT_SEATS_FIRST
        value = (reads_fine -> OF(d, fine.value) : value);
#else
        if
        :: d = 0
        :: d = 1
        fi;
        value = (reads_fine -> OF(d, fine.value) : longer[d].value);
#endif
#if EXPIRES && !defined(WITHOUT_LOOKING_AGAIN)
    };
    atomic {
        value = (reads_fine && expired -> longer[d].value : value);
#endif
        were_done = (d == 0 -> were_done : were_done & shared);
        assert(!LACKS(value, were_done));
        assert(!HAS_TWICE(value));
        d = 0;
        were_done = 0;
        value = 0;
        reads_fine = false
    }
}
#endif

init
{
    byte i, committed;
    atomic {
        if
        :: shared = 1
        :: shared = 2
#if BATCHES > 2
        :: shared = 5
#endif
        fi;
        has[0] = 255;
        has[1] = 3 * DOUBLED(shared);
        do
        :: i < DAEMONS -> run daemon(ANY, i); i++
        :: else -> break
        od
    };
    timeout; /* Nothing moves any more. Then others take each slot, and die no more. */
    is_end = true;
    taken = DAEMONS; /* who was killed before it took a slot took none */
    run daemon(0, DAEMONS);
    timeout;
#if SLOTS > 1
    run daemon(1, DAEMONS + 1);
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
        assert(longer[0].value == DOUBLED(committed));
        assert(longer[1].value == DOUBLED(committed & shared));
        assert(fine.value == DOUBLED(committed) || expired);
        assert(!IS_UNROLLED)
    }
}
