#include "aggregate/shard.h"

#include "aggregate/dimension.h"
#include "aggregate/mixed.h"
#include "aggregate/part.h"
#include "aggregate/raw_document.h"
#include "aggregate/sample.h"
#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdatomic.h>
#include <stdlib.h>
#include <xxhash.h>

#define NO_CELL           UINT32_MAX
#define SLOTS_MIN         1024
#define ARENA_CHUNK_BYTES ((size_t)256 << 10)

/* A slot of the hash table of series. A lookup compares the whole hash before it reads the key. Both tables
 * are no base/index.h, since the hot path prefetches their slots, and a slot leads to the series at once. */
struct slot {
    uint64_t hash;
    struct series *series; /* NULL: empty */
};

struct table {
    bool is_selective;    /* some events may not pass() */
    bool counts_and_sums; /* the first measures are a count and a sum of status or bytes */
    bool is_mixed;        /* there are other measures, a sample, or newest events */
    int plain_field;      /* the field, if it is the only dimension; -1: other dimensions */
    struct series *only;  /* the series of a report without dimensions; NULL: none yet */
    uint64_t filtered;    /* filtered events of the open batch that are not in the books yet */
    uint64_t late;        /* late events of the open batch that are not in the books yet */
    struct slot *slots;   /* power of two, at most 3/4 full */
    size_t slot_mask;
    size_t series_count;
    uint32_t *cell_index; /* (series, time) → cell number + 1; 0: empty. Power of two, half full */
    size_t cell_mask;
    uint64_t cells_a_ms; /* ceil(2^64 / cell_ms): a multiply-high divides by it, exactly for valid times */
    uint64_t end_ms;     /* end of valid times: later ones have no cell */
};

struct shard {
    const struct report *reports;
    size_t report_count;
    struct shard_limits limits;
    struct arena keys;
    struct table *tables;
    struct part *open;  /* the part being filled */
    struct part *spare; /* the other part; NULL while the writer has it */
    bool start_anew;    /* a limit of series or keys was reached: empty the tables once the part is back */
    struct part parts[2];
    char *scratch; /* scratch_bytes for the key of each event of a call */
    size_t scratch_bytes;
    uint64_t events;         /* events of the open batch that are not in the books yet */
    bool taken;              /* shard_take_books() was called since the last seal */
    const struct raw *raw;   /* NULL: events are only counted */
    bool draws;              /* a report has a sample, so `salt` is set */
    uint64_t salt;           /* of the partition that events come from: sample_salt() */
    bool keeps_newest;       /* a report keeps its newest events, so `prefix` is set */
    struct text prefix;      /* of the partition: raw_document_prefix() */
    struct recent_room room; /* working memory of mixed_add() */
};

static void table_init(struct table *t, const struct report *r)
{
    bool is_plain = r->dimension_count == 1 && r->dimensions[0].kind == DIMENSION_FIELD;
    uint64_t cell_ms = (uint64_t)report_cell_ms(r), end_ms = ((uint64_t)UINT32_MAX + 1) * cell_ms;
    *t = (struct table){.is_selective = r->condition_count > 0 || r->one_in > 1,
                        .counts_and_sums = r->begins_usual && r->one_in == 1,
                        .is_mixed = !r->begins_usual || r->measure_count > MIXED_USUAL || r->one_in > 1 ||
                                    r->newest > 0,
                        .plain_field = is_plain ? (int)r->dimensions[0].field : -1,
                        .slot_mask = SLOTS_MIN - 1,
                        .cell_mask = SLOTS_MIN - 1,
                        .cells_a_ms = UINT64_MAX / cell_ms + 1,
                        .end_ms = end_ms < CIVIL_END_MS ? end_ms : CIVIL_END_MS};
    t->slots = xtable(SLOTS_MIN, sizeof *t->slots);
    t->cell_index = xtable(SLOTS_MIN, sizeof *t->cell_index);
}

