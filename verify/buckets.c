/* Compares every time bucket of every report with its recount. */
#include "verify/buckets.h"
#include "base/mem.h"
#include "base/show.h"

#include <inttypes.h>
#include <stdlib.h>

#define OTHER UINT32_MAX /* number of the series `other` in these tables */

#define AGAIN_MAX 3

/* One report at one resolution. */
struct comparison {
    struct verify *v;
    const struct recount *recount;
    enum span resolution;
    const uint32_t *number_of; /* number of a series in the recount, by its number in the store */
    uint32_t number_count;
    struct recount_cells stored, recounted;
    /* recount of the time buckets in which `other` has anything, as series OTHER */
    struct recount_cells totals;
    struct pieces stored_sketches[REPORT_MEASURES_MAX]; /* by sketch of the report */
    /* The books have events that no source has any more: time buckets may exceed the recount. */
    bool may_hold_more;
    const struct kept_times *kept;
    int64_t last_more_ms; /* last time bucket that does; -1: none */
};

bool kept_has(const struct kept_times *kept, enum span resolution, int64_t bucket_ms)
{
    bool is = false;
    for (size_t i = 0; i < kept->count; i++)
        is |= kept->list[i].from_ms < span_next(resolution, bucket_ms) && bucket_ms < kept->list[i].to_ms;
    return is;
}

static bool is_kept(const struct comparison *c, int64_t bucket_ms)
{
    return kept_has(c->kept, c->resolution, bucket_ms);
}

static void take_stored(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct comparison *c = context;
    if (is_kept(c, bucket_ms))
        return;
    uint32_t number = series < c->number_count ? c->number_of[series] : OTHER - 1;
    struct recount_cell *to = recount_cells_get(&c->stored, number, bucket_ms);
    report_merge(c->recount->report, to->columns, values);
}

static bool take_stored_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch,
                               struct slice packed, struct err *e)
{
    struct comparison *c = context;
    uint32_t number = series < c->number_count ? c->number_of[series] : OTHER - 1;
    (void)e;
    if (is_kept(c, bucket_ms))
        return true;
    pieces_add(&c->stored_sketches[sketch], number, bucket_ms, packed);
    return true;
}

static void print_texts(struct comparison *c, uint32_t series, int64_t bucket_ms, const struct measure *m,
                        const char *stored, const char *recounted)
{
    char iso[CIVIL_ISO_BYTES], shown[SHOW_BYTES];
    struct slice key = series < c->recount->series_count
                           ? c->recount->key_of[series]
                           : slice_text(series == OTHER ? STORE_OTHER_KEY : "(unknown)");
    if (!verify_differs(c->v))
        return;
    show_into(shown, sizeof shown, key);
    fprintf(c->v->out, "%s \"%s\" %s %s by %s: stored %s, recounted %s%s%s\n", c->recount->report->name,
            shown, m->name, civil_iso(bucket_ms, iso), span_name(c->resolution), stored, recounted,
            strcmp(stored, recounted) == 0 ? " of other events" : "",
            c->may_hold_more ? " of what is left" : "");
}

static void print_difference(struct comparison *c, const struct recount_cell *at, const struct measure *m,
                             const int64_t *stored, const int64_t *recounted)
{
    char have[NUMBER_BYTES], want[NUMBER_BYTES];
    print_texts(c, at->series, at->bucket_ms, m, measure_text(m, stored, have),
                measure_text(m, recounted, want));
}

static struct recount_cell *other_cell(struct comparison *c, int64_t bucket_ms)
{
    if (recount_cells_find(&c->stored, OTHER, bucket_ms) == NULL)
        return NULL;
    return recount_cells_get(&c->stored, OTHER, bucket_ms);
}

static const int64_t nothing[REPORT_COLUMNS_MAX];

static bool are_equal(const struct measure *m, const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, measure_column_count(m) * sizeof *a) == 0;
}

/* Would merging `b` into `a` change nothing? */
static bool holds_all_of(const struct measure *m, const int64_t *a, const int64_t *b)
{
    int64_t both[MEASURE_COLUMNS_MAX];
    memcpy(both, a, measure_column_count(m) * sizeof *a);
    measure_merge(m, both, b);
    return are_equal(m, both, a);
}

