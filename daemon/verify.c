#include "daemon/verify.h"

#include "aggregate/batch.h"
#include "base/check.h"
#include "base/mem.h"
#include "ingest/reader.h"

#include <inttypes.h>
#include <stdlib.h>

#define OTHER UINT32_MAX /* the series `other`, in tables of the recount's numbers */

#define AGAIN_MAX 3

void verify_init(struct verify *v, const struct config *config, struct store *store, FILE *out)
{
    *v = (struct verify){.config = config, .store = store, .out = out};
    v->recounts = xcalloc(store->report_count, sizeof *v->recounts);
    for (size_t r = 0; r < store->report_count; r++)
        recount_init(&v->recounts[r], &store->reports[r], (size_t)config->limits.dimension_bytes_max);
}

void verify_fini(struct verify *v)
{
    for (size_t r = 0; r < v->store->report_count; r++)
        recount_fini(&v->recounts[r]);
    free(v->recounts);
}

static bool may_print(struct verify *v)
{
    if (v->differences++ == VERIFY_PRINTED_MAX)
        fputs("… and more\n", v->out);
    return v->differences <= VERIFY_PRINTED_MAX;
}

static void add_stretch(struct verify_part *b, struct verify_stretch s)
{
    b->stretches = xgrow(b->stretches, &b->stretch_capacity, b->stretch_count + 1, sizeof *b->stretches);
    b->stretches[b->stretch_count++] = s;
}

static void read_source_entry(struct verify_part *b, const char *entry, int64_t value)
{
    char name[BOOK_NAME_BYTES];
    struct verify_stretch s = {.report = -1, .to = value};
    if (sscanf(entry, "latest.%" SCNd64 ".%" SCNd64, &s.from, &s.latest_ms) == 2)
        add_stretch(b, s);
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        if (strcmp(entry, books_source_name(i, name)) == 0)
            *books_source(&b->stored, i) = value;
    }
}

static void read_report_entry(struct verify_part *b, int report, const char *entry, int64_t value)
{
    struct verify_stretch s = {.report = report, .to = value};
    if (strcmp(entry, "since") == 0)
        b->since[report] = value;
    else if (strcmp(entry, "until") == 0)
        b->until[report] = value;
    else if (sscanf(entry, "gap.%" SCNd64, &s.from) == 1)
        add_stretch(b, s);
    for (int i = 0; i < BOOK_REPORT_COUNT; i++) {
        if (strcmp(entry, books_report_name(i)) == 0)
            *books_report(&b->stored, (size_t)report, i) = value;
    }
}

static bool read_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct verify_part *b = context;
    if (strcmp(source, b->range->source) != 0 || strcmp(partition, b->range->partition) != 0)
        return true;
    int n = store_find_report(b->v->store, slice_text(report));
    if (report[0] == '\0')
        read_source_entry(b, entry, value);
    else if (n >= 0)
        read_report_entry(b, n, entry, value);
    return true;
}

static const struct verify_stretch *find_stretch(const struct verify_part *b, int report, int64_t offset)
{
    for (size_t i = 0; i < b->stretch_count; i++) {
        const struct verify_stretch *s = &b->stretches[i];
        if (s->report == report && offset >= s->from && offset < s->to)
            return s;
    }
    return NULL;
}

/* Where no record was in the future, none is now. */
static bool was_future(const struct verify_part *b, int64_t at_ms, const struct record *r)
{
    const struct verify_stretch *s = find_stretch(b, -1, r->offset);
    return s != NULL && at_ms > record_latest(r, s->latest_ms, b->v->config->limits.future_max_ms);
}

/* What one event came to, or why none did. */
static void recount_one(struct verify_part *b, const struct event *ev, struct reject why,
                        const struct record *record)
{
    struct verify *v = b->v;
    int64_t offset = record->offset;
    if (ev != NULL && was_future(b, ev->at_ms, record)) {
        why.reason = REJECT_FUTURE;
        ev = NULL;
    }
    v->events++;
    ++*books_source(&b->recounted, BOOK_CONSUMED);
    ++*books_source(&b->recounted, ev != NULL ? BOOK_PARSED : BOOK_REJECTED + (int)why.reason);
    for (size_t r = 0; ev != NULL && r < v->store->report_count; r++) {
        if (b->since[r] < 0 || offset < b->since[r] || offset >= b->until[r] ||
            find_stretch(b, (int)r, offset) != NULL)
            continue;
        ++*books_report(&b->recounted, r, BOOK_REPORT_PARSED);
        ++*books_report(&b->recounted, r, recount_add(&v->recounts[r], ev) ? BOOK_COUNTED : BOOK_FILTERED);
    }
}

