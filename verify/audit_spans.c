/* Compares figures that the store has twice: a time bucket and its shorter ones merged; a time bucket and its
 * copies. */
#include "aggregate/keep.h"
#include "base/check.h"
#include "base/mem.h"
#include "verify/audit.h"
#include "verify/pieces.h"
#include "verify/recount.h"

#include <inttypes.h>
#include <stdlib.h>

/* One of two places that hold the same figures. */
struct side {
    enum span resolution;
    bool is_copy;
    size_t copy;                /* number of the copy, if is_copy */
    struct recount_cells cells; /* cells, merged into time buckets of the pair's resolution */
    struct pieces sketches[REPORT_MEASURES_MAX]; /* by sketch of the report; in time buckets as the cells */
};

struct pair {
    struct audit *a;
    size_t report;
    enum span resolution; /* resolution that is compared */
    uint32_t measures;    /* measures that are compared, a bit each */
    struct side sides[2];
    const uint64_t *known; /* bit set of known series */
    size_t known_words;
    uint32_t part, parts; /* only every parts-th series is compared */
    /* state of the last read */
    struct side *side;
    uint64_t seen, sketch_bytes; /* cells, and bytes of sketches, whether kept or not */
    int64_t first_ms, last_ms;
    bool is_too_much;
};

static bool is_known(const struct pair *p, uint32_t series)
{
    return series / 64 < p->known_words && (p->known[series / 64] >> (series % 64) & 1);
}

static void take_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct pair *p = context;
    int64_t at_ms = span_floor(p->resolution, bucket_ms);
    p->first_ms = p->seen == 0 || at_ms < p->first_ms ? at_ms : p->first_ms;
    p->last_ms = p->seen == 0 || at_ms > p->last_ms ? at_ms : p->last_ms;
    p->seen++;
    if (series % p->parts != p->part || p->is_too_much)
        return;
    struct recount_cells *cells = &p->side->cells;
    struct recount_cell *to = recount_cells_get(cells, series, at_ms);
    report_merge(&p->a->store->reports[p->report], to->columns, values);
    p->is_too_much = p->parts == 1 && cells->count > p->a->cells_max;
}

static bool take_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct pair *p = context;
    (void)e;
    p->sketch_bytes += sizeof(struct piece) + packed.len;
    p->is_too_much =
        p->is_too_much || (p->parts == 1 && p->sketch_bytes > p->a->cells_max * AUDIT_SKETCH_BYTES);
    if (series % p->parts == p->part && !p->is_too_much)
        pieces_add(&p->side->sketches[sketch], series, span_floor(p->resolution, bucket_ms), packed);
    return true;
}

static void drop_side(struct side *side)
{
    recount_cells_fini(&side->cells);
    for (size_t i = 0; i < REPORT_MEASURES_MAX; i++)
        pieces_fini(&side->sketches[i]);
}

static bool read_side(struct pair *p, size_t side, int64_t from_ms, int64_t to_ms, struct err *e)
{
    struct scan_stats stats = {0};
    p->side = &p->sides[side];
    const struct scan scan = {.report = p->report,
                              .resolution = p->side->resolution,
                              .from_ms = from_ms,
                              .to_ms = to_ms,
                              .series = {.kind = SERIES_ALL},
                              .rows_max = UINT64_MAX,
                              .measures = p->measures,
                              .sketch = p->sides[1].is_copy ? NULL : take_sketch};
    drop_side(p->side);
    recount_cells_init(&p->side->cells, (uint32_t)side + 1, p->a->store->reports[p->report].column_count);
    return p->side->is_copy ? store_scan_copy(p->a->store, &scan, p->side->copy, take_bucket, p, &stats, e)
                            : store_scan(p->a->store, &scan, take_bucket, p, &stats, e);
}

/* ---- differences */

static const int64_t nothing[REPORT_COLUMNS_MAX];

