/* divided.pml - the ledger divided by slot: a partition's position moves between documents, and no event counts twice.
 *
 * Each slot has a document of its own, its *seat*: the slot's numbers, its open batch, and the positions of its
 * partitions. A seal is one compare-and-set of the seat. The ledger still says who owns a partition, and keeps the
 * positions of writers without a seat. docs/LEDGER.md has the rules. An `atomic` that touches
 * the store is one request for one document, as in ledger.pml, which has the rules of applying a batch in detail.
 *
 * World   : a partition of EVENTS; SLOTS daemons with a seat each; TWINS: another daemon with the name of the first;
 *           CLERKS: a writer without a seat, which claims the partition, counts in the ledger or sets the position back
 *           (RESETS), or moves it to `past` (MOVES). PICTURES: a reader that needs all documents as of one moment.
 *           A request may be carried out late, or twice (LATE).
 * Asserted: no event is counted twice (add); none is lost (init, when nothing moves any more); recovery ends; a
 *           picture has exactly the events before its position.
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LOST_REPLIES
#define LOST_REPLIES 0
#endif
#ifndef REBALANCES
#define REBALANCES 0
#endif
#ifndef TWINS
#define TWINS 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef CLERKS
#define CLERKS 0
#endif
#ifndef RESETS
#define RESETS 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef PICTURES
#define PICTURES 0
#endif
#define DAEMONS  (SLOTS + TWINS)
#define HOME     SLOTS /* the ledger, as the place of a position and of the clerk's slot */
#define PLACES   (SLOTS + 1)
#define NOBODY   255
#define PATIENCE (3 + 2 * (CRASHES + LOST_REPLIES + REBALANCES + TWINS + LATE + 2 * CLERKS))
#define BIT(s)   (1 << (s))

/* A daemon's last request, as it knows it. */
#define NO   0
#define YES  1
#define LOST 2

typedef batch {
    byte from;
    byte to;
    byte topic
};

/* ---- the ledger; `held[HOME]` and `next[HOME]` are in it, too */
byte epoch;        /* raised by each claim of the partition */
byte claimed;      /* number of the claim, used once */
byte from;         /* the seats that may have its position: a bit each */
byte taken[SLOTS]; /* incarnation of the slot, raised by whoever takes it */

/* ---- a seat, or the clerk's slot in the ledger */
byte inc[PLACES];      /* the incarnation that may seal */
byte seq[PLACES];      /* of the last batch sealed */
byte before[PLACES];   /* … and of the one before it */
bool open[PLACES];     /* sealed, and not done */
byte open_inc[PLACES]; /* under which incarnation it was */
byte next[PLACES];     /* position of the partition */
byte held[PLACES];     /* epoch of the claim under which it was written; 0: there is none */
byte fence[SLOTS];     /* highest epoch that recalled it: no claim with a lower one may seal */

/* ---- `past`, the log as far as it is read, the document of counts */
byte past_next, past_epoch;
batch log[PLACES];
bool logged[PLACES];
byte applied[PLACES];

/* ---- what the model knows, and no daemon */
byte crashes = CRASHES, lost_replies = LOST_REPLIES, rebalances = REBALANCES, takes = TWINS, late_requests = LATE;
byte alive = DAEMONS, resets = RESETS, moves = MOVES;
byte topic;            /* raised when the position is set back: the events are others now */
byte committed_before; /* position at that moment */
byte sealed_to;        /* by the last seal */
bool counted[2 * EVENTS];
byte claims;           /* numbers of claims so far */
byte holder = NOBODY;  /* the daemon at work that took the partition last */
byte clerks_at_work;
#if PICTURES
byte sealed_by[EVENTS], sealed_as[EVENTS]; /* place and number of the batch that has an event; number 0: none */
#endif

#define CELL(t, o) ((t) * EVENTS + (o))
#if SLOTS == 3
#define NONE_OPEN_AT_ALL (!open[0] && !open[1] && !open[2] && !open[HOME])
#else
#define NONE_OPEN_AT_ALL (!open[0] && !open[1] && !open[HOME])
#endif
#define ALL_DONE (sealed_to == EVENTS && NONE_OPEN_AT_ALL)

/* ---- the rules that variants are without */
#ifdef WITHOUT_FENCE
#define PASSES(s, e) (held[s] <= (e))
#else
#define PASSES(s, e) (fence[s] <= (e))
#endif