/* a - b without overflow errors: a damaged store may hold anything. */
static int64_t less(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* For sums: subtract the missing part from `other`, which must be zero in the end. If numbers may be
 * negative, that is the only test: the missing part may be negative, too. */
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

/* Is the missing part of a series in `other` (NULL: there is none), and does nothing exceed the recount? */
static bool is_in_other(const struct measure *m, const int64_t *stored, const int64_t *recounted,
                        int64_t *other)
{
    if (other != NULL && measure_is_sum(m))
        return take_missing(m, stored, recounted, other);
    return other != NULL && holds_all_of(m, other, recounted) && holds_all_of(m, recounted, stored);
}

/* If only some events were recounted: does the store have at least the recount? Sums of numbers that may be
 * negative prove nothing then; their number of events does. */
static bool is_enough(const struct measure *m, const int64_t *stored, const int64_t *recounted,
                      int64_t *other)
{
    int64_t all[MEASURE_COLUMNS_MAX];
    size_t count = measure_column_count(m);
    memcpy(all, stored, count * sizeof *all);
    if (!measure_is_sum(m)) {
        if (other != NULL)
            measure_merge(m, all, other);
        return holds_all_of(m, all, recounted);
    }
    for (size_t i = measure_is_additive(m) ? 0 : 2; i < count; i++) {
        int64_t missing = less(recounted[i], stored[i]);
        if (missing <= 0)
            continue;
        if (other == NULL || other[i] < missing)
            return false;
        other[i] = less(other[i], missing);
    }
    return true;
}

static void note_more(struct comparison *c, int64_t bucket_ms)
{
    c->last_more_ms = bucket_ms > c->last_more_ms ? bucket_ms : c->last_more_ms;
}

static void compare_series(struct comparison *c, const struct recount_cell *want)
{
    const struct report *r = c->recount->report;
    const struct recount_cell *have = recount_cells_find(&c->stored, want->series, want->bucket_ms);
    struct recount_cell *other = other_cell(c, want->bucket_ms);
    bool is_more = false;
    if (is_kept(c, want->bucket_ms))
        return;
    c->v->compared++;
    if (other != NULL)
        report_merge(r, recount_cells_get(&c->totals, OTHER, want->bucket_ms)->columns, want->columns);
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        const int64_t *recounted = want->columns + m->column;
        const int64_t *stored = have != NULL ? have->columns + m->column : nothing;
        int64_t *of_other = other != NULL ? other->columns + m->column : NULL;
        if (are_equal(m, stored, recounted))
            continue;
        is_more = c->may_hold_more;
        if (!(is_more ? is_enough : is_in_other)(m, stored, recounted, of_other))
            print_difference(c, want, m, stored, recounted);
    }
    c->v->bounded += is_more;
    if (is_more)
        note_more(c, want->bucket_ms);
}

/* Compare a stored cell that the recount does not have. */
static void compare_rest(struct comparison *c, const struct recount_cell *have)
{
    const struct report *r = c->recount->report;
    const struct recount_cell *total =
        have->series == OTHER ? recount_cells_find(&c->totals, OTHER, have->bucket_ms) : NULL;
    if (have->series != OTHER && recount_cells_find(&c->recounted, have->series, have->bucket_ms) != NULL)
        return;
    if (c->may_hold_more) {
        c->v->unjudged++;
        note_more(c, have->bucket_ms);
        return;
    }
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        const int64_t *stored = have->columns + m->column;
        bool may_be =
            total != NULL && !measure_is_sum(m) && holds_all_of(m, total->columns + m->column, stored);
        if (!may_be && !are_equal(m, stored, nothing))
            print_difference(c, have, m, stored, nothing);
    }
}

/* Compare all cells. The counts of `other` in a time bucket account for what is missing elsewhere in it. */
static void compare_cells(struct comparison *c)
{
    for (size_t i = 0; i <= c->recounted.mask; i++) {
        if (recount_cells_at(&c->recounted, i)->bucket_ms >= 0)
            compare_series(c, recount_cells_at(&c->recounted, i));
    }
    for (size_t i = 0; i <= c->stored.mask; i++) {
        if (recount_cells_at(&c->stored, i)->bucket_ms >= 0)
            compare_rest(c, recount_cells_at(&c->stored, i));
    }
}

