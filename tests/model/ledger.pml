/* ledger.pml - how batches become counts exactly once by writes of single documents.
 *
 * The protocol of docs/LEDGER.md (take, claim, log, commit, apply, done, recover), with one document for all slots, as
 * up to format 4, in the steps that a server sees; divided.pml has the seats. An
 * `atomic` that touches the store is one request for one document. Between any two of them everything else may
 * happen: another daemon's step, a crash, a lost reply, a rebalance, a commit that the server carries out long after
 * its sender gave it up.
 *
 * World   : two partitions; two slots with a daemon each, and TWINS: one more that uses the first slot's name (two
 *           daemons of one name, or one that was stopped, replaced and woken up); two documents that the batches of
 *           all slots share. Daemons that are killed come back, or do not.
 *           With MOVES the first partition is a file: its position leaves the ledger for `past`, and comes back.
 * Asserted: no event is counted twice (add); none is lost (init, when nothing moves any more); recovery ends (what a
 *           daemon tries again is bounded by what can go wrong around it: PATIENCE).
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#define PARTITIONS 2
#define SLOTS      2
#define DOCUMENTS  2
#define NOBODY     255

/* Events of the first partition, and of the second. */
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef FEW
#define FEW 1
#endif
#define END(p) ((p) == 0 -> EVENTS : FEW)

/* The faults of one run, and how often each may happen. */
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
#ifndef LATE_COMMITS
#define LATE_COMMITS 0
#endif
#ifndef RESETS
#define RESETS 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef LATE_MOVES
#define LATE_MOVES 0
#endif
#define DAEMONS (SLOTS + TWINS)
/* More failed commits in a row than this, and something waits for what never comes. */
#define PATIENCE (2 + 2 * (CRASHES + LOST_REPLIES + REBALANCES + TWINS + LATE_COMMITS + RESETS + MOVES))

/* The state of a daemon's last request, as it knows it. */
#define NO        0
#define YES       1
#define LOST      2
#define NO_MATCH  3
#define DUPLICATE 4

/* The offsets [from, to) of each partition; of which topic, if it was created anew; as owned in which epoch. */
typedef batch {
    byte from[PARTITIONS];
    byte to[PARTITIONS];
    byte topic[PARTITIONS];
    byte epoch[PARTITIONS]
#if MOVES
    ;
    byte number /* of the claim of the first partition */
#endif
};

typedef sequences {
    byte by[SLOTS]
};

/* ---- the ledger: one document */
byte next[PARTITIONS];
byte owner[PARTITIONS] = NOBODY; /* a slot */
byte epoch[PARTITIONS];
#if MOVES
byte claimed; /* number of its owner's claim of the first partition */
#endif
byte inc[SLOTS];      /* raised by whoever takes the slot */
byte seq[SLOTS];      /* of the last batch committed; never goes back */
byte open_inc[SLOTS]; /* under which incarnation it was */
bool open[SLOTS];     /* committed, and not done */
byte before[SLOTS];   /* … and the slot's batch before it */

/* ---- the log, as far as it is ever read: the batch that each slot committed last */
batch log[SLOTS];
bool logged[SLOTS];

/* ---- the documents: the event at offset o belongs to document o % DOCUMENTS */
sequences applied[DOCUMENTS];
bool exists[DOCUMENTS];

#if MOVES
/* ---- the document of `past`: the first partition's position; epoch 0: there is none */
byte past_next, past_epoch;
#endif

/* ---- what the model knows, and no daemon */
byte crashes = CRASHES, lost_replies = LOST_REPLIES, rebalances = REBALANCES, takes = TWINS;
byte late_commits = LATE_COMMITS, resets = RESETS, alive = DAEMONS;
#if MOVES
byte moves = MOVES, late_moves = LATE_MOVES;
byte late_move_epoch, late_move_next; /* a document that the server writes later */
#endif
byte topic[PARTITIONS];                /* raised when an operator sets `next` back: the events are others now */
byte committed_before[PARTITIONS];        /* `next` at that moment */
bool counted[PARTITIONS * 2 * EVENTS]; /* by partition, topic, offset */
byte holder[PARTITIONS] = NOBODY;      /* the daemon at work that took the partition last */