#ifdef WITHOUT_GUARD
#define MATCHES(s, p) true
#else
#define MATCHES(s, p) (applied[s] <= (p))
#endif

#ifdef WITHOUT_INCARNATION
#define SAME_INC(s, i) true
#else
#define SAME_INC(s, i) (inc[s] == (i))
#endif

#ifdef WITHOUT_INCARNATION_AT_THE_CLAIM
#define MAY_CLAIM(s, i) true
#else
#define MAY_CLAIM(s, i) (taken[s] == (i))
#endif

#ifdef WITHOUT_CLAIM_NUMBER
#define HOLDS(e, n) (epoch == (e))
#else
#define HOLDS(e, n) (epoch == (e) && claimed == (n))
#endif

#ifdef WITHOUT_CLAIM_WHEN_SETTLED
#define SETTLES(e, n) true
#else
#define SETTLES(e, n) HOLDS(e, n)
#endif

#ifdef WITHOUT_CLAIM_AT_HOME
#define MAY_WRITE_HOME(e, n) true
#elif defined(WITHOUT_NEWER_AT_HOME)
#define MAY_WRITE_HOME(e, n) HOLDS(e, n)
#else
#define MAY_WRITE_HOME(e, n) (HOLDS(e, n) && held[HOME] < (e))
#endif

inline copy(a, b)
{
    a.from = b.from;
    a.to = b.to;
    a.topic = b.topic
}

inline clear(b)
{
    b.from = 0;
    b.to = 0;
    b.topic = 0
}

inline may_die()
{
    if
    :: crashes > 0 -> crashes--; goto dead
    :: true
    fi
}

/* ---- requests that change one document, as the server carries them out */

/* Seals a batch. A seat compares the fence; the ledger, the clerk's, compares the epoch itself. */
inline seal(s, i, p, q, e, b, ok)
{
    d_step {
        ok = SAME_INC(s, i) && seq[s] == p && !open[s] &&
             (s == HOME -> (epoch == e && held[HOME] == e && next[HOME] == b.from) : PASSES((s == HOME -> 0 : s), e));
        if
        :: ok ->
            seq[s] = q;
            before[s] = p;
            open[s] = true;
            open_inc[s] = i;
            copy(log[s], b);
            logged[s] = true;
            next[s] = b.to;
            held[s] = e;
            sealed_to = b.to;
#if PICTURES
            o = b.from;
            do
            :: o < b.to -> sealed_by[o] = s; sealed_as[o] = q; o++
            :: else -> break
            od;
            o = 0
#endif
        :: else
        fi
    }
}

/* Raises the fence of a seat. */
inline bar(s, e)
{
    d_step {
        if
#ifdef WITHOUT_RISING_FENCE
        :: true -> fence[s] = e
#else
        :: fence[s] < e -> fence[s] = e
        :: else
#endif
        fi
    }
}

/* The first batch under the claim is sealed: the seats that it recalled do not have the position any more. */
inline drop_from(s, e, n)
{
    d_step {
        if
        :: SETTLES(e, n) -> from = BIT(s)
        :: else
        fi
    }
}

/* The position moves into the ledger. */
inline write_home(e, n, at)
{
    d_step {
        if
        :: MAY_WRITE_HOME(e, n) ->
            next[HOME] = at;
            held[HOME] = e;
            from = 0
        :: else
        fi
    }
}

/* ---- one request that the server carries out late, or once more */
#define SEAL   1
#define BAR    2
#define CLAIM  3
#define SETTLE 4
#define HOMING 5
byte late_kind, late_slot, late_inc, late_prev, late_seq, late_epoch, late_claim;
batch late;

#define MAY_BE_LATE (late_requests > 0 && late_kind == 0)

inline be_late(kind, s, e, n)
{
    late_requests--;
    late_kind = kind;
    late_slot = s;
    late_epoch = e;
    late_claim = n
}

inline may_be_late(kind, s, e, n)
{
    if
    :: MAY_BE_LATE -> be_late(kind, s, e, n)
    :: true
    fi
}

