/* backfill.pml - a report is backfilled while others count the same partition with it (docs/LEDGER.md, "Backfill").
 *
 * World   : one partition, of which START offsets were counted without the report. Slots of two writers that count from
 *           the position on, and of two that backfill. Each may be killed before any request, and comes back. A batch
 *           has one offset. Its log has two updates: of the books, and of the counts. Updates are guarded, and a
 *           writer comes back in its own slot: ledger.pml has the rest.
 * Books   : since, until and gaps, as store/backfill.h moves them.
 *           SEATS: live writers have a seat each, as in divided.pml; those that backfill commit in the ledger.
 * Asserted: no offset counts twice (apply). When nothing moves any more, each offset before the position was counted,
 *           and the books say so.
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#ifndef START
#define START 2
#endif
#ifndef END
#define END 3
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef FILLERS
#define FILLERS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#define CLAIMS 2 /* of writers that backfill: each claim makes the other side claim again */
#define SLOTS  (LIVES + FILLERS)
#define NONE   255

/* A batch in the log: its offset, and the entries that it sets. */
typedef batch {
    byte at;
    byte since, until; /* NONE: it leaves the entry */
    byte gap, gap_to;  /* sets gap.GAP; gap NONE: it does not */
    byte other, other_to; /* … and another one; other_to 0: deletes it */
};

/* ---- the ledger */
byte next = START, epoch, fills, owner = NONE;
bool open[SLOTS];

#if SEATS
/* ---- the seats of live writers: position, the epoch of its claim, the highest epoch that recalled it */
byte at[LIVES], held_at[LIVES], fence[LIVES];
byte seats; /* in the ledger: those that may have the position, a bit each */
#define BIT(s) (1 << (s))

/* Looks at each seat of a set: its position counts if its epoch is the highest; its open batch is to be recovered. */
inline look_at_seats(set, found, e)
{
    r = 0;
    do
    :: r < LIVES && !(set & BIT(r)) -> r++
    :: r < LIVES && (set & BIT(r)) ->
        atomic {
            may_die();
            fence[r] = (fence[r] < e -> e : fence[r]);
            if
            :: held_at[r] > found -> found = held_at[r]; position = at[r]
            :: else
            fi;
            todo[r] = open[r];
            r++
        }
    :: r == LIVES -> break
    od;
    r = 0
}

/* What a reply of the ledger shows: the open batches of slots without a seat, too. */
inline see_ledger(set)
{
    position = START;
    best = 0;
    set = seats;
    r = LIVES;
    do
    :: r < SLOTS -> todo[r] = open[r]; r++
    :: else -> break
    od;
    r = 0
}
#endif

/* ---- the log of each slot's last batch, and which of its updates the documents lack */
batch log[SLOTS];
bool lacks_books[SLOTS], lacks_counts[SLOTS];

/* ---- the documents */
byte since = NONE, until = NONE;
byte gap[END + 1]; /* gap[FROM]: its end; 0: there is none */
bool counted[END];

/* ---- what the model knows, and no writer */
byte crashes = CRASHES, claims = CLAIMS;

#ifdef WITHOUT_FILLS
#define SAME_FILLS(f) true
#else
#define SAME_FILLS(f) (fills == f)
#endif
#ifdef WITHOUT_EPOCH
#define SAME_EPOCH(e) true
#else
#define SAME_EPOCH(e) (epoch == e)
#endif
#ifdef WITHOUT_CLAIMING_FOR_UNTIL
#define MAY_MOVE_UNTIL true
#else
#define MAY_MOVE_UNTIL (held == my_epoch)
#endif

#if SEATS
#define ENDS_BEFORE(o) true /* It looked at the seats: under an epoch that stays, the position only grows. */
#else
#define ENDS_BEFORE(o) (next > o)
#endif

inline may_die()
{
    if
    :: crashes > 0 -> crashes--; goto start
    :: true
    fi
}

inline copy(a, b)
{
    a.at = b.at;
    a.since = b.since;
    a.until = b.until;
    a.gap = b.gap;
    a.gap_to = b.gap_to;
    a.other = b.other;
    a.other_to = b.other_to
}

inline clear(b)
{
    b.at = 0;
    b.since = NONE;
    b.until = NONE;
    b.gap = NONE;
    b.gap_to = 0;
    b.other = NONE;
    b.other_to = 0
}