struct shard *shard_new(uint32_t number, const struct report *reports, size_t report_count,
                        const struct shard_limits *limits)
{
    ASSERT(report_count > 0 && limits->cells_max > 0 && limits->series_max > 0);
    struct shard *sh = xcalloc(1, sizeof *sh);
    sh->reports = reports;
    sh->report_count = report_count;
    sh->limits = *limits;
    arena_init(&sh->keys, ARENA_CHUNK_BYTES);
    sh->tables = xcalloc(report_count, sizeof *sh->tables);
    for (size_t i = 0; i < report_count; i++) {
        table_init(&sh->tables[i], &reports[i]);
        sh->draws |= reports[i].one_in > 1;
        sh->keeps_newest |= reports[i].newest > 0;
    }
    part_init(&sh->parts[0], number, reports, report_count);
    part_init(&sh->parts[1], number, reports, report_count);
    sh->open = &sh->parts[0];
    sh->spare = &sh->parts[1];
    sh->scratch_bytes = DIMENSION_KEY_BYTES(limits->dimension_bytes_max);
    sh->scratch = xmalloc(SHARD_EVENTS_MAX * sh->scratch_bytes);
    return sh;
}

void shard_free(struct shard *sh)
{
    if (sh == NULL)
        return;
    for (size_t i = 0; i < sh->report_count; i++) {
        free(sh->tables[i].slots);
        free(sh->tables[i].cell_index);
    }
    part_fini(&sh->parts[0]);
    part_fini(&sh->parts[1]);
    arena_fini(&sh->keys);
    text_fini(&sh->prefix);
    recent_room_fini(&sh->room);
    free(sh->tables);
    free(sh->scratch);
    free(sh);
}

static void grow_slots(struct table *t)
{
    size_t mask = (t->slot_mask + 1) * 2 - 1;
    struct slot *slots = xtable(mask + 1, sizeof *slots);
    for (size_t i = 0; i <= t->slot_mask; i++) {
        if (t->slots[i].series == NULL)
            continue;
        size_t at = t->slots[i].hash & mask;
        while (slots[at].series != NULL)
            at = (at + 1) & mask;
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->slot_mask = mask;
}

static struct series *add_series(struct shard *sh, size_t report, struct slot *slot, const struct passage *p)
{
    struct slice key = p->key;
    struct table *t = &sh->tables[report];
    struct part_report *pr = &sh->open->reports[report];
    ASSERT(key.len <= UINT32_MAX && t->series_count < NO_CELL);
    struct series *s = arena_add(&sh->keys, sizeof *s + key.len);
    s->number = (uint32_t)t->series_count++;
    s->last = NO_CELL;
    s->key_len = (uint32_t)key.len;
    if (key.len > 0)
        memcpy(s->key, key.ptr, key.len);
    *slot = (struct slot){p->hash, s};
    if (pr->added_count == 0)
        pr->first_added = s->number;
    pr->added = xgrow(pr->added, &pr->added_capacity, pr->added_count + 1, sizeof *pr->added);
    pr->added[pr->added_count++] = s;
    if (t->series_count * 4 > (t->slot_mask + 1) * 3)
        grow_slots(t);
    return s;
}

static inline struct series *find_series(struct shard *sh, size_t report, struct table *t,
                                         const struct passage *p)
{
    struct slot *slots = t->slots;
    size_t mask = t->slot_mask, at = p->hash & mask;
    for (struct series *s; (s = slots[at].series) != NULL; at = (at + 1) & mask) {
        if (LIKELY(slots[at].hash == p->hash) && s->key_len == p->key.len &&
            memcmp(s->key, p->key.ptr, s->key_len) == 0)
            return s;
    }
    return add_series(sh, report, &slots[at], p);
}

static inline size_t cell_hash(uint32_t series, uint32_t time)
{
    uint64_t h = ((uint64_t)series << 32 | time) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 32); /* the upper half depends on every bit of series and time */
}

static void grow_cell_index(struct table *t, const struct cells *cells)
{
    free(t->cell_index);
    t->cell_mask = (t->cell_mask + 1) * 2 - 1;
    t->cell_index = xtable(t->cell_mask + 1, sizeof *t->cell_index);
    for (size_t i = 0; i < cells->count; i++) {
        const struct cell *c = cells_at(cells, i);
        size_t at = cell_hash(c->series, c->time) & t->cell_mask;
        while (t->cell_index[at] != 0)
            at = (at + 1) & t->cell_mask;
        t->cell_index[at] = (uint32_t)i + 1;
    }
}