#define CELL(p, t, o) (((p) * 2 + (t)) * EVENTS + (o))
#if MOVES
#define COUNTED_TO (next[0] > 0 -> next[0] : past_next)
#else
#define COUNTED_TO next[0]
#endif
#define ALL_DONE      (COUNTED_TO == EVENTS && next[1] == FEW && !open[0] && !open[1])
#define COVERS(b, p)  (b.from[p] < b.to[p])
#define HAS(b, p, d)  ((b.from[p] <= d && d < b.to[p]) || (b.from[p] <= d + DOCUMENTS && d + DOCUMENTS < b.to[p]))

/* ---- the rules that variants are without */
#ifdef WITHOUT_GUARD
#define MATCHES(d, s, p) (exists[d])
#else
#define MATCHES(d, s, p) (exists[d] && applied[d].by[s] <= p)
#endif

#ifdef WITHOUT_INCARNATION
#define SAME_INC(s, i)     true
#define COMMITTED_BY(s, i, q) (seq[s] == q)
#else
#define SAME_INC(s, i)     (inc[s] == i)
#define COMMITTED_BY(s, i, q) (seq[s] == q && open_inc[s] == i)
#endif

#ifdef WITHOUT_EPOCH
#define OWNS(s, p, e) (owner[p] == s)
#else
#define OWNS(s, p, e) (owner[p] == s && epoch[p] == e)
#endif

#ifdef WITHOUT_CLAIM_NUMBER
#define IS_CLAIM(p, n) true
#else
#define IS_CLAIM(p, n) ((p) == 1 || claimed == n)
#endif
#if MOVES
#define COMMITS(s, p, b) (OWNS(s, p, b.epoch[p]) && IS_CLAIM(p, b.number))
#else
#define COMMITS(s, p, b) OWNS(s, p, b.epoch[p])
#endif

#ifdef WITHOUT_ONE_OPEN_BATCH
#define WITHOUT_FINISHING_ITS_OWN
#define NONE_OPEN(s) true
#else
#define NONE_OPEN(s) (!open[s])
#endif

#ifdef WITHOUT_SEQ_AT_DONE
#define STILL(s, q) true
#else
#define STILL(s, q) (seq[s] == q)
#endif

inline copy(a, b)
{
    d_step {
        a.from[0] = b.from[0];
        a.from[1] = b.from[1];
        a.to[0] = b.to[0];
        a.to[1] = b.to[1];
        a.topic[0] = b.topic[0];
        a.topic[1] = b.topic[1];
        a.epoch[0] = b.epoch[0];
        a.epoch[1] = b.epoch[1]
#if MOVES
        ;
        a.number = b.number
#endif
    }
}

inline clear_range(b, p)
{
    b.from[p] = 0;
    b.to[p] = 0;
    b.topic[p] = 0;
    b.epoch[p] = 0
#if MOVES
    ;
    b.number = (p == 0 -> 0 : b.number)
#endif
}

inline clear(b)
{
    d_step {
        clear_range(b, 0);
        clear_range(b, 1)
    }
}

/* A daemon may be killed before any of its requests: what it knew is gone, what it did is not. */
inline may_die()
{
    if
    :: crashes > 0 -> crashes--; goto dead
    :: true
    fi
}

inline answer_comes()
{
    if
    :: lost_replies > 0 -> lost_replies--; answer = LOST
    :: answer = YES
    fi
}

/* ---- apply */

/* The deltas of batch `b` for document `d`. No event twice. */
inline add(b, d, s, q)
{
    i = 0;
    do
    :: i < PARTITIONS ->
        o = b.from[i];
        do
        :: o < b.to[i] ->
            if
            :: o % DOCUMENTS == d ->
                assert(!counted[CELL(i, b.topic[i], o)]);
                counted[CELL(i, b.topic[i], o)] = true
            :: else
            fi;
            o++
        :: else -> break
        od;
        i++
    :: else -> break
    od;
    applied[d].by[s] = (applied[d].by[s] < q -> q : applied[d].by[s]);
    i = 0;
    o = 0
}