#if LATE
active proctype network()
{
    bool ok;
    byte o;
end:
    do
    :: atomic {
        late_kind > 0 ->
        if
        :: late_kind == SEAL -> seal(late_slot, late_inc, late_prev, late_seq, late_epoch, late, ok)
        :: late_kind == BAR -> bar(late_slot, late_epoch)
        :: late_kind == CLAIM ->
            if
            :: MAY_CLAIM(late_slot, late_inc) -> epoch++; claimed = late_claim; from = from | BIT(late_slot)
            :: else
            fi
        :: late_kind == SETTLE -> drop_from(late_slot, late_epoch, late_claim)
        :: late_kind == HOMING -> write_home(late_epoch, late_claim, late.to)
        fi;
        clear(late);
        ok = false;
        late_kind = 0;
        late_slot = 0;
        late_inc = 0;
        late_prev = 0;
        late_seq = 0;
        late_epoch = 0;
        late_claim = 0
       }
    od
}
#endif

/* ---- apply and done, in short: ledger.pml has them in full */
inline add(b, s, q)
{
    o = b.from;
    do
    :: o < b.to ->
        assert(!counted[CELL(b.topic, o)]);
        counted[CELL(b.topic, o)] = true;
        o++
    :: else -> break
    od;
    applied[s] = q;
    o = 0
}

inline apply(b, s, p, q)
{
    atomic {
        may_die();
        if
        :: MATCHES(s, p) -> add(b, s, q)
        :: else -> assert(applied[s] == q || (applied[s] > q && seq[s] >= applied[s]))
        fi
    }
}

inline finish(s, q)
{
    atomic {
        may_die();
        if
        :: seq[s] == q -> open[s] = false
        :: else
        fi
    };
    atomic {
        may_die();
        if
        :: seq[s] == q -> logged[s] = false
        :: else
        fi
    }
}

/* Does a reply show a batch that is sealed and not done? */
inline look(s)
{
    todo[s] = (open[s] -> seq[s] : 0)
}

inline recover(s)
{
    atomic {
        may_die();
        if
        :: seq[s] == todo[s] && logged[s] -> copy(rb, log[s]); was = before[s]
        :: else -> /* Another was quicker. */
            assert(!open[s] || seq[s] != todo[s]);
            todo[s] = 0
        fi
    };
    if
    :: todo[s] > 0 ->
        apply(rb, s, was, todo[s]);
        finish(s, todo[s]);
        d_step {
            clear(rb);
            was = 0;
            todo[s] = 0
        }
    :: else
    fi
}

/* ---- claim: the ledger first, then each seat that may have the position */

/* The position that counts is the one of the highest epoch. */
inline consider(s)
{
    if
#ifdef WITHOUT_HIGHEST_EPOCH
    :: held[s] > 0 -> best = held[s]; position = next[s]
#else
    :: held[s] > best -> best = held[s]; position = next[s]
#endif
    :: else
    fi
}

inline claim(s)
{
    epoch++;
    my_epoch = epoch;
    claims++;
    claimed = claims;
    my_claim = claims;
    recalls = from;
#ifdef WITHOUT_RECALLING_ALL
    recalls = (last_claimed != NOBODY -> BIT(last_claimed) & from : 0);
    last_claimed = s;
#endif
    if
    :: s != HOME ->
#ifdef WITHOUT_FROM_KEPT
        from = BIT(s)
#else
        from = from | BIT(s)
#endif
    :: else
    fi;
    best = 0;
    position = 0;
    consider(HOME);
    look(HOME); /* The reply is the ledger as the claim left it. */
#if MOVES
#ifdef WITHOUT_ASKING_PAST_ALWAYS
    asks = (held[HOME] == 0 && recalls == 0)
#else
    asks = (held[HOME] == 0)
#endif
#endif
}

/* A claimed partition without a position in the ledger: perhaps `past` has it. The epochs add up. */
inline bring_back()
{
    atomic {
        may_die();
        found_next = past_next;
        found_epoch = past_epoch
    };
    atomic {
        may_die();
        asks = false;
        if
        :: found_epoch > 0 && HOLDS(my_epoch, my_claim) && held[HOME] == 0 ->
#ifndef WITHOUT_SUM_OF_EPOCHS
            epoch = epoch + found_epoch;
#endif
            my_epoch = epoch;
            next[HOME] = found_next;
#ifdef WITHOUT_ITS_OWN_EPOCH
            held[HOME] = epoch;
#else
            held[HOME] = found_epoch;
#endif
            best = held[HOME];
            position = found_next
        :: found_epoch > 0 && !(HOLDS(my_epoch, my_claim) && held[HOME] == 0) -> recalls = 0; failing = true
        :: else
        fi;
        found_next = 0;
        found_epoch = 0
    }
}