/* Finds the cell of another time than the series saw last, or begins it. Pre: there is room for one more. */
static struct cell *other_cell(struct table *t, struct cells *cells, struct series *s, uint32_t time,
                               size_t values)
{
    size_t at = cell_hash(s->number, time) & t->cell_mask;
    while (t->cell_index[at] != 0) {
        struct cell *c = cells_at(cells, t->cell_index[at] - 1);
        if (c->series == s->number && c->time == time) {
            s->last = t->cell_index[at] - 1;
            return c;
        }
        at = (at + 1) & t->cell_mask;
    }
    ASSERT(cells->count < NO_CELL - 1);
    s->last = (uint32_t)cells->count;
    t->cell_index[at] = s->last + 1;
    struct cell *c = cells_at(cells, cells->count++);
    c->series = s->number;
    c->time = time;
    if (values % 2 != 0)
        c->value[values - 1] = 0;
    for (size_t i = 1; i < values; i += 2) {
        c->value[i - 1] = c->value[i] = 0;
        __asm__ volatile(""); /* stops the compiler from calling memset() for a few columns */
    }
    if (cells->count * 2 > t->cell_mask)
        grow_cell_index(t, cells);
    return c;
}

static inline struct cell *find_cell(struct table *t, const struct report *r, struct cells *cells,
                                     struct series *s, uint32_t time)
{
    /* `last` may stem from a sealed batch, so check that the cell is this series'. */
    if (LIKELY(s->last < cells->count)) {
        struct cell *c = cells_at(cells, s->last);
        if (c->series == s->number && c->time == time)
            return c;
    }
    return other_cell(t, cells, s, time, report_cell_values(r));
}

static inline bool passes(const struct report *r, const struct event *ev, uint64_t salt)
{
    for (size_t i = 0; i < r->condition_count; i++) {
        if (!condition_holds(&r->conditions[i], ev))
            return false;
    }
    return r->one_in == 1 || sample_draws(salt, ev->order, r->one_in);
}

/* The time before which events are late. */
static inline int64_t late_before(const struct shard *sh, size_t report)
{
    const _Atomic int64_t *late_ms = sh->limits.late_ms;
    return late_ms != NULL ? atomic_load_explicit(&late_ms[report], memory_order_relaxed) : 0;
}

/* Adds to the usual measures, if the report begins with them. Sums saturate; EVENT_NUMBER_MAX leaves room for
 * 2^17 of the largest events in one cell. */
static inline void add_usual(const struct table *t, const struct report *r, const struct event *ev,
                             struct cell *c)
{
    if (UNLIKELY(!t->counts_and_sums))
        return;
    c->value[0]++;
    if (LIKELY(event_has(ev, r->measures[1].field)))
        c->value[1] = value_add(c->value[1], ev->number[r->measures[1].field]);
}

/* Adds to the other measures. All keys of a call are looked up before, so their scratch is free then. */
static inline void add_mixed(struct shard *sh, size_t report, const struct passage *passages, size_t count)
{
    const struct mixed mx = {.memory = &sh->open->sketch_memory,
                             .dimension_bytes_max = sh->limits.dimension_bytes_max,
                             .scratch = sh->scratch,
                             .place = text_slice(&sh->prefix),
                             .room = &sh->room};
    if (sh->tables[report].is_mixed)
        mixed_add(&mx, &sh->reports[report], passages, count);
}

/* The time of the event's cell: at_ms / cell_ms, as a multiplication. */
static inline uint32_t time_of(const struct table *t, const struct event *ev)
{
    ASSERT((uint64_t)ev->at_ms < t->end_ms);
    return (uint32_t)((unsigned __int128)(uint64_t)ev->at_ms * t->cells_a_ms >> 64);
}