/* ---- sketches */

static bool has_other(const struct comparison *c, int64_t bucket_ms)
{
    return recount_cells_find(&c->stored, OTHER, bucket_ms) != NULL;
}

static void compare_packed(struct comparison *c, uint32_t series, int64_t bucket_ms, const struct measure *m,
                           struct slice stored, struct slice recounted)
{
    const enum sketch_kind kind = measure_sketch_kind(m);
    const bool of_part = series != OTHER && has_other(c, bucket_ms);
    char have[PIECE_TEXT_BYTES], want[PIECE_TEXT_BYTES];
    if (is_kept(c, bucket_ms))
        return;
    c->v->compared++;
    if (slice_equal(stored, recounted) || (of_part && c->may_hold_more))
        return;
    if (of_part ? packed_holds(kind, recounted, stored)
                : c->may_hold_more && packed_holds(kind, stored, recounted)) {
        c->v->bounded += c->may_hold_more;
        if (c->may_hold_more)
            note_more(c, bucket_ms);
        return;
    }
    print_texts(c, series, bucket_ms, m, packed_text(m, c->resolution, stored, have),
                packed_text(m, c->resolution, recounted, want));
}

/* Compare joined pieces. If records may be gone, the columns tell of time buckets without a recount. */
static void compare_pieces(struct comparison *c, const struct measure *m, const struct pieces *stored,
                           const struct pieces *recounted, bool are_unions)
{
    const struct slice none = slice_of(NULL, 0);
    for (size_t i = 0; i < recounted->count; i++) {
        const struct piece *p = &recounted->list[i];
        compare_packed(c, p->series, p->bucket_ms, m, pieces_find(stored, p->series, p->bucket_ms),
                       pieces_at(recounted, i));
    }
    for (size_t i = 0; i < stored->count; i++) {
        const struct piece *p = &stored->list[i];
        if (!are_unions && p->series == OTHER && has_other(c, p->bucket_ms))
            continue; /* compare_unions() compares it */
        if (!c->may_hold_more && pieces_find(recounted, p->series, p->bucket_ms).len == 0)
            compare_packed(c, p->series, p->bucket_ms, m, pieces_at(stored, i), none);
    }
}

/* Compare all series together, in time buckets in which `other` has counts. */
static void compare_unions(struct comparison *c, const struct measure *m,
                           const struct observations *observations, const struct pieces *stored,
                           int64_t from_ms)
{
    const int64_t cell_ms = report_cell_ms(c->recount->report);
    struct pieces stored_union = {0}, recounted_union = {0};
    struct observations all = {0};
    for (size_t i = 0; i < stored->count; i++) {
        if (has_other(c, stored->list[i].bucket_ms))
            pieces_add(&stored_union, OTHER, stored->list[i].bucket_ms, pieces_at(stored, i));
    }
    for (size_t i = 0; i < observations->count; i++) {
        struct observation observation = observations->list[i];
        if (has_other(c, span_floor(c->resolution, observation.time * cell_ms))) {
            observation.series = OTHER;
            observations_add(&all, observation);
        }
    }
    observations_sort(&all);
    observations_pack(&all, m, cell_ms, c->resolution, from_ms, &recounted_union);
    pieces_join(&stored_union, measure_sketch_kind(m), measure_schema(m, c->resolution));
    compare_pieces(c, m, &stored_union, &recounted_union, true);
    observations_fini(&all);
    pieces_fini(&stored_union);
    pieces_fini(&recounted_union);
}

static void compare_sketches(struct comparison *c, int64_t from_ms)
{
    const struct report *r = c->recount->report;
    for (size_t i = 0; i < r->sketch_count; i++) {
        const struct measure *m = report_sketched(r, i);
        struct pieces *stored = &c->stored_sketches[i], recounted = {0};
        observations_pack(&c->recount->observations[i], m, report_cell_ms(r), c->resolution, from_ms,
                          &recounted);
        pieces_join(&recounted, measure_sketch_kind(m), HISTOGRAM_SCHEMA_MAX);
        pieces_join(stored, measure_sketch_kind(m), measure_schema(m, c->resolution));
        compare_unions(c, m, &c->recount->observations[i], stored, from_ms);
        compare_pieces(c, m, stored, &recounted, false);
        pieces_fini(&recounted);
    }
}