#ifdef WITHOUT_RECALLING_ALL
byte last_claimed = NOBODY;
#endif

inline recall(s)
{
    atomic {
        may_die();
        bar(s, my_epoch);
        may_be_late(BAR, s, my_epoch, 0);
        consider(s);
#ifndef WITHOUT_RECOVERING_AT_THE_RECALL
        look(s);
#endif
        recalls = recalls & ~BIT(s);
        if
        :: fence[s] > my_epoch -> failing = true /* A later claim was here. */
        :: else
        fi
    }
}

inline release()
{
    if
    :: holder == me -> holder = NOBODY
    :: else
    fi;
    mine = false;
    my_epoch = 0;
    my_claim = 0;
    position = 0;
    best = 0;
    recalls = 0;
    settled = false;
    dropped = false;
    failing = false;
    asks = false
}

inline forget()
{
    d_step {
        release();
        clear(b);
        clear(rb);
        my_inc = 0;
        prev = 0;
        last = 0;
        was = 0;
        answer = NO;
        failed = 0;
        todo[0] = 0;
        todo[1] = 0;
        todo[SLOTS] = 0;
#if SLOTS == 3
        todo[2] = 0;
#endif
        had_it = false;
        r = 0
    }
}

#define RECALLS(s) (recalls & BIT(s))
#if SLOTS == 3
#define HAS_TODO   (todo[0] > 0 || todo[1] > 0 || todo[2] > 0 || todo[HOME] > 0)
#define FIRST_TODO (todo[0] > 0 -> 0 : (todo[1] > 0 -> 1 : (todo[2] > 0 -> 2 : HOME)))
#else
#define HAS_TODO   (todo[0] > 0 || todo[1] > 0 || todo[HOME] > 0)
#define FIRST_TODO (todo[0] > 0 -> 0 : (todo[1] > 0 -> 1 : HOME))
#endif
#define IS_READY   (mine && !asks && recalls == 0 && !HAS_TODO)