void verify_record(struct verify_part *b, struct chain *chain, const struct record *r)
{
    struct event ev;
    struct reject why = {0};
    struct slice bytes;
    chain_start(chain, r);
    uint32_t element = 0;
    for (enum chain_result what; (what = chain_next(chain, &ev, &why, &bytes)) != CHAIN_END; element++) {
        ev.order = record_order(r->offset, element);
        recount_one(b, what == CHAIN_EVENT ? &ev : NULL, why, r);
    }
    chain_flush(chain);
}

static void recount_block(struct verify_part *b, struct chain *chain, const struct block *block)
{
    for (const char *p = block->data, *end; p < block->data + block->len; p = end + 1) {
        struct record r = {.offset = block->from + (p - block->data), .timestamp_ms = -1};
        end = memchr(p, '\n', (size_t)(block->data + block->len - p));
        r.value = slice_of(p, (size_t)(end - p));
        if (r.offset >= b->range->to)
            continue;
        if (r.value.len > (size_t)b->v->config->limits.line_max)
            recount_one(b, NULL, (struct reject){REJECT_TOO_LONG, 0}, &r);
        else
            verify_record(b, chain, &r);
    }
}

static bool recount_file(struct verify_part *b, const char *path, const struct decode *decode, struct err *e)
{
    size_t line_max = (size_t)b->v->config->limits.line_max;
    struct input *in = input_open(path, e);
    struct block block;
    enum reader_result result = READER_BLOCK;
    if (in == NULL)
        return false;
    struct reader *rd = reader_new(in, line_max, LAST_LINE_TAKE);
    struct chain *chain = chain_new(decode, line_max);
    block_init(&block, line_max);
    while (reader_offset(rd) < b->range->to && (result = reader_next(rd, &block, -1, e)) == READER_BLOCK)
        recount_block(b, chain, &block);
    block_fini(&block);
    chain_free(chain);
    reader_free(rd);
    input_close(in);
    return result != READER_FAILED || err_prefix(e, "%s", path);
}

static void compare_entry(struct verify *v, const struct range *range, const char *report, const char *entry,
                          int64_t stored, int64_t recounted)
{
    v->compared++;
    if (stored != recounted && may_print(v))
        fprintf(v->out, "%s: books%s%s: %s is %" PRId64 ", recounted %" PRId64 "\n", range->label,
                report[0] != '\0' ? " of " : "", report, entry, stored, recounted);
}

static void compare_books(struct verify_part *b)
{
    struct verify *v = b->v;
    char name[BOOK_NAME_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++)
        compare_entry(v, b->range, "", books_source_name(i, name), *books_source(&b->stored, i),
                      *books_source(&b->recounted, i));
    for (size_t r = 0; r < v->store->report_count; r++) {
        /* Were one called late that was not, the slots would show it. */
        int64_t late = *books_report(&b->stored, r, BOOK_LATE);
        *books_report(&b->recounted, r, BOOK_LATE) += late;
        *books_report(&b->recounted, r, BOOK_COUNTED) -= late;
        for (int i = 0; i < BOOK_REPORT_COUNT; i++)
            compare_entry(v, b->range, v->store->reports[r].name, books_report_name(i),
                          *books_report(&b->stored, r, i), *books_report(&b->recounted, r, i));
    }
    if (!books_balance(&b->stored) && may_print(v))
        fprintf(v->out, "%s: the books do not balance\n", b->range->label);
}

bool verify_begin(struct verify_part *b, struct verify *v, const struct position *position, struct err *e)
{
    size_t count = v->store->report_count;
    *b = (struct verify_part){.v = v, .range = &position->range};
    b->since = xcalloc(count, sizeof *b->since);
    b->until = xcalloc(count, sizeof *b->until);
    for (size_t r = 0; r < count; r++)
        b->since[r] = -1;
    books_init(&b->stored, count);
    books_init(&b->recounted, count);
    if (store_books(v->store, read_book, b, e))
        return true;
    verify_end(b, false);
    return false;
}

void verify_end(struct verify_part *b, bool whole)
{
    if (whole)
        compare_books(b);
    books_fini(&b->recounted);
    books_fini(&b->stored);
    free(b->since);
    free(b->until);
    free(b->stretches);
}

bool verify_file(struct verify *v, const char *path, const struct decode *decode,
                 const struct position *position, struct err *e)
{
    struct verify_part b;
    if (!verify_begin(&b, v, position, e))
        return false;
    bool good = recount_file(&b, path, decode, e);
    verify_end(&b, good);
    return good;
}