/* ---- sources that are partly gone */

static int128 sum_column(const struct recount_cells *cells, size_t column)
{
    int128 sum = 0;
    for (size_t i = 0; i <= cells->mask; i++) {
        const struct recount_cell *c = recount_cells_at(cells, i);
        sum += c->bucket_ms >= 0 ? c->columns[column] : 0;
    }
    return sum;
}

/* In total, the store must exceed the recount by as many events as the books do, each as often as it counts
 * (sample.h). */
static void compare_missing(struct comparison *c, const struct verify_missing *missing, bool are_all)
{
    const struct report *r = c->recount->report;
    char more[NUMBER_BYTES];
    size_t m = 0;
    while (m < r->measure_count && r->measures[m].kind != MEASURE_COUNT)
        m++;
    if (m == r->measure_count)
        return;
    int128 sum =
        sum_column(&c->stored, r->measures[m].column) - sum_column(&c->recounted, r->measures[m].column);
    const int128 times = r->one_in;
    bool is_good =
        sum <= times * missing->events && (!are_all || sum >= times * (missing->events - missing->late));
    c->v->compared++;
    if (!is_good && verify_differs(c->v))
        fprintf(c->v->out,
                "%s: its months have %s events more than what is left of its sources, by the books %" PRId64
                " are missing there\n",
                r->name, number_text(sum * EVENT_SCALE, more), missing->events);
}

static void say_missing(const struct comparison *c, const struct verify_missing *missing)
{
    char iso[CIVIL_ISO_BYTES];
    fprintf(c->v->out, "%s: %" PRId64 " events are of records that are gone: ", c->recount->report->name,
            missing->events);
    if (c->last_more_ms >= 0)
        fprintf(c->v->out, "its %ss before %s may hold more than is recounted, later ones are equal\n",
                span_name(c->resolution), civil_iso(span_next(c->resolution, c->last_more_ms), iso));
    else
        fprintf(c->v->out, "its %ss are all equal\n", span_name(c->resolution));
}

static bool compare_resolution(struct verify *v, size_t report, enum span resolution,
                               const struct kept_times *kept, const uint32_t *number_of,
                               uint32_t number_count, struct err *e)
{
    const struct verify_missing *missing = &v->missing[report];
    struct scan_stats stats = {0};
    struct comparison c = {.v = v,
                           .recount = &v->recounts[report],
                           .resolution = resolution,
                           .number_of = number_of,
                           .number_count = number_count,
                           .may_hold_more = missing->events > 0,
                           .kept = kept,
                           .last_more_ms = -1};
    struct watermarks watermarks;
    if (!store_watermarks(v->store, report, &watermarks, e))
        return false;
    struct scan scan = {.report = report,
                        .resolution = resolution,
                        .from_ms = watermarks.before_ms[resolution],
                        .to_ms = CIVIL_END_MS,
                        .series = {.kind = SERIES_ALL},
                        .rows_max = UINT64_MAX,
                        .sketch = take_stored_sketch};
    size_t columns = c.recount->report->column_count;
    recount_cells_init(&c.stored, 2, columns);
    recount_cells_init(&c.recounted, 3, columns);
    recount_cells_init(&c.totals, 4, columns);
    recount_sum(c.recount, resolution, scan.from_ms, &c.recounted);
    bool good = store_scan(v->store, &scan, take_stored, &c, &stats, e);
    if (good && c.may_hold_more && resolution == SPAN_MONTH && kept->count == 0)
        compare_missing(&c, missing, scan.from_ms == 0);
    if (good) {
        compare_cells(&c);
        compare_sketches(&c, scan.from_ms);
    }
    if (good && c.may_hold_more && resolution == report_cell(c.recount->report))
        say_missing(&c, missing);
    recount_cells_fini(&c.stored);
    recount_cells_fini(&c.recounted);
    recount_cells_fini(&c.totals);
    for (size_t i = 0; i < c.recount->report->sketch_count; i++)
        pieces_fini(&c.stored_sketches[i]);
    return good;
}