/* Is a value at an end of int64? Then it depends on the order of additions. */
static bool is_saturated(const int64_t *columns, size_t count)
{
    bool is = false;
    for (size_t i = 0; i < count; i++)
        is = is || columns[i] == INT64_MAX || columns[i] == INT64_MIN;
    return is;
}

static bool are_equal(const struct measure *m, const int64_t *a, const int64_t *b)
{
    size_t count = measure_column_count(m);
    return memcmp(a, b, count * sizeof *a) == 0 || is_saturated(a, count) || is_saturated(b, count);
}

/* Append "it", "its minutes" or "another place of it". */
static void say_side(const struct pair *p, const struct side *side, struct text *said)
{
    if (side->is_copy)
        text_puts(said, "another place of it");
    else if (side->resolution == p->resolution)
        text_puts(said, "it");
    else
        text_printf(said, "its %ss", span_name(side->resolution));
}

static void say_texts(struct pair *p, uint32_t series, int64_t bucket_ms, const struct measure *m,
                      const char *const texts[2])
{
    char iso[CIVIL_ISO_BYTES];
    struct text *said = audit_find(p->a), key = {0};
    struct err ignored;
    if (said == NULL)
        return;
    if (!store_series_key(p->a->store, p->report, series, &key, &ignored))
        text_printf(&key, "(unknown series %" PRIu32 ")", series);
    text_printf(said, "%s \"%.*s\" %s %s by %s:", p->a->store->reports[p->report].name, (int)key.len,
                key.ptr != NULL ? key.ptr : "", m->name, civil_iso(bucket_ms, iso), span_name(p->resolution));
    for (size_t i = 0; i < 2; i++) {
        text_puts(said, i == 0 ? " " : ", but ");
        say_side(p, &p->sides[i], said);
        text_printf(said, " %s %s%s", p->sides[i].resolution == p->resolution ? "has" : "have", texts[i],
                    i == 1 && strcmp(texts[0], texts[1]) == 0 ? " of other events" : "");
    }
    text_putc(said, '\n');
    text_fini(&key);
}

static void say_difference(struct pair *p, const struct recount_cell *at, const struct measure *m,
                           const int64_t *const values[2])
{
    char numbers[2][NUMBER_BYTES];
    const char *const texts[2] = {measure_text(m, values[0], numbers[0]),
                                  measure_text(m, values[1], numbers[1])};
    say_texts(p, at->series, at->bucket_ms, m, texts);
}

static void compare_cell(struct pair *p, const struct recount_cell *at, const int64_t *one,
                         const int64_t *two)
{
    const struct report *r = &p->a->store->reports[p->report];
    p->a->compared++;
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        const int64_t *const values[2] = {one + m->column, two + m->column};
        if ((p->measures >> i & 1) != 0 && !are_equal(m, values[0], values[1]))
            say_difference(p, at, m, values);
    }
    struct text *said;
    if (at->series != STORE_SERIES_OTHER && !is_known(p, at->series) && (said = audit_find(p->a)) != NULL)
        text_printf(said, "%s: there are counts of series %" PRIu32 ", which is not among its series\n",
                    r->name, at->series);
}

static void compare_sides(struct pair *p)
{
    const struct recount_cells *one = &p->sides[0].cells, *two = &p->sides[1].cells;
    for (size_t i = 0; i <= one->mask; i++) {
        const struct recount_cell *c = recount_cells_at(one, i);
        const struct recount_cell *other =
            c->bucket_ms < 0 ? NULL : recount_cells_find(two, c->series, c->bucket_ms);
        if (c->bucket_ms >= 0)
            compare_cell(p, c, c->columns, other != NULL ? other->columns : nothing);
    }
    for (size_t i = 0; i <= two->mask; i++) {
        const struct recount_cell *c = recount_cells_at(two, i);
        if (c->bucket_ms >= 0 && recount_cells_find(one, c->series, c->bucket_ms) == NULL)
            compare_cell(p, c, nothing, c->columns);
    }
}