/* Makes the key of an event, which has room in `scratch`. */
static inline struct slice key_of(const struct table *t, const struct report *r, const struct event *ev,
                                  size_t max_bytes, char *scratch)
{
    int field = t->plain_field;
    if (field >= 0 && dimension_is_plain(ev, (enum field)field, max_bytes))
        return ev->field[field];
    return dimension_key(r->dimensions, r->dimension_count, ev, max_bytes, scratch);
}

/* Does the report count the event? If not, notes why for the books. */
static inline bool is_let_in(struct table *t, const struct report *r, const struct event *ev, int64_t late_ms,
                             uint64_t salt)
{
    if (UNLIKELY(t->is_selective) && !passes(r, ev, salt)) {
        t->filtered++;
        return false;
    }
    if (UNLIKELY(ev->at_ms < late_ms)) {
        t->late++;
        return false;
    }
    return true;
}

/* Filters events, makes keys and hashes, and prefetches the slots. Returns how many events pass. */
static APART size_t start_passages(struct shard *sh, size_t report, const struct event *events, size_t count,
                                   struct passage *passages)
{
    const struct report *r = &sh->reports[report];
    struct table *t = &sh->tables[report];
    int64_t late_ms = late_before(sh, report);
    struct passage *p = passages;
    for (const struct event *ev = events; ev < events + count; ev++) {
        if (!is_let_in(t, r, ev, late_ms, sh->salt))
            continue;
        p->ev = ev;
        p->time = time_of(t, ev);
        p->key = key_of(t, r, ev, sh->limits.dimension_bytes_max,
                        sh->scratch + (size_t)(p - passages) * sh->scratch_bytes);
        p->hash = XXH3_64bits(p->key.ptr, p->key.len);
        __builtin_prefetch(&t->slots[p->hash & t->slot_mask]);
        p++;
    }
    return (size_t)(p - passages);
}

/* Without the assembler, which says nothing, the compiler takes the function for one without effect. */
static APART void prefetch_series(const struct table *t, const struct passage *passages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct series *s = t->slots[passages[i].hash & t->slot_mask].series;
        __builtin_prefetch(s);
        __builtin_prefetch((const void *)((uintptr_t)s + 64)); /* as an integer, since s may be NULL */
        __asm__ volatile("");
    }
}

static APART void find_all_series(struct shard *sh, size_t report, struct passage *passages, size_t count)
{
    struct table *t = &sh->tables[report];
    const struct cells *cells = &sh->open->reports[report].cells;
    for (struct passage *p = passages; p < passages + count; p++) {
        struct series *s = p->series = find_series(sh, report, t, p);
        if (s->last < cells->count)
            __builtin_prefetch(cells_at(cells, s->last), 1);
        __builtin_prefetch(&t->cell_index[cell_hash(s->number, p->time) & t->cell_mask], 1);
    }
}

/* The cells of a call, which has room for one more for each of its events: so no cell moves within it. */
static inline struct cells *cells_of_call(struct shard *sh, size_t report, size_t events)
{
    struct cells *cells = &sh->open->reports[report].cells;
    cells->data = xgrow(cells->data, &cells->capacity, cells->count + events, cells->stride);
    return cells;
}

static APART void add_to_cells(struct shard *sh, size_t report, struct passage *passages, size_t count)
{
    const struct report *r = &sh->reports[report];
    struct table *t = &sh->tables[report];
    struct cells *cells = cells_of_call(sh, report, count);
    for (struct passage *p = passages; p < passages + count; p++) {
        p->cell = find_cell(t, r, cells, p->series, p->time);
        add_usual(t, r, p->ev, p->cell);
    }
    add_mixed(sh, report, passages, count);
}

/* Counts in a report without dimensions, which has one series: no lookup. */
static APART void add_to_only(struct shard *sh, size_t report, const struct event *events, size_t count,
                              struct passage *passages)
{
    const struct report *r = &sh->reports[report];
    struct table *t = &sh->tables[report];
    struct cells *cells = cells_of_call(sh, report, count);
    struct passage *p = passages;
    if (t->only == NULL)
        t->only = find_series(sh, report, t, &(struct passage){.key = {"", 0}});
    int64_t late_ms = late_before(sh, report);
    for (const struct event *ev = events; ev < events + count; ev++) {
        if (!is_let_in(t, r, ev, late_ms, sh->salt))
            continue;
        p->ev = ev;
        p->cell = find_cell(t, r, cells, t->only, time_of(t, ev));
        add_usual(t, r, ev, p++->cell);
    }
    add_mixed(sh, report, passages, (size_t)(p - passages));
}