/* The updates of the open batch of a slot, by its writer or another, then done. */
inline finish(s)
{
    atomic {
        may_die();
        if
        :: lacks_books[s] ->
            lacks_books[s] = false;
            since = (log[s].since != NONE -> log[s].since : since);
            until = (log[s].until != NONE -> log[s].until : until);
            if
            :: log[s].gap != NONE -> gap[log[s].gap] = log[s].gap_to
            :: else
            fi;
            if
            :: log[s].other != NONE -> gap[log[s].other] = log[s].other_to
            :: else
            fi
        :: else
        fi
    };
    atomic {
        may_die();
        if
        :: lacks_counts[s] ->
            lacks_counts[s] = false;
            assert(!counted[log[s].at]);
            counted[log[s].at] = true
        :: else
        fi
    };
    atomic {
        may_die();
        if
        :: !lacks_books[s] && !lacks_counts[s] -> open[s] = false; clear(log[s])
        :: else /* the slot has another batch by now */
        fi
    }
}

/* Recover every batch that was open when the ledger was read. */
inline recover_all()
{
    r = 0;
    do
    :: r < SLOTS && todo[r] -> finish(r); todo[r] = false
    :: r < SLOTS && !todo[r] -> r++
    :: else -> break
    od;
    r = 0
}

inline see_open()
{
    r = 0;
    do
    :: r < SLOTS -> todo[r] = open[r]; r++
    :: else -> break
    od;
    r = 0
}

inline forget_todo()
{
    r = 0;
    do
    :: r < SLOTS -> todo[r] = false; r++
    :: else -> break
    od;
    r = 0
}

/* Is the offset one that the report counted, by the books? */
inline look_up(o)
{
    d_step {
        is_counted = since != NONE && since <= o && o < until;
        from = NONE;
        r = 0;
        do
        :: r <= o && gap[r] > o -> is_counted = false; from = r; r++
        :: r <= o && gap[r] <= o -> r++
        :: else -> break
        od;
        r = 0
    }
}