static void compare_packed(struct pair *p, const struct piece *at, const struct measure *m, struct slice one,
                           struct slice two)
{
    char buffers[2][PIECE_TEXT_BYTES];
    p->a->compared++;
    if (slice_equal(one, two))
        return;
    const char *const texts[2] = {packed_text(m, p->resolution, one, buffers[0]),
                                  packed_text(m, p->resolution, two, buffers[1])};
    say_texts(p, at->series, at->bucket_ms, m, texts);
}

static void compare_sketches(struct pair *p)
{
    const struct report *r = &p->a->store->reports[p->report];
    for (size_t sketch = 0; sketch < r->sketch_count; sketch++) {
        const struct measure *m = report_sketched(r, sketch);
        struct pieces *one = &p->sides[0].sketches[sketch], *two = &p->sides[1].sketches[sketch];
        pieces_join(one, measure_sketch_kind(m), measure_schema(m, p->resolution));
        pieces_join(two, measure_sketch_kind(m), measure_schema(m, p->resolution));
        for (size_t i = 0; i < one->count; i++) {
            const struct piece *at = &one->list[i];
            compare_packed(p, at, m, pieces_at(one, i), pieces_find(two, at->series, at->bucket_ms));
        }
        for (size_t i = 0; i < two->count; i++) {
            const struct piece *at = &two->list[i];
            const struct slice found = pieces_find(one, at->series, at->bucket_ms);
            if (found.len == 0)
                compare_packed(p, at, m, found, pieces_at(two, i));
        }
    }
}

/* ---- a range in pieces */

/* The number of parts to read a range in, if it has too much. */
static uint64_t part_count(const struct pair *p)
{
    const uint64_t by_cells = p->seen / p->a->cells_max;
    const uint64_t by_sketches = p->sketch_bytes / (p->a->cells_max * AUDIT_SKETCH_BYTES);
    return (by_cells > by_sketches ? by_cells : by_sketches) + 2;
}

/* Compare a range. *fits is false if it has too many cells: *p then says how many, and between which times.
 */
static bool compare_at_once(struct pair *p, int64_t from_ms, int64_t to_ms, bool *fits, struct err *e)
{
    p->seen = p->sketch_bytes = 0;
    p->is_too_much = false;
    if (!read_side(p, 0, from_ms, to_ms, e) || !read_side(p, 1, from_ms, to_ms, e))
        return false;
    *fits = !p->is_too_much;
    if (*fits) {
        compare_sides(p);
        compare_sketches(p);
    }
    return true;
}

static bool compare_by_series(struct pair *p, int64_t from_ms, int64_t to_ms, struct err *e)
{
    bool good = true, fits;
    uint32_t parts = (uint32_t)part_count(p);
    for (uint32_t part = 0; good && part < parts; part++) {
        p->part = part;
        p->parts = parts;
        good = compare_at_once(p, from_ms, to_ms, &fits, e);
    }
    p->part = 0;
    p->parts = 1;
    return good;
}

static bool compare_range(struct pair *p, int64_t from_ms, int64_t to_ms, struct err *e)
{
    bool fits;
    if (!compare_at_once(p, from_ms, to_ms, &fits, e))
        return false;
    if (fits)
        return true;
    int64_t end_ms = span_next(p->resolution, p->last_ms);
    int64_t step_ms = (end_ms - p->first_ms) / (int64_t)part_count(p);
    if (span_next(p->resolution, p->first_ms) == end_ms)
        return compare_by_series(p, p->first_ms, end_ms, e);
    for (int64_t at_ms = p->first_ms, next_ms; at_ms < end_ms; at_ms = next_ms) {
        next_ms = span_floor(p->resolution, at_ms + step_ms);
        next_ms = next_ms > at_ms ? next_ms : span_next(p->resolution, at_ms);
        next_ms = next_ms < end_ms ? next_ms : end_ms;
        if (!compare_range(p, at_ms, next_ms, e))
            return false;
    }
    return true;
}