void shard_set_source(struct shard *sh, const struct range *of, const struct raw *raw)
{
    bool is_on = raw != NULL && raw->kind != RAW_OFF;
    ASSERT(!is_on || sh->limits.raw_bytes_max > 0);
    sh->raw = is_on ? raw : NULL;
    if (is_on || sh->keeps_newest)
        raw_document_prefix(&sh->prefix, of->source, of->partition);
    if (UNLIKELY(sh->draws))
        sh->salt = sample_salt(of->source, of->partition);
}

void shard_add(struct shard *sh, const struct event *events, size_t count)
{
    struct passage passages[SHARD_EVENTS_MAX];
    if (UNLIKELY(count == 0))
        return; /* not even the series of a report without dimensions is added: the part stays empty */
    ASSERT(count <= SHARD_EVENTS_MAX);
    ASSERT(!sh->draws || sh->salt != 0); /* it draws by the source */
    ASSERT(!sh->keeps_newest || sh->prefix.len > 0);
    sh->events += count;
    for (size_t i = 0; UNLIKELY(sh->raw != NULL) && i < count; i++)
        raw_document_add(&sh->open->raw, sh->raw, text_slice(&sh->prefix), &events[i]);
    for (size_t i = 0; i < sh->report_count; i++) {
        if (sh->reports[i].dimension_count == 0) {
            add_to_only(sh, i, events, count, passages);
            continue;
        }
        size_t passing = start_passages(sh, i, events, count, passages);
        prefetch_series(&sh->tables[i], passages, passing);
        find_all_series(sh, i, passages, passing);
        add_to_cells(sh, i, passages, passing);
    }
}

void shard_reject(struct shard *sh, enum reject_reason reason)
{
    ++*books_source(&sh->open->books, BOOK_CONSUMED);
    ++*books_source(&sh->open->books, BOOK_REJECTED + (int)reason);
}

void shard_note_directive(struct shard *sh)
{
    struct books *b = &sh->open->books;
    ++*books_source(b, BOOK_CONSUMED);
    ++*books_source(b, BOOK_PARSED);
    for (size_t i = 0; i < sh->report_count; i++) {
        ++*books_report(b, i, BOOK_REPORT_PARSED);
        ++*books_report(b, i, BOOK_FILTERED);
    }
}

static bool has_too_many_series(const struct shard *sh)
{
    for (size_t i = 0; i < sh->report_count; i++) {
        if (sh->tables[i].series_count >= sh->limits.series_max)
            return true;
    }
    return arena_bytes(&sh->keys) > sh->limits.key_bytes_max;
}

bool shard_is_full_of_raw(const struct shard *sh)
{
    return sh->limits.raw_bytes_max > 0 && sh->open->raw.len >= sh->limits.raw_bytes_max;
}

bool shard_is_full(const struct shard *sh)
{
    for (size_t i = 0; i < sh->report_count; i++) {
        if (sh->open->reports[i].cells.count >= sh->limits.cells_max)
            return true;
    }
    return has_too_many_series(sh) ||
           arena_bytes(&sh->open->sketch_memory) > sh->limits.sketch_bytes_max + PART_SKETCH_CHUNK_BYTES ||
           shard_is_full_of_raw(sh);
}

bool shard_is_empty(const struct shard *sh)
{
    return sh->events == 0 && sh->open->books.entries[BOOK_CONSUMED] == 0 && !sh->taken;
}