/* One report at one length of slot. */
struct comparison {
    struct verify *v;
    const struct recount *recount;
    enum span slot;
    const uint32_t *number_of; /* the recount's, by the store's */
    uint32_t number_count;
    struct recount_cells stored, recounted;
    struct recount_cells
        totals; /* recounted, of the slots in which `other` holds anything: as series OTHER */
};

static void take_stored(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    struct comparison *c = context;
    uint32_t number = series < c->number_count ? c->number_of[series] : OTHER - 1;
    struct recount_cell *to = recount_cells_get(&c->stored, number, slot_ms);
    report_merge(c->recount->report, to->columns, values);
}

static const char *value_text(const struct measure *m, const int64_t *columns, char buf[NUMBER_BYTES])
{
    int128 value;
    return measure_value(m, columns, &value) ? number_text(value, buf) : "nothing";
}

static void print_difference(struct comparison *c, const struct recount_cell *at, const struct measure *m,
                             const int64_t *stored, const int64_t *recounted)
{
    char iso[CIVIL_ISO_BYTES], have[NUMBER_BYTES], want[NUMBER_BYTES];
    struct slice key = at->series < c->recount->series_count
                           ? c->recount->key_of[at->series]
                           : slice_text(at->series == OTHER ? STORE_OTHER_KEY : "(unknown)");
    const char *stored_text = value_text(m, stored, have), *recounted_text = value_text(m, recounted, want);
    if (may_print(c->v))
        fprintf(c->v->out, "%s \"%.*s\" %s %s by %s: stored %s, recounted %s%s\n", c->recount->report->name,
                SLICE_ARGS(key), m->name, civil_iso(at->slot_ms, iso), span_name(c->slot), stored_text,
                recounted_text, strcmp(stored_text, recounted_text) == 0 ? " of other events" : "");
}

static struct recount_cell *other_cell(struct comparison *c, int64_t slot_ms)
{
    if (recount_cells_find(&c->stored, OTHER, slot_ms) == NULL)
        return NULL;
    return recount_cells_get(&c->stored, OTHER, slot_ms);
}

static const int64_t nothing[REPORT_COLUMNS_MAX];

static bool are_equal(const struct measure *m, const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, measure_column_count(m) * sizeof *a) == 0;
}

/* Would `b` change nothing in `a`? */
static bool holds_all_of(const struct measure *m, const int64_t *a, const int64_t *b)
{
    int64_t both[MEASURE_COLUMNS_MAX];
    memcpy(both, a, measure_column_count(m) * sizeof *a);
    measure_merge(m, both, b);
    return are_equal(m, both, a);
}

/* a - b, whatever a damaged store holds. */
static int64_t less(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Sums: what is missing is taken off `other`, which must be left with nothing in the end. Where numbers may
 * be below 0, that is the only test: what is missing may be, too. */
static bool take_missing(const struct measure *m, const int64_t *stored, const int64_t *recounted,
                         int64_t *other)
{
    for (size_t i = 0; i < measure_column_count(m); i++) {
        int64_t missing = less(recounted[i], stored[i]);
        if (measure_is_additive(m) && (missing < 0 || other[i] < missing))
            return false;
        other[i] = less(other[i], missing);
    }
    if (measure_is_additive(m))
        return true;
    int64_t rest = other[1] % EVENT_SCALE, carry = other[1] / EVENT_SCALE - (rest < 0);
    other[0] = less(other[0], -carry);
    other[1] = rest < 0 ? rest + EVENT_SCALE : rest;
    return true;
}

static void compare_series(struct comparison *c, const struct recount_cell *want)
{
    const struct report *r = c->recount->report;
    const struct recount_cell *have = recount_cells_find(&c->stored, want->series, want->slot_ms);
    struct recount_cell *other = other_cell(c, want->slot_ms);
    c->v->compared++;
    if (other != NULL)
        report_merge(r, recount_cells_get(&c->totals, OTHER, want->slot_ms)->columns, want->columns);
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        const int64_t *recounted = want->columns + m->column;
        const int64_t *stored = have != NULL ? have->columns + m->column : nothing;
        if (are_equal(m, stored, recounted))
            continue;
        bool is_explained = other != NULL;
        if (is_explained && measure_is_sum(m))
            is_explained = take_missing(m, stored, recounted, other->columns + m->column);
        else if (is_explained)
            is_explained =
                holds_all_of(m, other->columns + m->column, recounted) && holds_all_of(m, recounted, stored);
        if (!is_explained)
            print_difference(c, want, m, stored, recounted);
    }
}

