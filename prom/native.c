#include "prom/native.h"

#include "base/check.h"
#include "base/mem.h"
#include "prom/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define NATIVE_BITS       0x7FFC000000000000u /* a quiet NaN; the place is in the lower half */
#define PLACE_MASK        0xFFFFFFFFu
#define ARENA_CHUNK_BYTES ((size_t)16 << 10)
#define SLOTS             (2 * HISTOGRAM_NTHS_MAX - 1)

void natives_init(struct natives *all, uint64_t bytes_max)
{
    *all = (struct natives){.bytes_max = bytes_max};
    arena_init(&all->arena, ARENA_CHUNK_BYTES);
}

void natives_fini(struct natives *all)
{
    free(all->list);
    arena_fini(&all->arena);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool native_is(double value)
{
    return (bits_of(value) & ~(uint64_t)PLACE_MASK) == NATIVE_BITS;
}

const struct native *native_of(const struct natives *all, double value)
{
    const size_t place = bits_of(value) & PLACE_MASK;
    ASSERT(native_is(value) && place < all->count);
    return &all->list[place];
}

bool native_any(const struct natives *all, const struct vector *v)
{
    bool found = false;
    for (size_t i = 0; all->count > 0 && !found && i < v->series_count * v->step_count; i++)
        found = native_is(v->values[i]);
    return found;
}

bool native_refuse(const struct natives *all, const struct vector *v, const char *what, struct err *e)
{
    return !native_any(all, v) ||
           err_set(e, EX_USAGE,
                   "%s is of numbers, and a histogram is none: ask for it of histogram_count(…), "
                   "histogram_sum(…) or histogram_quantile(0.99, …)",
                   what);
}

/* ---- the table */

static bool check_bytes(const struct natives *all, const char *metric, struct err *e)
{
    const uint64_t bytes = all->reading_bytes + arena_bytes(&all->arena) + all->capacity * sizeof *all->list;
    return all->bytes_max == 0 || bytes <= all->bytes_max ||
           err_set(e, EX_UNAVAILABLE,
                   "%s takes more than %" PRIu64
                   " bytes of histograms or distinct counts (query.sketches_max): select fewer series, a "
                   "shorter range or a longer step",
                   metric, all->bytes_max);
}

bool native_reading(struct natives *all, size_t bytes, const char *metric, struct err *e)
{
    all->reading_bytes = bytes;
    return check_bytes(all, metric, e);
}

bool native_add(struct fetch *fe, const struct native *h, double *value, struct err *e)
{
    struct natives *all = fe->natives;
    struct native copy = {.count = h->count, .sum = h->sum, .schema = h->schema, .zero = h->zero};
    size_t needed = 0;
    for (size_t i = 0; i < h->bucket_count; i++)
        needed += h->buckets[i].count != 0;
    if (!budget_take(fe->budget, BUDGET_POINTS, 1 + h->bucket_count, e))
        return false;
    copy.buckets = arena_add(&all->arena, needed * sizeof *copy.buckets);
    for (size_t i = 0; i < h->bucket_count; i++) {
        if (h->buckets[i].count != 0)
            copy.buckets[copy.bucket_count++] = h->buckets[i];
    }
    all->list = xgrow(all->list, &all->capacity, all->count + 1, sizeof *all->list);
    all->list[all->count] = copy;
    const uint64_t bits = NATIVE_BITS | (uint32_t)all->count++;
    memcpy(value, &bits, sizeof bits);
    if (!share_fit(fe->budget->memory, &all->held,
                   arena_bytes(&all->arena) + all->capacity * sizeof *all->list))
        return share_fail(fe->budget->memory, e);
    return check_bytes(all, "the question", e);
}

/* ---- calculations */

/* A sum under way: a count for each slot of its schema, by histogram_nth(). Those from `first` to `end` may
 * be other than 0. */
struct total {
    double count, sum, zero;
    bool has_any; /* was anything taken? */
    int schema;
    double *counts; /* of SLOTS */
    int32_t first, end;
    struct native_bucket *buckets; /* room to write it */
};

static void total_init(struct total *t)
{
    *t = (struct total){.schema = HISTOGRAM_SCHEMA_MAX,
                        .counts = xcalloc(SLOTS, sizeof *t->counts),
                        .buckets = xmalloc(SLOTS * sizeof *t->buckets),
                        .first = SLOTS};
}

static void total_fini(struct total *t)
{
    free(t->counts);
    free(t->buckets);
}

static void total_add(struct total *t, int32_t slot, double count)
{
    const int32_t at = histogram_nth(histogram_widen(slot, t->schema)) + HISTOGRAM_NTHS_MAX - 1;
    t->counts[at] += count;
    t->first = at < t->first ? at : t->first;
    t->end = at >= t->end ? at + 1 : t->end;
}

/* The slot of a place in `counts`. */
static int32_t total_slot(const struct total *t, int32_t at)
{
    const int unit = t->schema > HISTOGRAM_SCHEMA ? t->schema : HISTOGRAM_SCHEMA;
    return histogram_slot_of_nth(at - (HISTOGRAM_NTHS_MAX - 1), unit);
}

/* Gives what it has wider buckets. */
static void total_widen(struct total *t, int schema)
{
    const struct total old = *t;
    const size_t count = old.end > old.first ? (size_t)(old.end - old.first) : 0;
    double *counts = xmalloc((count + 1) * sizeof *counts);
    memcpy(counts, t->counts + (count > 0 ? old.first : 0), count * sizeof *counts);
    memset(t->counts + (count > 0 ? old.first : 0), 0, count * sizeof *counts);
    t->schema = schema;
    t->first = SLOTS;
    t->end = 0;
    for (size_t i = 0; i < count; i++) {
        if (counts[i] != 0)
            total_add(t, total_slot(&old, old.first + (int32_t)i), counts[i]);
    }
    free(counts);
}

static bool total_take(struct total *t, const struct native *h, double sign, struct err *e)
{
    if (!t->has_any)
        t->zero = h->zero;
    else if (t->zero != h->zero)
        return err_set(e, EX_USAGE, "histograms with other options zero=… do not add up: ask for one metric");
    if (h->schema < t->schema)
        total_widen(t, h->schema);
    t->has_any = true;
    t->count += sign * h->count;
    t->sum += sign * h->sum;
    for (size_t i = 0; i < h->bucket_count; i++)
        total_add(t, h->buckets[i].slot, sign * h->buckets[i].count);
    return true;
}

/* Adds the sum, divided, to the table, and empties it. */
static bool total_give(struct total *t, struct fetch *fe, double divisor, double *value, struct err *e)
{
    struct native h = {t->count / divisor, t->sum / divisor, t->schema, t->zero, 0, t->buckets};
    for (int32_t at = t->first; at < t->end; at++) {
        if (t->counts[at] != 0)
            h.buckets[h.bucket_count++] = (struct native_bucket){total_slot(t, at), t->counts[at] / divisor};
        t->counts[at] = 0;
    }
    t->count = t->sum = 0;
    t->has_any = false;
    t->schema = HISTOGRAM_SCHEMA_MAX;
    t->first = SLOTS;
    t->end = 0;
    return native_add(fe, &h, value, e);
}

bool native_scale(struct fetch *fe, double value, double factor, bool divides, double *result, struct err *e)
{
    const struct native h = *native_of(fe->natives, value);
    struct native scaled = {.count = divides ? h.count / factor : h.count * factor,
                            .sum = divides ? h.sum / factor : h.sum * factor,
                            .schema = h.schema,
                            .zero = h.zero,
                            .buckets = xmalloc((h.bucket_count + 1) * sizeof *scaled.buckets)};
    for (size_t i = 0; i < h.bucket_count; i++) {
        const struct native_bucket b = h.buckets[i];
        if (divides && factor == 0 && b.slot != 0) /* as Prometheus: only the zero bucket is left */
            continue;
        scaled.buckets[scaled.bucket_count++] =
            (struct native_bucket){b.slot, divides ? b.count / factor : b.count * factor};
    }
    bool good = native_add(fe, &scaled, result, e);
    free(scaled.buckets);
    return good;
}

bool native_join(struct fetch *fe, double a, double b, bool subtracts, double *result, struct err *e)
{
    struct total t;
    total_init(&t);
    bool good = total_take(&t, native_of(fe->natives, a), 1, e) &&
                total_take(&t, native_of(fe->natives, b), subtracts ? -1 : 1, e) &&
                total_give(&t, fe, 1, result, e);
    total_fini(&t);
    return good;
}

/* The series by group: those of group i are order[starts[i]] to order[starts[i + 1] - 1]. */
static void order_by_group(const struct vector *in, const struct groups *g, size_t *starts, size_t *order)
{
    memset(starts, 0, (g->count + 1) * sizeof *starts);
    for (size_t i = 0; i < in->series_count; i++)
        starts[g->of[i] + 1]++;
    for (size_t i = 0; i < g->count; i++)
        starts[i + 1] += starts[i];
    size_t *next = xmalloc((g->count + 1) * sizeof *next);
    memcpy(next, starts, (g->count + 1) * sizeof *next);
    for (size_t i = 0; i < in->series_count; i++)
        order[next[g->of[i]]++] = i;
    free(next);
}

bool native_sum_groups(struct fetch *fe, const struct vector *in, const struct groups *g, size_t step,
                       bool averages, const struct vector *out, struct err *e)
{
    size_t *starts = xmalloc((g->count + 1) * sizeof *starts);
    size_t *order = xmalloc((in->series_count + 1) * sizeof *order);
    struct total t;
    bool good = true;
    total_init(&t);
    order_by_group(in, g, starts, order);
    for (size_t group = 0; good && group < g->count; group++) {
        size_t found = 0, others = 0;
        for (size_t i = starts[group]; good && i < starts[group + 1]; i++) {
            const double value = vector_row(in, order[i])[step];
            if (native_is(value)) {
                good = total_take(&t, native_of(fe->natives, value), 1, e);
                found++;
            } else {
                others += !vector_is_absent(value);
            }
        }
        if (good && found > 0 && others > 0)
            good = err_set(e, EX_USAGE, "histograms and numbers do not add up: ask for one metric");
        else if (good && found > 0)
            good = total_give(&t, fe, averages ? (double)found : 1, &vector_row(out, group)[step], e);
    }
    total_fini(&t);
    free(starts);
    free(order);
    return good;
}

/* ---- buckets */

/* As the buckets are stored. */
static struct native_ends ends_of(const struct native *h, int32_t slot)
{
    if (slot == 0)
        return (struct native_ends){0 - h->zero, h->zero}; /* -0 would be written so */
    const int32_t size = slot < 0 ? -slot : slot;
    const double near = fmax(histogram_begin(size, h->schema), h->zero), far = histogram_end(size);
    return slot < 0 ? (struct native_ends){-far, -near} : (struct native_ends){near, far};
}

struct native_ends native_ends(const struct native *h, size_t i)
{
    struct native_ends ends = ends_of(h, h->buckets[i].slot);
    const bool has_below = i > 0, has_above = i + 1 < h->bucket_count;
    if (h->buckets[i].slot != 0 || has_below == has_above)
        return ends;
    *(has_above ? &ends.low : &ends.high) = 0;
    return ends;
}

static void write_field(const char *name, double value, struct text *out)
{
    text_printf(out, "\"%s\":\"", name);
    number_write(value, out);
    text_putc(out, '"');
}

static void write_bucket(const struct native *h, const struct native_bucket *b, struct text *out)
{
    const struct native_ends ends = ends_of(h, b->slot);
    /* Which end is within: 0 the upper one, 1 the lower one, 3 both. */
    text_printf(out, "[%d,\"", b->slot > 0 ? 0 : b->slot < 0 ? 1 : 3);
    number_write(ends.low, out);
    text_puts(out, "\",\"");
    number_write(ends.high, out);
    text_puts(out, "\",\"");
    number_write(b->count, out);
    text_puts(out, "\"]");
}

void native_write(const struct native *h, struct text *out)
{
    bool is_any = false;
    text_putc(out, '{');
    write_field("count", h->count, out);
    text_putc(out, ',');
    write_field("sum", h->sum, out);
    for (size_t i = 0; i < h->bucket_count; i++) {
        if (h->buckets[i].slot == 0 && !(h->buckets[i].count > 0)) /* Prometheus omits such a one, too */
            continue;
        text_puts(out, is_any ? "," : ",\"buckets\":[");
        write_bucket(h, &h->buckets[i], out);
        is_any = true;
    }
    text_puts(out, is_any ? "]}" : "}");
}