/* Compare a resolution; SPAN_COUNT: the newest events. Watermarks may move meanwhile, while a daemon counts:
 * then repeat from their new times. */
static bool compare(struct verify *v, size_t report, enum span resolution, const struct kept_times *kept,
                    const uint32_t *number_of, uint32_t number_count, struct err *e)
{
    bool good, is_over = false;
    for (int again = 0; !is_over; again++) {
        good = resolution == SPAN_COUNT
                   ? verify_recent(v, report, kept, number_of, number_count, e)
                   : compare_resolution(v, report, resolution, kept, number_of, number_count, e);
        is_over = good || !e->retryable || again == AGAIN_MAX;
    }
    return good;
}

/* The kept times of all reports, in the order of reports. */
struct keeping {
    const struct store *store;
    struct kept_times *kept;
};

static bool take_kept(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    const struct keeping *k = context;
    struct backfill_times times = {.to_ms = value};
    (void)partition;
    if (source[0] != '\0' || sscanf(entry, "kept.%" SCNd64, &times.from_ms) != 1)
        return true;
    for (size_t r = 0; r < k->store->report_count; r++) {
        struct kept_times *kept = &k->kept[r];
        if (strcmp(report, kept->report) == 0 && kept->count < KEPT_MAX)
            kept->list[kept->count++] = times;
    }
    return true;
}

static void say_kept(const struct verify *v, const struct kept_times *kept)
{
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    for (size_t i = 0; i < kept->count; i++)
        fprintf(v->out, "%s: not judged: its counts from %s to %s are those of an earlier generation\n",
                kept->report, civil_iso(kept->list[i].from_ms, from), civil_iso(kept->list[i].to_ms, to));
}

/* Maps the store's series numbers to the recount's. */
struct numbering {
    struct verify *v;
    const struct recount *recount;
    bool *seen; /* by the recount's series number */
    uint32_t *number_of;
    size_t count, capacity;
};

static bool note_series(void *context, uint32_t series, struct slice key)
{
    struct numbering *n = context;
    char shown[SHOW_BYTES];
    n->number_of = xgrow(n->number_of, &n->capacity, (size_t)series + 1, sizeof *n->number_of);
    for (; n->count <= series; n->count++)
        n->number_of[n->count] = n->count == STORE_SERIES_OTHER ? OTHER : OTHER - 1;
    n->number_of[series] = recount_series(n->recount, key);
    if (n->number_of[series] == UINT32_MAX)
        n->number_of[series] = OTHER - 1;
    else if (n->seen[n->number_of[series]] && verify_differs(n->v)) {
        show_into(shown, sizeof shown, key);
        fprintf(n->v->out, "%s \"%s\" is two series: queries find one of them\n", n->recount->report->name,
                shown);
    } else
        n->seen[n->number_of[series]] = true;
    return true;
}

static bool verify_report(struct verify *v, size_t report, const struct kept_times *kept, struct err *e)
{
    const struct recount *recount = &v->recounts[report];
    struct numbering n = {.v = v, .recount = recount};
    for (size_t i = 0; i < recount->report->sketch_count; i++)
        observations_sort(&v->recounts[report].observations[i]);
    n.seen = xcalloc(recount->series_count, sizeof *n.seen);
    n.number_of = xgrow(NULL, &n.capacity, 1, sizeof *n.number_of);
    n.number_of[n.count++] = OTHER;
    bool good = store_series_each(v->store, report, note_series, &n, e);
    say_kept(v, kept);
    for (enum span resolution = report_cell(recount->report); good && resolution <= SPAN_COUNT; resolution++)
        good = compare(v, report, resolution, kept, n.number_of, (uint32_t)n.count, e);
    free(n.number_of);
    free(n.seen);
    return good;
}

bool verify_buckets(struct verify *v, struct err *e)
{
    const size_t count = v->store->report_count;
    struct keeping k = {v->store, xcalloc(count, sizeof *k.kept)};
    for (size_t r = 0; r < count; r++)
        k.kept[r].report = v->store->reports[r].name;
    bool good = store_books(v->store, take_kept, &k, e);
    for (size_t r = 0; good && r < count; r++)
        good = verify_report(v, r, &k.kept[r], e);
    free(k.kept);
    return good;
}