/* What no series of the recount accounts for. */
static void compare_rest(struct comparison *c, const struct recount_cell *have)
{
    const struct report *r = c->recount->report;
    const struct recount_cell *total =
        have->series == OTHER ? recount_cells_find(&c->totals, OTHER, have->slot_ms) : NULL;
    if (have->series != OTHER && recount_cells_find(&c->recounted, have->series, have->slot_ms) != NULL)
        return;
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        const int64_t *stored = have->columns + m->column;
        bool may_be =
            total != NULL && !measure_is_sum(m) && holds_all_of(m, total->columns + m->column, stored);
        if (!may_be && !are_equal(m, stored, nothing))
            print_difference(c, have, m, stored, nothing);
    }
}

/* Take what `other` holds in a slot as missing elsewhere in it. */
static void compare_cells(struct comparison *c)
{
    for (size_t i = 0; i <= c->recounted.mask; i++) {
        if (recount_cells_at(&c->recounted, i)->slot_ms >= 0)
            compare_series(c, recount_cells_at(&c->recounted, i));
    }
    for (size_t i = 0; i <= c->stored.mask; i++) {
        if (recount_cells_at(&c->stored, i)->slot_ms >= 0)
            compare_rest(c, recount_cells_at(&c->stored, i));
    }
}

static bool compare_slots_once(struct verify *v, size_t report, enum span slot, const uint32_t *number_of,
                               uint32_t number_count, struct err *e)
{
    struct scan_stats stats = {0};
    struct comparison c = {.v = v,
                           .recount = &v->recounts[report],
                           .slot = slot,
                           .number_of = number_of,
                           .number_count = number_count};
    struct marks marks;
    if (!store_marks(v->store, report, &marks, e))
        return false;
    struct scan scan = {.report = report,
                        .slot = slot,
                        .from_ms = marks.before_ms[slot],
                        .to_ms = CIVIL_END_MS,
                        .series = {.kind = SERIES_ALL},
                        .rows_max = UINT64_MAX};
    size_t columns = c.recount->report->column_count;
    recount_cells_init(&c.stored, 2, columns);
    recount_cells_init(&c.recounted, 3, columns);
    recount_cells_init(&c.totals, 4, columns);
    recount_sum(c.recount, slot, scan.from_ms, &c.recounted);
    bool good = store_scan(v->store, &scan, take_stored, &c, &stats, e);
    if (good)
        compare_cells(&c);
    recount_cells_fini(&c.stored);
    recount_cells_fini(&c.recounted);
    recount_cells_fini(&c.totals);
    return good;
}

/* Marks move while a daemon counts, also while it is compared: then once more, from where they are. */
static bool compare_slots(struct verify *v, size_t report, enum span slot, const uint32_t *number_of,
                          uint32_t number_count, struct err *e)
{
    bool good = compare_slots_once(v, report, slot, number_of, number_count, e);
    for (int again = 0; !good && e->retryable && again < AGAIN_MAX; again++)
        good = compare_slots_once(v, report, slot, number_of, number_count, e);
    return good;
}

/* The store's numbers of series → the recount's. */
struct numbering {
    struct verify *v;
    const struct recount *recount;
    bool *seen; /* by the recount's number */
    uint32_t *number_of;
    size_t count, capacity;
};

static bool note_series(void *context, uint32_t series, struct slice key)
{
    struct numbering *n = context;
    n->number_of = xgrow(n->number_of, &n->capacity, (size_t)series + 1, sizeof *n->number_of);
    for (; n->count <= series; n->count++)
        n->number_of[n->count] = n->count == STORE_SERIES_OTHER ? OTHER : OTHER - 1;
    n->number_of[series] = recount_series(n->recount, key);
    if (n->number_of[series] == UINT32_MAX)
        n->number_of[series] = OTHER - 1;
    else if (n->seen[n->number_of[series]] && may_print(n->v))
        fprintf(n->v->out, "%s \"%.*s\" is two series: queries find one of them\n", n->recount->report->name,
                SLICE_ARGS(key));
    else
        n->seen[n->number_of[series]] = true;
    return true;
}

bool verify_buckets(struct verify *v, struct err *e)
{
    for (size_t r = 0; r < v->store->report_count; r++) {
        struct numbering n = {.v = v, .recount = &v->recounts[r]};
        n.seen = xcalloc(v->recounts[r].series_count, sizeof *n.seen);
        n.number_of = xgrow(NULL, &n.capacity, 1, sizeof *n.number_of);
        n.number_of[n.count++] = OTHER;
        bool good = store_series_each(v->store, r, note_series, &n, e);
        for (enum span slot = report_cell(v->recounts[r].report); good && slot < SPAN_COUNT; slot++)
            good = compare_slots(v, r, slot, n.number_of, (uint32_t)n.count, e);
        free(n.number_of);
        free(n.seen);
        if (!good)
            return false;
    }
    return true;
}