/* Compare whole time buckets from the time on from which both sides are stored. */
static bool compare_from(struct pair *p, int64_t watermark_ms, struct err *e)
{
    int64_t from_ms = span_floor(p->resolution, watermark_ms);
    p->parts = 1;
    if (from_ms < watermark_ms)
        from_ms = span_next(p->resolution, watermark_ms);
    bool good = compare_range(p, from_ms, CIVIL_END_MS, e);
    audit_next(p->a);
    drop_side(&p->sides[0]);
    drop_side(&p->sides[1]);
    return good;
}

/* The measures that have copies: those without a sketch, a bit each; or all. */
static uint32_t measures_of(const struct report *r, bool of_copies)
{
    uint32_t measures = 0;
    for (size_t i = 0; i < r->measure_count; i++)
        measures |= (uint32_t)(!of_copies || !measure_has_sketch(&r->measures[i])) << i;
    return measures;
}

static bool compare_report(struct pair *p, struct err *e)
{
    const struct store *st = p->a->store;
    const struct report *r = &st->reports[p->report];
    const enum span finest = report_cell(r);
    struct watermarks watermarks;
    enum span kept;
    if (!store_watermarks(p->a->store, p->report, &watermarks, e))
        return false;
    for (p->resolution = finest; p->resolution < SPAN_COUNT; p->resolution++) {
        p->sides[0] = (struct side){.resolution = p->resolution};
        p->sides[1] = (struct side){.resolution = (enum span)(p->resolution - 1)};
        p->measures = measures_of(r, false);
        if (p->resolution > finest && !compare_from(p, watermarks.before_ms[p->resolution - 1], e))
            return false;
        p->measures = measures_of(r, true);
        for (size_t n = 0;
             p->measures != 0 && (kept = store_copy(st, p->report, p->resolution, n)) < SPAN_COUNT; n++) {
            p->sides[1] = (struct side){.resolution = p->resolution, .is_copy = true, .copy = n};
            int64_t watermark_ms = watermarks.before_ms[kept];
            if (!compare_from(p,
                              watermark_ms > watermarks.before_ms[p->resolution]
                                  ? watermark_ms
                                  : watermarks.before_ms[p->resolution],
                              e))
                return false;
        }
    }
    return true;
}

/* ---- series */

struct series_walk {
    struct audit *a;
    size_t report;
    uint64_t *known;
    size_t words, capacity;
    uint64_t count;
    struct err *e;
    bool good;
};

static bool take_series(void *context, uint32_t series, struct slice key)
{
    struct series_walk *w = context;
    uint32_t found = series;
    bool is_found = true;
    w->known = xgrow(w->known, &w->capacity, (size_t)series / 64 + 1, sizeof *w->known);
    while (w->words <= series / 64)
        w->known[w->words++] = 0;
    w->known[series / 64] |= (uint64_t)1 << (series % 64);
    w->count++;
    if (w->a->store->is_shared) /* a server has no series numbers of its own */
        return true;
    w->good = store_series_find(w->a->store, w->report, key, &found, &is_found, w->e);
    struct text *said;
    if (w->good && (!is_found || found != series) && (said = audit_find(w->a)) != NULL)
        text_printf(said, "%s \"%.*s\" is series %" PRIu32 ", but queries %s\n",
                    w->a->store->reports[w->report].name, SLICE_ARGS(key), series,
                    is_found ? "find another one by that name" : "do not find it");
    return w->good;
}

bool audit_spans(struct audit *a, size_t report, struct err *e)
{
    struct series_walk w = {.a = a, .report = report, .good = true, .e = e};
    bool good = store_series_each(a->store, report, take_series, &w, e) && w.good;
    struct pair p = {.a = a, .report = report, .known = w.known, .known_words = w.words};
    good = good && compare_report(&p, e);
    free(w.known);
    return good;
}