proctype daemon(byte me; byte slot)
{
    byte my_inc, prev, last, was, my_epoch, my_claim, position, best, recalls;
    bool mine, asks, settled, dropped, failing, had_it;
    byte todo[PLACES], r;
    batch b, rb;
    byte answer, failed, o, found_next, found_epoch;

start:
    atomic { /* Take the slot: in the ledger, … */
        taken[slot]++;
        my_inc = taken[slot];
        had_it = ((from & BIT(slot)) != 0)
    };
    atomic { /* … then in the seat, whose incarnation only grows. */
        may_die();
        if
#ifdef WITHOUT_GROWING_INCARNATION
        :: true ->
#else
        :: inc[slot] < my_inc ->
#endif
            inc[slot] = my_inc;
            prev = seq[slot];
            last = prev;
            look(slot);
            if
#ifdef WITHOUT_FROM_WHEN_CLEANED
            :: true ->
#else
            :: !had_it -> /* The position is elsewhere: the entry is of no use any more. */
#endif
               held[slot] = 0; next[slot] = 0; fence[slot] = 0
            :: else
            fi;
            had_it = false
        :: else -> goto lost
        fi
    };

    do
    :: atomic { mine && failing && !HAS_TODO -> release() }
    :: HAS_TODO ->
        r = FIRST_TODO;
        recover(r);
        r = 0
    :: mine && asks && !failing && !HAS_TODO -> bring_back()
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(0) -> recall(0)
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(1) -> recall(1)
#if SLOTS == 3
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(2) -> recall(2)
#endif
    :: !HAS_TODO && ALL_DONE && clerks_at_work == 0 -> goto stop
    :: atomic { !mine && !HAS_TODO && !ALL_DONE && (holder == NOBODY || rebalances > 0) ->
        if
        :: holder == NOBODY
        :: else -> rebalances--
        fi;
        may_die();
        if
        :: MAY_CLAIM(slot, my_inc) ->
            claim(slot);
            if
            :: MAY_BE_LATE -> be_late(CLAIM, slot, 0, my_claim); late_inc = my_inc
            :: true
            fi;
            holder = me;
            mine = true
        :: else -> goto lost
        fi
       }
    :: atomic { mine && !HAS_TODO && !failing && holder != me -> release() } /* It is told; or its next seal fails. */
#ifdef WITHOUT_SETTLING_AFTER_THE_SEAL
    :: atomic { IS_READY && !failing && !dropped ->
#else
    :: atomic { IS_READY && !failing && !dropped && settled ->
#endif
        may_die();
        drop_from(slot, my_epoch, my_claim);
        may_be_late(SETTLE, slot, my_epoch, my_claim);
        dropped = true
       }
    :: atomic {
        IS_READY && !failing && position < EVENTS ->
        may_die();
        b.from = position;
        b.topic = topic;
        if
        :: b.to = EVENTS
        :: position + 1 < EVENTS -> b.to = position + 1
        fi;
        last = (last > prev -> last : prev) + 1;
        if
        :: seal(slot, my_inc, prev, last, my_epoch, b, answer)
        :: lost_replies > 0 ->
            lost_replies--;
            if
            :: seal(slot, my_inc, prev, last, my_epoch, b, answer)
            :: true
            fi;
            answer = LOST
        :: MAY_BE_LATE ->
            be_late(SEAL, slot, my_epoch, 0);
            late_inc = my_inc;
            late_prev = prev;
            late_seq = last;
            copy(late, b);
            answer = NO
        fi
       };
       if
       :: answer == LOST -> atomic { may_die(); seal(slot, my_inc, prev, last, my_epoch, b, answer) }
       :: else
       fi;
       if
       :: answer == NO -> /* Is that so? The seat is read again. */
        atomic {
            may_die();
            if
            :: seq[slot] == last && open_inc[slot] == my_inc -> answer = YES
            :: else ->
                clear(b);
                failed++;
                assert(failed <= PATIENCE);
                if
                :: !SAME_INC(slot, my_inc) -> goto lost
                :: else
                fi;
                prev = seq[slot];
                look(slot);
                if
                :: fence[slot] > my_epoch -> failing = true
                :: else
                fi;
#ifndef WITHOUT_RESUMING_AT_THE_SEAT
                if
                :: held[slot] == my_epoch -> position = next[slot]; settled = true
                :: else
                fi
#endif
            fi
        }
       :: else
       fi;
       if
       :: answer == YES ->
        d_step {
            answer = NO;
            failed = 0;
            was = prev;
            prev = last;
            position = b.to;
            settled = true
        };
        apply(b, slot, was, last);
        finish(slot, last);
        d_step {
            clear(b);
            was = 0
        }
       :: else
       fi
    od;

dead:
    forget();
    if
    :: goto start
    :: atomic { alive > 1 -> alive--; goto stop }
    fi;
lost:
    forget();
    if
    :: atomic { takes > 0 -> takes-- }; goto start
    :: atomic { takes == 0 -> alive-- }
    fi;
stop:
    skip
}

#if CLERKS
/* Claims the partition as every writer does, and brings its position into the ledger. There it counts, sets the position
 * back, or moves it to `past`. */
active [CLERKS] proctype clerk()
{
    bool is_at_work;
    byte me = DAEMONS, slot = HOME, my_inc, prev, last, was, my_epoch, my_claim, position, best, recalls;
    bool mine, asks, settled, dropped, failing, had_it;
    byte todo[PLACES], r;
    batch b, rb;
    byte answer, failed, o, found_next, found_epoch;

    atomic {
        if
        :: sealed_to < EVENTS -> clerks_at_work++; is_at_work = true
        :: ALL_DONE -> goto ends
        fi
    };
start:
    atomic {
        inc[HOME]++;
        my_inc = inc[HOME];
        prev = seq[HOME];
        last = prev;
        look(HOME)
    };
    do
    :: atomic { mine && failing && !HAS_TODO -> goto ends }
    :: HAS_TODO ->
        r = FIRST_TODO;
        recover(r);
        r = 0
    :: atomic { !mine && !HAS_TODO && !settled -> may_die(); claim(HOME); holder = me; mine = true }
    :: mine && asks && !failing && !HAS_TODO -> bring_back()
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(0) -> recall(0)
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(1) -> recall(1)
#if SLOTS == 3
    :: mine && !asks && !failing && !HAS_TODO && RECALLS(2) -> recall(2)
#endif
    :: atomic { IS_READY && !settled && !failing && best > 0 ->
        may_die();
        if
        :: !MAY_WRITE_HOME(my_epoch, my_claim) -> failing = true
        :: else
        fi;
        write_home(my_epoch, my_claim, position);
        if
        :: MAY_BE_LATE -> be_late(HOMING, 0, my_epoch, my_claim); late.to = position
        :: true
        fi;
        settled = true
       }
    :: atomic { IS_READY && best == 0 -> goto ends } /* Nothing of it is counted. */
    :: atomic { IS_READY && settled && !failing && position < EVENTS -> /* It counts one. */
        may_die();
        b.from = position;
        b.to = position + 1;
        b.topic = topic;
        last = last + 1;
        seal(HOME, my_inc, prev, last, my_epoch, b, answer);
        if
        :: answer == NO -> clear(b); failing = true
        :: else -> was = prev; prev = last; position = b.to
        fi
       };
       if
       :: answer == YES ->
        apply(b, HOME, was, last);
        finish(HOME, last);
        d_step { clear(b); was = 0; answer = NO }
       :: else
       fi
    :: atomic { IS_READY && settled && resets > 0 -> /* The topic was created anew. */
        resets--;
        if
        :: HOLDS(my_epoch, my_claim) && held[HOME] == my_epoch && next[HOME] == position ->
            committed_before = next[HOME];
            topic++;
            next[HOME] = 0;
            position = 0;
            sealed_to = 0
        :: else
        fi;
        goto ends
       }
#if MOVES
    :: atomic { IS_READY && settled && !failing && moves > 0 && position > 0 ->
        may_die();
        moves--;
        if
        :: past_epoch < my_epoch -> past_epoch = my_epoch; past_next = position
        :: else
        fi
       };
       atomic {
        may_die();
        if
        :: HOLDS(my_epoch, my_claim) && held[HOME] == my_epoch && next[HOME] == position ->
            epoch = 0;
            from = 0;
            held[HOME] = 0;
            next[HOME] = 0
        :: else
        fi;
        goto ends
       }
#endif
    :: atomic { settled && !HAS_TODO -> goto ends }
    od;
dead:
    forget();
    if
    :: goto start
    :: true
    fi;
ends:
    atomic {
        forget();
        clerks_at_work = (is_at_work -> clerks_at_work - 1 : clerks_at_work);
        is_at_work = false
    }
}
#endif

#if PICTURES
/* Copies the documents, then reads every place again and again, until no position has moved between two times. */
byte pic_seq[PLACES], pic_next[PLACES], pic_held[PLACES], pic_fence[PLACES], pic_left;
bool moved;
bool copied[EVENTS];

#define FENCE(s) ((s) == HOME -> epoch : fence[((s) == HOME -> 0 : (s))])

inline read(s)
{
    d_step {
        moved = moved || pic_held[s] != held[s] || pic_fence[s] != FENCE(s);
        pic_seq[s] = seq[s];
        pic_next[s] = next[s];
        pic_held[s] = held[s];
        pic_fence[s] = FENCE(s);
        pic_left = pic_left & ~BIT(s)
    }
}

active proctype keeper()
{
    byte o, s, best, position;
    d_step {
        do
        :: o < EVENTS -> copied[o] = counted[o]; o++
        :: else -> break
        od;
        o = 0
    };
    moved = true;
    do
    :: moved ->
        atomic { pic_left = (1 << PLACES) - 1; moved = false };
        do
        :: pic_left & BIT(0) -> read(0)
        :: pic_left & BIT(1) -> read(1)
        :: pic_left & BIT(2) -> read(2)
        :: pic_left == 0 -> break
        od;
#ifdef WITHOUT_READING_TWICE
        break
#endif
    :: else -> break
    od;
    skip;
    d_step {
        s = 0;
        do
        :: s < PLACES ->
            if
            :: pic_held[s] > best -> best = pic_held[s]; position = pic_next[s]
            :: else
            fi;
            s++
        :: else -> break
        od;
        o = 0;
        do
        :: o < EVENTS ->
            assert((o < position) == (sealed_as[o] > 0 && sealed_as[o] <= pic_seq[sealed_by[o]]));
            assert(!copied[o] || o < position);
            o++
        :: else -> break
        od
    }
}
#endif

init
{
    byte n;
    atomic {
        run daemon(0, 0);
        run daemon(1, 1);
#if SLOTS == 3
        run daemon(2, 2);
#endif
#if TWINS
        run daemon(DAEMONS - 1, 0);
#endif
    };
    timeout;
    d_step {
        assert(sealed_to == EVENTS);
        assert(NONE_OPEN_AT_ALL);
        do
        :: n < EVENTS ->
            assert(counted[CELL(topic, n)]);
            assert(topic == 0 || n >= committed_before || counted[CELL(0, n)]);
            n++
        :: else -> break
        od
    }
}
