/* rollup.pml - how a year becomes what its month is, by writes of single documents.
 *
 * The protocol of docs/LEDGER.md, "Rolling up", as the steps that a server sees: an `atomic` is one request for one
 * document. Between any two of them everything else may happen.
 *
 * World   : one document of a month, and one of its year: all others go the same way, each for itself. Batches are
 *           committed at any time; one whose writer dies, and that another recovers, is a batch that rests for long. A
 *           lease may run out at any time, so any roller takes it at any time; who had it goes on at any later time,
 *           or never. That each batch is in the month once is ledger.pml's.
 * Asserted: a reader misses nothing that was done when it began, and finds nothing twice (reader); when nothing
 *           moves any more, one more roll makes the year what the month is (init).
 * Variants: -DWITHOUT_… takes one rule away, and then an assertion must fail. model.py knows what is expected.
 */
#ifndef BATCHES
#define BATCHES 2
#endif
#ifndef ROLLERS
#define ROLLERS 2
#endif
/* How often each of them takes the lease. */
#ifndef TURNS
#define TURNS 1
#endif

#define BIT(b)      (1 << (b))
/* How often a batch is in a month's value: two bits each. */
#define TIMES(v, b) (((v) >> (2 * (b))) & 3)

/* ---- the ledger */
byte open;

/* ---- the stamps: one document */
byte written, rolled, fence;

/* ---- the document of the month, and that of the year */
byte month;
byte year, year_fence;
bool year_exists;

/* ---- what the model knows, and nobody else */
byte done;

/* ---- the rules that variants are without */
#ifdef WITHOUT_GUARD
#define MATCHES year_exists
#else
#define MATCHES (year_exists && year_fence < f)
#endif

#ifdef WITHOUT_SETTING
#define SET_YEAR year = (is_due -> year + value - before : year) /* what is new is added */
#else
#define SET_YEAR year = (is_due -> value : year)
#endif

#ifdef WITHOUT_RAISING_THE_FENCE
#define NEXT_FENCE 1
#else
#define NEXT_FENCE (fence + 1)
#endif

#ifdef WITHOUT_FENCE_AT_THE_END
#define HELD true
#else
#define HELD (fence == f)
#endif

/* ---- a batch */

inline stamp()
{
    written++
}

inline count()
{
    month = month + BIT(2 * b)
}

/* By its writer, or from any step on by those that recover it: what another has done they find applied. */
proctype batch(byte b)
{
    open = open | BIT(b); /* committed */
#ifdef WITHOUT_MARKING_BEFORE_DONE
    count();
#else
    if
    :: stamp();
       count()
    :: count();
       stamp()
    fi;
#endif
    atomic {
        open = open & ~BIT(b);
        done = done | BIT(b)
    };
#ifdef WITHOUT_MARKING_BEFORE_DONE
    stamp()
#endif
}

/* ---- rolling up */

inline take_lease()
{
    atomic {
        fence = NEXT_FENCE;
        f = fence;
        n = written
    }
}

inline look()
{
    wanted = open
}

/* An upsert is a look and an insert; another may insert in between. */
inline upsert()
{
    atomic {
        is_duplicate = !(MATCHES);
        if
        :: !is_duplicate ->
            SET_YEAR;
            year_fence = f
        :: else
        fi
    };
    if
    :: is_duplicate ->
        atomic {
            is_duplicate = year_exists;
            if
            :: !is_duplicate ->
                SET_YEAR;
                year_fence = f;
                year_exists = true
            :: else
            fi
        }
    :: else
    fi
}

inline roll()
{
#ifdef WITHOUT_LOOKING_AFTER_N
    look();
    take_lease();
#else
    take_lease();
    look();
#endif
#ifndef WITHOUT_WAITING
    !(open & wanted);
#endif
#ifdef WITHOUT_SETTING
    before = year;
#endif
    atomic {
        value = month;
        wanted = 0
    };
    upsert();
#ifndef WITHOUT_DUPLICATE_KEY_RULE
    if
    :: is_duplicate -> upsert()
    :: else
    fi;
#endif
#ifdef WITHOUT_N_AS_IT_BEGAN
    n = written;
#endif
    atomic {
        if
        :: HELD && is_due -> rolled = n
        :: else
        fi;
        f = 0;
        n = 0;
        wanted = 0;
        value = 0;
        before = 0;
        is_duplicate = false
    }
}

proctype roller()
{
    byte f, n, wanted, value, before, turn;
    bool is_duplicate, is_due;
    do
    :: turn < TURNS ->
        turn++;
        if
        :: is_due = true
        :: is_due = false /* other months of the year are, and its document is theirs, too */
        fi;
        roll()
    :: break /* or it is never heard of again */
    od
}

/* ---- who reads a chart */

#ifdef WITHOUT_MARKS_FIRST
#define READ_EARLY value = year
#define READ_YEAR  skip
#else
#define READ_EARLY skip
#define READ_YEAR  value = year
#endif

proctype reader()
{
    byte were_done, value, b;
    bool is_rolled;
    READ_EARLY;
    atomic {
        were_done = done;
        is_rolled = written == rolled
    };
    atomic {
        if
        :: is_rolled -> READ_YEAR
        :: else -> value = month
        fi;
        do
        :: b < BATCHES ->
            assert(!(were_done & BIT(b)) || TIMES(value, b) > 0);
            assert(TIMES(value, b) <= 1);
            b++
        :: else -> break
        od;
        b = 0;
        value = 0;
        were_done = 0;
        is_rolled = false
    }
}

#if defined(WITHOUT_WRITTEN_KEPT) || defined(WITHOUT_FENCE_KEPT)
/* Sets back to nothing what is said to go up only. */
active proctype another_hand()
{
    if
#ifdef WITHOUT_FENCE_KEPT
    :: fence = 0
#else
    :: written = 0
#endif
    :: true
    fi
}
#endif

init
{
    byte f, n, wanted, value, before, i;
    bool is_duplicate, is_due = true;
    atomic {
        do
        :: i < BATCHES ->
            run batch(i);
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < ROLLERS ->
            run roller();
            i++
        :: else -> break
        od;
        i = 0;
        run reader()
    };
    timeout; /* Nothing moves any more. */
    roll();
    assert(written == rolled && year == month)
}