/* One guarded update of document `d`, sent until it is answered; `p` is the slot's batch before `q`. */
inline update(b, d, s, p, q)
{
    do
    :: atomic {
        may_die();
        if
        :: MATCHES(d, s, p) -> add(b, d, s, q); answer_comes()
        :: else -> answer = NO_MATCH
        fi
       };
       if
       :: answer == NO_MATCH -> /* An upsert is a look and an insert; another may insert in between. */
        atomic {
            if
            :: !exists[d] -> exists[d] = true; add(b, d, s, q); answer_comes()
            :: else -> answer = DUPLICATE
            fi
        }
       :: else
       fi;
#ifndef WITHOUT_DUPLICATE_KEY_RULE
       if
       :: answer == DUPLICATE -> /* the same without upsert; what then matches nothing had been applied: never has the
                                    document a number that the ledger knows nothing of */
        atomic {
            may_die();
            if
            :: MATCHES(d, s, p) -> add(b, d, s, q)
            :: else -> assert(applied[d].by[s] == q || (applied[d].by[s] > q && seq[s] >= applied[d].by[s]))
            fi;
            answer_comes()
        }
       :: else
       fi;
#endif
       if
       :: answer == LOST /* the same again */
       :: else -> break
       fi
    od;
    answer = NO
}

inline apply(b, s, p, q)
{
    if
    :: HAS(b, 0, 0) || HAS(b, 1, 0) -> update(b, 0, s, p, q)
    :: else
    fi;
    if
    :: HAS(b, 0, 1) || HAS(b, 1, 1) -> update(b, 1, s, p, q)
    :: else
    fi
}

/* ---- done */
inline finish(s, q)
{
    atomic {
        may_die();
        if
        :: STILL(s, q) -> open[s] = false
        :: else
        fi
    };
    atomic {
        may_die();
        if
        :: seq[s] == q -> logged[s] = false
        :: else
        fi;
#ifdef WITHOUT_APPLIED_KEPT
        applied[0].by[s] = 0;
        applied[1].by[s] = 0
#endif
    }
}

/* ---- recover */

/* Is there a batch committed and not done, by what the ledger says in a reply? */
inline look(s, concerned)
{
    todo[s] = (open[s] && concerned -> seq[s] : 0)
}