/* A writer that counts from the position on. */
proctype live(byte me)
{
    byte my_epoch, position, until_then, r, o, from;
    bool todo[SLOTS], is_counted;
#if SEATS
    byte best, recalls;
#endif
start:
    skip;
    d_step { position = 0; my_epoch = 0; until_then = 0; o = 0; from = 0; is_counted = false; forget_todo() };
    do
    :: atomic { /* Claim. The reply shows open batches. */
        may_die();
        epoch++;
        owner = me;
        my_epoch = epoch;
#if SEATS
        see_ledger(recalls);
        seats = seats | BIT(me)
#else
        position = next;
#ifdef WITHOUT_RECOVERING_AT_THE_CLAIM
        todo[me] = open[me]
#else
        see_open()
#endif
#endif
       };
#if SEATS
       look_at_seats(recalls, best, my_epoch);
       d_step {
        recalls = 0;
        best = 0;
#ifdef WITHOUT_RECOVERING_AT_THE_CLAIM
        forget_todo();
        todo[me] = open[me]
#endif
       };
#endif
       recover_all();
       atomic { may_die(); until_then = until };
       do
       :: position == END -> goto stop
       :: atomic {
            position < END ->
            may_die();
            if
#if SEATS
            :: fence[me] <= my_epoch && !open[me] ->
                d_step {
                    at[me] = position + 1;
                    held_at[me] = my_epoch;
#else
            :: epoch == my_epoch && next == position && !open[me] ->
                d_step {
#endif
                    log[me].at = position;
                    log[me].since = (until_then == NONE -> position : NONE);
                    log[me].until = position + 1;
                    log[me].gap = (until_then != NONE && until_then != position -> until_then : NONE);
                    log[me].gap_to = (until_then != NONE && until_then != position -> position : 0);
                    open[me] = true;
                    lacks_books[me] = true;
                    lacks_counts[me] = true;
                    next++;
                    position++;
                    until_then = position
                }
            :: else ->
                if
                :: owner < LIVES && owner != me -> goto stop /* the group gave it to the other one */
                :: else -> break /* it claims again */
                fi
            fi
          };
          finish(me)
       od
    od;
stop:
    skip
}

/* What a batch with the offset changes in the books: store/backfill.c. */
inline move_entries(o)
{
    b.at = o;
    if
    :: since == NONE -> b.since = o; b.until = o + 1
    :: since != NONE && from != NONE ->
        b.gap = from;
        b.gap_to = (o > from -> o : 0);
        b.other = (o + 1 < gap[from] -> o + 1 : NONE);
        b.other_to = (o + 1 < gap[from] -> gap[from] : 0)
    :: since != NONE && from == NONE && o < since ->
        b.since = o;
        b.gap = (o + 1 < since -> o + 1 : NONE);
        b.gap_to = (o + 1 < since -> since : 0)
    :: else ->
        b.gap = (o > until -> until : NONE);
        b.gap_to = (o > until -> o : 0);
        b.until = o + 1
    fi
}

/* A writer that backfills. */
proctype filler(byte me)
{
    byte my_epoch, my_fills, held, position, r, o, from;
    bool todo[SLOTS], is_counted, skips;
    batch b;
#if SEATS
    byte best, looks;
#endif
start:
    skip;
    d_step {
        my_epoch = 0;
        my_fills = 0;
        held = NONE;
        position = 0;
        o = 0;
        from = 0;
        is_counted = false;
        skips = false;
        forget_todo();
        clear(b)
    };
    do
    :: atomic { /* Look. */
        may_die();
        my_epoch = epoch;
        my_fills = fills;
#if SEATS
        see_ledger(looks)
       };
       look_at_seats(looks, best, 0);
       atomic {
        looks = 0;
        best = 0
#else
        position = next;
        see_open()
#endif
#ifdef WITHOUT_RECOVERING_FIRST
        ;
        r = 0;
        do
        :: r < SLOTS -> todo[r] = todo[r] && r == me; r++
        :: else -> break
        od;
        r = 0
#endif
       };
       recover_all();
       atomic { /* Read the books, and choose an offset that the report lacks. */
        may_die();
        o = 0;
        skips = false;
        do
        :: o < position ->
            look_up(o);
            if
            :: is_counted -> o++
            :: !is_counted -> break
            :: !is_counted -> skips = true; o++
            fi
        :: else -> break
        od;
        if
        :: o < position -> move_entries(o)
        :: o == position && !skips -> goto stop
        :: else
        fi;
        from = 0;
        is_counted = false
       };
       if
       :: o == position /* it looks again */
       :: o < position && b.until != NONE && !MAY_MOVE_UNTIL ->
        atomic {
            may_die();
            if
            :: claims > 0 ->
                claims--;
                epoch++;
                owner = me;
                held = epoch
#if SEATS
                ;
                looks = seats
#endif
            :: true /* another claims it, or counts with the report by then */
            fi
        }
#if SEATS && !defined(WITHOUT_RECALLING_FOR_UNTIL)
        ;
        look_at_seats(looks, best, held); /* It looks again, so only the fence matters. */
        d_step { looks = 0; best = 0; forget_todo() }
#endif
       :: else ->
        atomic {
            may_die();
            if
            :: SAME_EPOCH(my_epoch) && SAME_FILLS(my_fills) && ENDS_BEFORE(o) && !open[me] ->
                d_step {
                    copy(log[me], b);
                    open[me] = true;
                    lacks_books[me] = true;
                    lacks_counts[me] = true;
                    fills++;
                    is_counted = true
                }
            :: else
            fi
        };
        if
        :: is_counted -> finish(me)
        :: else
        fi
       fi;
       d_step {
        o = 0;
        is_counted = false;
        skips = false;
        clear(b)
       }
    od;
stop:
    skip
}

init
{
    byte r, o, from;
    bool is_counted;
    atomic {
        r = 0;
        do
        :: r < SLOTS -> clear(log[r]); r++
        :: else -> break
        od;
        r = 0;
        run live(0);
#if LIVES > 1
        run live(1);
#endif
        run filler(LIVES);
#if FILLERS > 1
        run filler(LIVES + 1);
#endif
    };
    timeout; /* When nothing moves any more, all was counted. */
    d_step {
        assert(next == END);
        do
        :: o < END ->
            look_up(o);
            assert(counted[o] && is_counted);
            o++
        :: else -> break
        od
    }
}