/* Adds the events to the books of the open part. Rejects are there already. */
static void close_books(struct shard *sh)
{
    struct books *b = &sh->open->books;
    *books_source(b, BOOK_CONSUMED) += (int64_t)sh->events;
    *books_source(b, BOOK_PARSED) += (int64_t)sh->events;
    for (size_t i = 0; i < sh->report_count; i++) {
        *books_report(b, i, BOOK_REPORT_PARSED) += (int64_t)sh->events;
        struct table *t = &sh->tables[i];
        *books_report(b, i, BOOK_FILTERED) += (int64_t)t->filtered;
        *books_report(b, i, BOOK_LATE) += (int64_t)t->late;
        *books_report(b, i, BOOK_COUNTED) += (int64_t)(sh->events - t->filtered - t->late);
        t->filtered = t->late = 0;
    }
    sh->events = 0;
    ASSERT(books_balance(b));
}

void shard_take_books(struct shard *sh, struct books *into)
{
    close_books(sh);
    books_add(into, &sh->open->books);
    books_clear(&sh->open->books);
    sh->taken = true;
}

struct part *shard_seal(struct shard *sh)
{
    close_books(sh);
    ASSERT(sh->spare != NULL);
    struct part *sealed = sh->open;
    sh->open = sh->spare;
    sh->spare = NULL;
    sh->taken = false;
    sh->open->epoch = sealed->epoch;
    sh->start_anew = has_too_many_series(sh);
    for (size_t i = 0; i < sh->report_count; i++) {
        struct table *t = &sh->tables[i];
        memset(t->cell_index, 0, (t->cell_mask + 1) * sizeof *t->cell_index);
    }
    return sealed;
}

/* Empties the tables and begins a new epoch. Pre: no part refers to the keys any more. */
static void forget_series(struct shard *sh)
{
    for (size_t i = 0; i < sh->report_count; i++) {
        struct table *t = &sh->tables[i];
        memset(t->slots, 0, (t->slot_mask + 1) * sizeof *t->slots);
        t->series_count = 0;
        t->only = NULL;
    }
    arena_reset(&sh->keys);
    sh->open->epoch++;
    sh->start_anew = false;
}

static size_t power_above(size_t n)
{
    size_t power = SLOTS_MIN;
    while (power <= n)
        power *= 2;
    return power;
}

void shard_give_back(struct shard *sh, struct part *part)
{
    ASSERT(sh->spare == NULL && (part == &sh->parts[0] || part == &sh->parts[1]) && part != sh->open);
    part_clear(part);
    if (part->raw.capacity > power_above(sh->limits.raw_bytes_max))
        text_fini(&part->raw); /* larger than expected, as after long messages */
    sh->spare = part;
    if (sh->start_anew && shard_is_empty(sh))
        forget_series(sh);
}

bool shard_must_wait(const struct shard *sh)
{
    return sh->start_anew;
}

size_t shard_bytes(const struct shard *sh)
{
    size_t bytes = arena_bytes(&sh->keys) + part_bytes(&sh->parts[0]) + part_bytes(&sh->parts[1]);
    for (size_t i = 0; i < sh->report_count; i++) {
        const struct table *t = &sh->tables[i];
        bytes += (t->slot_mask + 1) * sizeof(struct slot) + (t->cell_mask + 1) * sizeof(uint32_t);
    }
    return bytes;
}

size_t shard_bytes_max(const struct report *reports, size_t report_count, const struct shard_limits *limits)
{
    size_t bytes = limits->key_bytes_max + ARENA_CHUNK_BYTES, sketches = 0;
    if (limits->raw_bytes_max > 0)
        bytes += 2 * power_above(limits->raw_bytes_max); /* both parts */
    for (size_t i = 0; i < report_count; i++) {
        sketches += reports[i].sketch_count + (reports[i].newest > 0);
        size_t series = reports[i].dimension_count > 0 ? limits->series_max : 1;
        size_t cells = power_above(limits->cells_max) * report_cell_bytes(&reports[i]);
        bytes += power_above(series * 4 / 3) * sizeof(struct slot);
        bytes += power_above(limits->cells_max * 2) * sizeof(uint32_t);
        bytes += 2 * (cells + power_above(series) * sizeof(struct series *)); /* both parts */
    }
    return bytes + (sketches > 0 ? 2 * (limits->sketch_bytes_max + PART_SKETCH_CHUNK_BYTES) : 0);
}