/* A daemon that comes may finish what was open when it looked. */
inline recover(s)
{
    atomic {
        may_die();
        if
        :: seq[s] == todo[s] && logged[s] -> copy(rb, log[s]); was = before[s]
        :: else -> /* Another was quicker: the log is gone. */
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

/* ---- claim */

/* The group gives a partition to a daemon when nobody has it, or has another daemon think so longer than is true. */
inline assign(p)
{
    !mine[p] && (holder[p] == NOBODY || rebalances > 0);
    if
    :: holder[p] == NOBODY
    :: else -> rebalances--
    fi
}

inline claim(p)
{
    may_die();
    owner[p] = slot;
    epoch[p]++;
    my_epoch[p] = epoch[p];
    position[p] = next[p];
    holder[p] = me;
    mine[p] = true;
#if MOVES
    if
    :: p == 0 ->
        claims++;
        claimed = claims;
        my_claim = claims;
#ifdef WITHOUT_LEDGER_FIRST
        asks = true;
#else
        asks = (next[0] == 0);
#endif
    :: else
    fi;
#endif
#ifndef WITHOUT_CLAIM_FIRST
    look(0, COVERS(log[0], p)); /* The reply is the ledger as the claim left it. */
    look(1, COVERS(log[1], p))
#endif
}

#if MOVES
#define HOLDS(s, e, n) (OWNS(s, 0, e) && IS_CLAIM(0, n))

/* After the claim: is the position in `past`? Then it comes back into the ledger, unless the claim is lost. */
inline bring_back()
{
#ifndef WITHOUT_LOOK_AFTER_CLAIM
    atomic {
        may_die();
        found_next = past_next;
        found_epoch = past_epoch
    };
#endif
    atomic {
        may_die();
        asks = false;
        if
        :: found_next > 0 && SAME_INC(slot, my_inc) && HOLDS(slot, my_epoch[0], my_claim) ->
            next[0] = found_next;
            epoch[0] = epoch[0] + found_epoch;
            my_epoch[0] = epoch[0];
            position[0] = next[0]
        :: found_next > 0 && !(SAME_INC(slot, my_inc) && HOLDS(slot, my_epoch[0], my_claim)) -> release(0)
        :: else
        fi;
        found_next = 0;
        found_epoch = 0
    }
}

/* `past` as the server writes it: never by an older one. */
inline write_past(e, n)
{
    if
#ifdef WITHOUT_NEWER_PAST
    :: true -> past_epoch = e; past_next = n
#else
    :: past_epoch < e -> past_epoch = e; past_next = n
    :: else
#endif
    fi
}

inline take_out()
{
    atomic {
        may_die();
        if
#ifdef WITHOUT_COMPARING_AT_REMOVAL
        :: true ->
#else
        :: SAME_INC(slot, my_inc) && HOLDS(slot, my_epoch[0], my_claim) && next[0] == position[0] ->
#endif
            next[0] = 0;
            epoch[0] = 0;
            owner[0] = NOBODY;
            claimed = 0
#ifndef WITHOUT_COMPARING_AT_REMOVAL
        :: else
#endif
        fi;
        release(0)
    }
}

inline move_out()
{
    if
    :: todo[0] > 0 -> recover(0)
    :: else
    fi;
    if
    :: todo[1] > 0 -> recover(1)
    :: else
    fi;
    if
    :: position[0] == 0 -> asks = true /* another has moved it meanwhile */
    :: else ->
#ifdef WITHOUT_PAST_FIRST
       found_next = position[0];
       found_epoch = my_epoch[0];
       take_out();
       atomic {
           may_die();
           write_past(found_epoch, found_next);
           found_next = 0;
           found_epoch = 0
       }
#else
       atomic {
           may_die();
           write_past(my_epoch[0], position[0]);
           if
           :: late_moves > 0 && late_move_epoch == 0 -> /* it is sent twice, and the server has the first one late */
               late_moves--;
               late_move_epoch = my_epoch[0];
               late_move_next = position[0]
           :: true
           fi
       };
       take_out()
#endif
    fi
}
#endif

inline release(p)
{
    if
    :: holder[p] == me -> holder[p] = NOBODY
    :: else
    fi;
    mine[p] = false;
    my_epoch[p] = 0;
    position[p] = 0
}

#if MOVES
#define STILL_OWNS(p) (owner[p] == slot && epoch[p] == my_epoch[p] && (p == 1 || claimed == my_claim))
#else
#define STILL_OWNS(p) (owner[p] == slot && epoch[p] == my_epoch[p])
#endif

/* The part of what the daemon thought it owns that the ledger still gives it. */
inline check_ownership(p)
{
    if
    :: mine[p] && STILL_OWNS(p) -> position[p] = next[p]
    :: mine[p] && !STILL_OWNS(p) -> release(p)
    :: else
    fi
}

/* ---- commit */

/* Some of what is there, or nothing if there is something of the other partition. */
inline fill(p)
{
    if
    :: mine[p] && position[p] < END(p) ->
        b.from[p] = position[p];
        b.topic[p] = topic[p];
        b.epoch[p] = my_epoch[p];
#if MOVES
        b.number = (p == 0 -> my_claim : b.number);
#endif
        if
        :: b.to[p] = END(p)
        :: position[p] + 1 < END(p) -> b.to[p] = position[p] + 1
        :: COVERS(b, 1 - p) || (p == 0 && mine[1] && position[1] < FEW) -> clear_range(b, p)
        fi
    :: else
    fi
}

/* The compare-and-set, as the server carries it out. */
inline commit(s, i, p, q, b, ok)
{
    d_step {
        ok = SAME_INC(s, i) && seq[s] == p && NONE_OPEN(s) &&
             (!COVERS(b, 0) || (COMMITS(s, 0, b) && next[0] == b.from[0])) &&
             (!COVERS(b, 1) || (COMMITS(s, 1, b) && next[1] == b.from[1]));
        if
        :: ok ->
            seq[s] = q;
            before[s] = p;
            open[s] = true;
            open_inc[s] = i;
            copy(log[s], b);
#ifndef WITHOUT_LOG_FIRST
            logged[s] = true;
#endif
            next[0] = (COVERS(b, 0) -> b.to[0] : next[0]);
            next[1] = (COVERS(b, 1) -> b.to[1] : next[1])
        :: else
        fi
    }
}

/* A commit that its sender has given up, but not the server. */
bool under_way;
byte late_slot, late_inc, late_prev, late_seq;
batch late;

#if LATE_MOVES
active proctype network_of_past()
{
end:
    do
    :: atomic {
        late_move_epoch > 0 ->
        write_past(late_move_epoch, late_move_next);
        late_move_epoch = 0;
        late_move_next = 0
       }
    od
}
#endif

active proctype network()
{
    bool ok;
end:
    do
    :: atomic {
        under_way ->
        commit(late_slot, late_inc, late_prev, late_seq, late, ok);
        clear(late);
        ok = false;
        under_way = false;
        late_slot = 0;
        late_inc = 0;
        late_prev = 0;
        late_seq = 0
       }
    od
}

/* ---- a daemon */
inline forget()
{
    d_step {
        clear(b);
        clear(rb);
        release(0);
        release(1);
#if MOVES
        my_claim = 0;
        claims = 0;
        asks = false;
        found_next = 0;
        found_epoch = 0;
#endif
        my_inc = 0;
        prev = 0;
        last = 0;
        was = 0;
        answer = NO;
        failed = 0;
        todo[0] = 0;
        todo[1] = 0;
        r = 0
    }
}

proctype daemon(byte me; byte slot)
{
    byte my_inc;     /* as which the slot was taken */
    byte prev, last; /* sequences: of the slot's last batch; the highest one used */
    byte was;        /* … of the batch before the one that is being applied */
    byte my_epoch[PARTITIONS], position[PARTITIONS];
    bool mine[PARTITIONS];
    byte todo[SLOTS], r; /* what is to be recovered; of which slot, now */
    batch b, rb;      /* its own, and one to recover */
    byte answer, failed, i, o;
#if MOVES
    byte claims, my_claim, found_next, found_epoch;
    bool asks; /* it has claimed the first partition, which has no position in the ledger */
#endif

start:
    atomic { /* Take the slot. */
        inc[slot]++;
        my_inc = inc[slot];
        prev = seq[slot];
        last = prev;
#ifndef WITHOUT_FINISHING_ITS_OWN
        look(slot, true)
#endif
    };

    do
    :: todo[0] > 0 || todo[1] > 0 ->
        r = (todo[0] > 0 -> 0 : 1);
        recover(r);
        r = 0
#if MOVES
    :: asks && todo[0] == 0 && todo[1] == 0 -> bring_back()
    :: !asks && todo[0] == 0 && todo[1] == 0 ->
#else
    :: else ->
#endif
       if
       :: ALL_DONE -> goto stop
#if MOVES
       :: atomic { moves > 0 && mine[0] && position[0] > 0 -> moves--; claim(0); asks = false }; move_out()
#endif
#ifdef WITHOUT_CLAIM_FIRST
       :: atomic { assign(0); look(0, COVERS(log[0], 0)); look(1, COVERS(log[1], 0)) }; atomic { claim(0) }
       :: atomic { assign(1); look(0, COVERS(log[0], 1)); look(1, COVERS(log[1], 1)) }; atomic { claim(1) }
#else
#ifdef WITHOUT_LOOK_AFTER_CLAIM
       :: atomic { assign(0); found_next = past_next; found_epoch = past_epoch }; atomic { claim(0) }
#else
       :: atomic { assign(0); claim(0) }
#endif
       :: atomic { assign(1); claim(1) }
#endif
       :: atomic { mine[0] && holder[0] != me -> release(0) } /* It is told; or its next commit fails. */
    :: atomic { mine[1] && holder[1] != me -> release(1) }
    :: atomic {
        (mine[0] && position[0] < EVENTS) || (mine[1] && position[1] < FEW) ->
        may_die();
        fill(0);
        fill(1);
#ifdef WITHOUT_FRESH_NUMBERS
        last = prev + 1;
#else
        last = (last > prev -> last : prev) + 1;
#endif
        /* Its log is inserted here, under a name never used before, and again until it is there. Then, the commit: */
        if
        :: commit(slot, my_inc, prev, last, b, answer)
        :: lost_replies > 0 -> /* carried out, or lost on its way */
            lost_replies--;
            if
            :: commit(slot, my_inc, prev, last, b, answer)
            :: true
            fi;
#ifdef WITHOUT_IDENTICAL_COMMITS
            b.to[0] = (COVERS(b, 0) -> EVENTS : 0);
            b.to[1] = (COVERS(b, 1) -> FEW : 0);
#endif
            answer = LOST
        :: late_commits > 0 && !under_way ->
            late_commits--;
            under_way = true;
            late_slot = slot;
            late_inc = my_inc;
            late_prev = prev;
            late_seq = last;
            copy(late, b);
            answer = NO
        fi
       };
       if
       :: answer == LOST -> /* the same again */
        atomic {
            may_die();
            commit(slot, my_inc, prev, last, b, answer)
        }
       :: else
       fi;
       if
       :: answer == NO -> /* Is that so? The ledger is read again. */
        atomic {
            may_die();
            if
            :: COMMITTED_BY(slot, my_inc, last) -> answer = YES
            :: else ->
                clear(b);
                failed++;
                assert(failed <= PATIENCE);
                if
                :: !SAME_INC(slot, my_inc) -> goto lost
                :: else
                fi;
                prev = seq[slot];
#ifndef WITHOUT_FINISHING_ITS_OWN
                look(slot, true);
#endif
                check_ownership(0);
                check_ownership(1)
            fi
        }
       :: else
       fi;
       if
       :: answer == YES ->
        atomic {
            answer = NO;
            failed = 0;
            was = prev;
            prev = last;
            position[0] = (COVERS(b, 0) -> b.to[0] : position[0]);
            position[1] = (COVERS(b, 1) -> b.to[1] : position[1]);
#ifdef WITHOUT_LOG_FIRST
            may_die();
            logged[slot] = true
#endif
        };
        apply(b, slot, was, last);
        finish(slot, last);
        d_step {
            clear(b);
            was = 0
        }
       :: else
       fi
       fi
    od;

dead: /* It comes back, or others do its work. */
    forget();
    if
    :: goto start
    :: atomic { alive > 1 -> alive--; goto stop }
    fi;
lost: /* Another took the slot. */
    forget();
    if
    :: atomic { takes > 0 -> takes-- }; goto start
    :: atomic { takes == 0 -> alive-- }
    fi;
stop:
    skip
}

#if RESETS
/* Sets the first partition back to its beginning, because its topic was created anew. */
active proctype operator()
{
end:
    do
    :: atomic {
        resets > 0 && !ALL_DONE ->
        resets--;
        committed_before[0] = next[0];
        topic[0]++;
        next[0] = 0;
        epoch[0]++;
        owner[0] = NOBODY;
        holder[0] = NOBODY
       }
    od
}
#endif

init
{
    byte p, n;
    atomic {
        run daemon(0, 0);
        run daemon(1, 1);
#if TWINS
        run daemon(2, 0);
#endif
    };
    timeout; /* When nothing moves any more, all has been counted. */
    d_step {
        assert(COUNTED_TO == EVENTS && next[1] == FEW);
        assert(!open[0] && !open[1]);
        do
        :: p < PARTITIONS ->
            n = 0;
            do
            :: n < END(p) ->
                assert(counted[CELL(p, topic[p], n)]);
                assert(topic[p] == 0 || n >= committed_before[p] || counted[CELL(p, 0, n)]);
                n++
            :: else -> break
            od;
            p++
        :: else -> break
        od
    }
}
