/* live.pml - how a reader ranks an open period by a group's sum, while batches are applied: docs/LEDGER.md,
 * "Ranking open periods", as the steps that a server sees. An `atomic` that touches the store is one request
 * for one document. Between any two of them everything else may happen.
 *
 * World   : a group of two series: `known`, whose document the reader reads, and `unknown`, whose document it
 *           does not. SLOTS slots with BATCHES batches each; a batch counts for either, counts for `known` in
 *           another period, takes a count of `known` out, or is of a version without sums. Each batch is
 *           applied in two orders, by its writer and, of the first slot, by another that recovers it, as slowly
 *           as they like. ledger.pml has the rest.
 * Asserted: if the reader believes its bound, `unknown` has no more than that, by the batches in the sum.
 * Variants: -DWITHOUT_… takes one rule away, and then the assertion must fail. model.py knows what is expected.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef BATCHES
#define BATCHES 2
#endif
#define NUMBERS (BATCHES + 1)

#define KNOWN   1 /* bits of a batch: what it changes */
#define UNKNOWN 2
#define PERIOD  4 /* the period's document, as every batch with counts of the period does */
#define TAKES   8
#define OLD     16 /* its writer knows no sums */

typedef slot {
    byte seq;           /* number of its last batch; 0: none */
    bool open;          /* that one is committed, and not done */
    byte does[NUMBERS]; /* by number */
};
slot slots[SLOTS];

/* Documents: a value, and the last batch of each slot. */
byte known, unknown, sum;
byte in_known[SLOTS], in_unknown[SLOTS], in_sum[SLOTS];
byte written, batches;
/* Of the batches in the sum, not visible to anybody: the value of `unknown`. */
byte unknown_in_sum;

inline apply_known(s, n, d)
{
    atomic {
        if
        :: (d & KNOWN) && in_known[s] < n ->
            if
            :: d & TAKES -> known--
            :: (d & PERIOD) && !(d & TAKES) -> known++
            :: !(d & PERIOD) -> skip
            fi;
            in_known[s] = n
        :: else
        fi
    }
}

inline apply_unknown(s, n, d)
{
    atomic {
        if
        :: (d & UNKNOWN) && in_unknown[s] < n ->
            unknown++;
            in_unknown[s] = n
        :: else
        fi
    }
}

inline apply_sum(s, n, d)
{
    atomic {
        if
        :: (d & PERIOD) && in_sum[s] < n ->
            written++;
            if
            :: d & TAKES ->
#ifdef WITHOUT_LEAVING_WHAT_TAKES
                batches++;
                sum--
#endif
                skip
            :: d & OLD -> unknown_in_sum++
            :: !(d & (TAKES | OLD)) ->
                batches++;
                sum = sum + (d & KNOWN) + ((d & UNKNOWN) >> 1);
                unknown_in_sum = unknown_in_sum + ((d & UNKNOWN) >> 1)
            fi;
            in_sum[s] = n
        :: else
        fi
    }
}

/* Applies the open batch of the slot, in any order, and marks it done. */
inline finish(s)
{
    atomic {
        n = slots[s].seq;
        d = slots[s].does[n]
    };
    if
    :: skip; apply_known(s, n, d); apply_unknown(s, n, d); apply_sum(s, n, d)
    :: skip; apply_sum(s, n, d); apply_unknown(s, n, d); apply_known(s, n, d)
    fi;
    atomic {
        if
        :: slots[s].seq == n -> slots[s].open = false
        :: else
        fi;
        n = 0;
        d = 0
    }
}

proctype writer(byte s)
{
    byte n, d;
    do
    :: atomic {
        !slots[s].open && slots[s].seq < BATCHES ->
        if
        :: d = KNOWN | PERIOD
        :: d = UNKNOWN | PERIOD
        :: d = KNOWN
        :: d = UNKNOWN | PERIOD | OLD
        :: known > 0 -> d = KNOWN | PERIOD | TAKES
        fi;
        slots[s].seq++;
        slots[s].does[slots[s].seq] = d;
        slots[s].open = true
       };
       finish(s)
    :: slots[s].seq == BATCHES -> break
    od
}

/* Another that recovers one batch of the slot. */
proctype recovery(byte s)
{
    byte n, d;
    if
    :: slots[s].open -> finish(s)
    :: slots[s].seq == BATCHES -> skip
    fi
}

inline read_sum()
{
    atomic {
        has_sum = sum;
        has_unknown = unknown_in_sum;
        is_whole = (written == batches);
        for (i : 0 .. SLOTS - 1) {
            has[i] = in_sum[i]
        }
    }
}

inline read_ledger()
{
    atomic {
        for (i : 0 .. SLOTS - 1) {
#ifdef WITHOUT_OPEN_IS_NOT_DONE
            done[i] = slots[i].seq
#else
            done[i] = (slots[i].open -> slots[i].seq - 1 : slots[i].seq)
#endif
        }
    }
}

inline compare()
{
    covers = true;
    for (i : 0 .. SLOTS - 1) {
        if
        :: needs[i] > has[i] && needs[i] > done[i] -> covers = false
        :: else
        fi
    }
}

proctype reader()
{
    byte i, got, has_sum, has_unknown;
    byte needs[SLOTS], has[SLOTS], done[SLOTS];
    bool is_whole, covers;
    atomic {
        got = known;
        for (i : 0 .. SLOTS - 1) {
            needs[i] = in_known[i]
        }
    };
    read_sum();
    atomic { compare() };
    if
    :: !covers ->
#ifdef WITHOUT_LEDGER_FIRST
        read_sum();
        read_ledger();
#else
        read_ledger();
        read_sum();
#endif
        atomic { compare() }
    :: else
    fi;
#ifdef WITHOUT_COMPARING
    covers = true;
#endif
#ifdef WITHOUT_WHOLE_SUMS
    is_whole = true;
#endif
    if
    :: covers && is_whole -> assert(got + has_unknown <= has_sum)
    :: else
    fi
}

init {
    byte s;
    atomic {
        for (s : 0 .. SLOTS - 1) {
            run writer(s)
        };
        run recovery(0);
        run reader();
        s = 0
    }
}
