/* Histograms and distinct counts: where numbers fall, how far answers are off, and that the same events in
 * any order, split in any way, have the same bytes. */
#include "aggregate/sketch.h"
#include "base/order.h"
#include "tests/support/dice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define NUMBERS_MAX 20000

static const int64_t scales[] = {1, EVENT_SCALE};

static size_t below(struct dice *d, size_t n)
{
    return (size_t)dice_roll(d, (int64_t)n);
}

static int64_t bits53(struct dice *d)
{
    return dice_roll(d, (int64_t)1 << 53);
}

/* By any schema and limit of zero: the bucket ends at a power of 2^(2^-schema), and its numbers are nearer to
 * its value than half its width. */
static void test_other_buckets(void **state)
{
    struct dice d = dice_new("schemas");
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const int schema =
            HISTOGRAM_SCHEMA_MIN + (int)below(&d, HISTOGRAM_SCHEMA_MAX - HISTOGRAM_SCHEMA_MIN + 1);
        const int64_t scale = scales[below(&d, 2)], zero = below(&d, 2) > 0 ? dice_roll(&d, 10) * 1000 : 0;
        const struct histogram_layout *l = histogram_layout(scale, schema, zero),
                                      *same = histogram_layout(scale, schema, zero);
        const int64_t number = 1 + dice_roll(&d, (int64_t)1 << below(&d, 46));
        const int32_t slot = histogram_slot(l, number);
        assert_ptr_equal(l, same);
        assert_int_equal(histogram_slot(l, -number), -slot);
        if (number <= zero) {
            assert_int_equal(slot, 0);
            continue;
        }
        const double octaves = log2((double)number / (double)scale), width = exp2(-schema);
        const double end = ldexp(histogram_index(slot, schema), -schema);
        assert_true(octaves <= end + 1e-9 && octaves > end - width - 1e-9);
        const double whole = (double)histogram_value(l, slot), value = log2(whole / EVENT_SCALE);
        const double rounding = 1e-4 + 1.5 / fmin((double)number, whole);
        assert_true(fabs(value - octaves) <= (zero == 0 ? width / 2 : width) + rounding);
        const int32_t narrow = histogram_slot(histogram_layout(scale, HISTOGRAM_SCHEMA_MAX, 0), number);
        assert_int_equal(histogram_widen(narrow, l->schema), slot);
        assert_int_equal(histogram_widen(-narrow, l->schema), -slot);
    }
}

/* Numbers that are counted in narrow buckets, and widened by any steps, are as those counted in the wide
 * ones: before they merge, afterwards, or in between. */
static void test_widened_buckets_are_those_of_the_schema(void **state)
{
    struct dice d = dice_new("widened");
    struct sketch_work work = {0};
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const int64_t scale = scales[below(&d, 2)], zero = below(&d, 3) == 0 ? dice_roll(&d, 5000) : 0;
        const int schema =
            HISTOGRAM_SCHEMA_MIN + (int)below(&d, HISTOGRAM_SCHEMA_MAX - HISTOGRAM_SCHEMA_MIN + 1);
        const int narrower = schema + (int)below(&d, (size_t)(HISTOGRAM_SCHEMA_MAX - schema + 1));
        const struct histogram_layout *narrow = histogram_layout(scale, HISTOGRAM_SCHEMA_MAX, zero),
                                      *middle = histogram_layout(scale, narrower, zero),
                                      *wide = histogram_layout(scale, schema, zero);
        struct histogram parts[2] = {0}, expected = {0}, merged = {0};
        struct text packed[2] = {0}, step = {0}, once = {0}, all = {0}, of_all = {0};
        struct arena arena;
        arena_init(&arena, 1 << 12);
        for (size_t i = 0, count = below(&d, 50); i < count; i++) {
            const int64_t sign = below(&d, 4) == 0 ? -1 : 1, size = dice_roll(&d, INT64_MAX) >> below(&d, 63);
            histogram_add(&parts[below(&d, 2)], &arena, histogram_slot(narrow, sign * size), 1);
            histogram_add(&expected, &arena, histogram_slot(wide, sign * size), 1);
        }
        for (int i = 0; i < 2; i++) {
            histogram_pack(&parts[i], &packed[i]);
            text_clear(&step);
            assert_true(sketch_widen(text_slice(&packed[i]), middle->schema, &work, &step));
            assert_true(
                histogram_merge(&merged, &arena, text_slice(i == 0 ? &step : &packed[i]), wide->schema));
        }
        histogram_pack(&expected, &once);
        histogram_pack(&merged, &all);
        assert_true(slice_equal(text_slice(&all), text_slice(&once)));
        text_clear(&step);
        assert_true(
            sketch_join(SKETCH_HISTOGRAM, text_slice(&packed[0]), text_slice(&packed[1]), &work, &step));
        assert_true(sketch_widen(text_slice(&step), wide->schema, &work, &of_all));
        assert_true(slice_equal(text_slice(&of_all), text_slice(&once)));
        for (int i = 0; i < 2; i++)
            text_fini(&packed[i]);
        text_fini(&step);
        text_fini(&once);
        text_fini(&all);
        text_fini(&of_all);
        arena_fini(&arena);
    }
    assert_false(sketch_widen(slice_of("\x08", 1), 3, &work, &(struct text){0}));
    sketch_work_fini(&work);
}

/* A random number of any size below 2^bits, small ones as often as large ones. */
static int64_t any_number(struct dice *d, int bits)
{
    return dice_roll(d, (int64_t)1 << below(d, (size_t)bits));
}

static void test_no_number_is_far_from_the_value_of_its_bucket(void **state)
{
    (void)state;
    struct dice d = dice_new("sketch");
    for (size_t s = 0; s < COUNT_OF(scales); s++) {
        const struct histogram_layout *l = histogram_layout(scales[s], HISTOGRAM_SCHEMA, 0);
        const int128 unit = EVENT_SCALE / scales[s];
        for (int i = 0; i < 300000; i++) {
            int64_t number = any_number(&d, 62);
            int128 value = histogram_value(l, histogram_slot(l, number)), exact = number * unit;
            int128 off = value > exact ? value - exact : exact - value;
            if (off * 2000 > exact * 44 + (unit > 1 ? 0 : 1000))
                fail_msg("%lld/%lld counts as %lld", (long long)number, (long long)scales[s],
                         (long long)value);
        }
        for (int64_t number = 0; number <= 16; number++)
            assert_true(histogram_value(l, histogram_slot(l, number)) == number * unit);
    }
}

static int64_t draw(struct dice *d, int shape)
{
    double u = ((double)bits53(d) + 1) / 9007199254740993.0;
    double v = ((double)bits53(d) + 1) / 9007199254740993.0;
    switch (shape) {
    case 0: /* uniform */
        return (int64_t)(u * 1e6);
    case 1: /* exponential */
        return (int64_t)(-log(u) * 2e5);
    case 2: /* normal, around 1 s */
        return llabs((int64_t)(1e6 + 1e5 * sqrt(-2 * log(u)) * cos(2 * M_PI * v)));
    case 3: /* log-normal: as response times are */
        return (int64_t)(1e5 * exp(sqrt(-2 * log(u)) * cos(2 * M_PI * v)));
    case 4: /* Pareto */
        return (int64_t)(1e4 * pow(u, -1 / 1.2));
    case 5: /* two humps */
        return (int64_t)(u < 0.5 ? 1e3 + 1e2 * v : 5e6 + 1e6 * v);
    case 6: /* nearly always the same */
        return u < 0.99 ? 250000 : 9999999;
    default: /* zeros and negative numbers, too */
        return (int64_t)(u * 2000) - 1000;
    }
}

/* How many numbers are up to a limit is between how many are, with a limit 4.5 % less and 4.5 % more. */
static void check_within(const struct histogram *h, const struct histogram_layout *l, const int64_t *sorted,
                         int64_t count)
{
    for (int64_t at = 0; at < count; at += 1 + count / 20) {
        int64_t limit = sorted[at], slack = llabs(limit) * 45 / 1000 + 1, less = 0, more = 0;
        for (int64_t i = 0; i < count; i++) {
            less += sorted[i] <= limit - slack;
            more += sorted[i] <= limit + slack;
        }
        assert_in_range(histogram_within(h, l, limit), less, more);
    }
    assert_int_equal(histogram_within(h, l, llabs(sorted[count - 1]) * 2 + 100), count);
}

static void test_quantiles_are_within_two_percent(void **state)
{
    static const int64_t per_mille[] = {10, 50, 250, 500, 750, 900, 950, 990, 999};
    static int64_t numbers[NUMBERS_MAX];
    const struct histogram_layout *l = histogram_layout(EVENT_SCALE, HISTOGRAM_SCHEMA, 0);
    struct dice d = dice_new("sketch");
    struct arena arena;
    (void)state;
    arena_init(&arena, 4096);
    for (int shape = 0; shape < 8; shape++) {
        for (size_t count = 1; count <= NUMBERS_MAX; count *= 20) {
            struct histogram h = {0};
            for (size_t i = 0; i < count; i++) {
                numbers[i] = draw(&d, shape);
                histogram_add(&h, &arena, histogram_slot(l, numbers[i]), 1);
            }
            qsort(numbers, count, sizeof *numbers, order_int64s);
            assert_int_equal(histogram_count(&h), count);
            for (size_t q = 0; q < COUNT_OF(per_mille); q++) {
                int64_t rank = ((int64_t)count * per_mille[q] + 999) / 1000, exact = numbers[rank - 1];
                int64_t value = (int64_t)histogram_value(l, histogram_rank(&h, rank));
                if (llabs(value - exact) * 1000 > llabs(exact) * 22 + 500)
                    fail_msg("shape %d: %lld instead of %lld", shape, (long long)value, (long long)exact);
            }
            check_within(&h, l, numbers, (int64_t)count);
        }
    }
    arena_fini(&arena);
}

static uint64_t hash_of(uint64_t text)
{
    return XXH3_64bits(&text, sizeof text);
}

static void test_few_texts_are_counted_exactly(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 4096);
    int wrong = 0;
    for (uint64_t trial = 0; trial < 200; trial++) {
        struct distinct d = {0};
        for (uint64_t i = 0; i < 600; i++) {
            distinct_add(&d, &arena, hash_of(trial << 32 | i));
            distinct_add(&d, &arena, hash_of(trial << 32 | i / 2));
        }
        wrong += distinct_count(&d) != 600;
        assert_in_range(distinct_count(&d), 598, 600);
    }
    assert_in_range(wrong, 0, 6);
    arena_fini(&arena);
}

static void test_many_texts_are_counted_within_six_percent(void **state)
{
    static const int64_t sizes[] = {800, 2000, 5000, 10000, 20000, 100000};
    (void)state;
    struct arena arena;
    arena_init(&arena, 4096);
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        double squares = 0;
        for (uint64_t trial = 0; trial < 100; trial++) {
            struct distinct d = {0};
            for (int64_t i = 0; i < sizes[s]; i++)
                distinct_add(&d, &arena, hash_of((s * 1000 + trial) << 32 | (uint64_t)i));
            double off = (double)distinct_count(&d) / (double)sizes[s] - 1;
            if (fabs(off) > 0.06)
                fail_msg("%lld texts are counted as %lld", (long long)sizes[s],
                         (long long)distinct_count(&d));
            squares += off * off;
            arena_reset(&arena);
        }
        if (sqrt(squares / 100) > 0.017 * 1.25) /* 100 trials: 1.25 is three and a half deviations */
            fail_msg("%lld texts: standard error %.4f", (long long)sizes[s], sqrt(squares / 100));
    }
    arena_fini(&arena);
}

static void add_to(enum sketch_kind kind, union sketch *s, struct arena *arena, uint64_t event)
{
    const int64_t sign = event % 5 == 0 ? 0 : event % 7 == 0 ? -1 : 1; /* many zeros, some below */
    if (kind == SKETCH_HISTOGRAM)
        histogram_add(&s->histogram, arena,
                      histogram_slot(histogram_layout(1, HISTOGRAM_SCHEMA, 0),
                                     sign * (int64_t)(hash_of(event) >> (24 + event % 36))),
                      1);
    else
        distinct_add(&s->distinct, arena, hash_of(event));
}

/* The union of sketches, the first of which are merged at once. */
static void check_united(enum sketch_kind kind, const union sketch parts[5], struct dice *d,
                         struct arena *arena, struct slice expected)
{
    const union sketch *from[5];
    const size_t at_once = below(d, 6);
    union sketch sum = {0};
    struct text packed = {0};
    for (size_t first = below(d, 5), p = 0; p < 5; p++)
        from[p] = &parts[(first + p) % 5];
    sketch_unite_all(kind, &sum, arena, from, at_once, HISTOGRAM_SCHEMA_MAX);
    for (size_t p = at_once; p < 5; p++)
        sketch_unite(kind, &sum, arena, from[p], HISTOGRAM_SCHEMA_MAX);
    sketch_pack(kind, &sum, &packed);
    assert_int_equal(packed.len, expected.len);
    assert_true(packed.len == 0 || memcmp(packed.ptr, expected.ptr, packed.len) == 0);
    text_fini(&packed);
}

/* Adds the events to up to 5 sketches in a random order, packs these, and joins them in a random order. */
static void scatter(enum sketch_kind kind, size_t count, struct dice *d, bool repeats, struct text *out)
{
    union sketch parts[5] = {0};
    struct text packed[5] = {0}, joined = {0};
    struct sketch_work work = {0};
    struct arena arena;
    uint64_t *events = malloc((count + 1) * sizeof *events);
    arena_init(&arena, 1024);
    for (size_t i = 0; i < count; i++) {
        size_t at = below(d, i + 1);
        events[i] = events[at];
        events[at] = i;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t n = repeats ? 1 + below(d, 2) : 1; n > 0; n--)
            add_to(kind, &parts[below(d, 5)], &arena, events[i]);
    }
    for (size_t p = 0; p < 5; p++)
        sketch_pack(kind, &parts[p], &packed[p]);
    for (size_t first = below(d, 5), p = 0; p < 5; p++) {
        text_clear(out);
        assert_true(sketch_join(kind, text_slice(&packed[(first + p) % 5]), text_slice(&joined), &work, out));
        text_clear(&joined);
        text_add(&joined, out->ptr, out->len);
    }
    union sketch sum = {0};
    for (size_t first = below(d, 5), p = 0; p < 5; p++) /* the same without packing them */
        sketch_unite(kind, &sum, &arena, &parts[(first + p) % 5], HISTOGRAM_SCHEMA_MAX);
    text_clear(&joined);
    sketch_pack(kind, &sum, &joined);
    assert_int_equal(out->len, joined.len);
    assert_true(out->len == 0 || memcmp(out->ptr, joined.ptr, out->len) == 0);
    check_united(kind, parts, d, &arena, text_slice(out));
    for (size_t p = 0; p < 5; p++)
        text_fini(&packed[p]);
    text_fini(&joined);
    sketch_work_fini(&work);
    arena_fini(&arena);
    free(events);
}

static void test_any_order_has_the_same_bytes(void **state)
{
    static const size_t counts[] = {0, 1, 7, 300, 699, 700, 701, 5000};
    struct dice d = dice_new("sketch");
    (void)state;
    for (int kind = SKETCH_HISTOGRAM; kind <= SKETCH_DISTINCT; kind++) {
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            struct text first = {0}, other = {0};
            scatter((enum sketch_kind)kind, counts[c], &d, false, &first);
            for (int i = 0; i < 20; i++) {
                scatter((enum sketch_kind)kind, counts[c], &d, kind == SKETCH_DISTINCT, &other);
                assert_int_equal(first.len, other.len);
                assert_true(first.len == 0 || memcmp(first.ptr, other.ptr, first.len) == 0);
            }
            text_fini(&first);
            text_fini(&other);
        }
    }
}

/* Adds the texts to `to` as a store keeps them by members: some as entries, some as ranks of registers. */
static void add_members(struct distinct *to, struct arena *arena, const struct distinct *from, bool as_ranks)
{
    uint8_t ranks[DISTINCT_REGISTERS];
    uint32_t places = 0;
    const uint32_t *entries = from->mask == DISTINCT_MANY ? NULL : distinct_entries(from, &places);
    for (uint32_t i = 0; !as_ranks && i < places; i++) {
        if (entries[i] != 0)
            distinct_add_entry(to, arena, entries[i]);
    }
    distinct_ranks(from, ranks);
    for (int i = 0; (as_ranks || entries == NULL) && i < DISTINCT_REGISTERS; i++) {
        if (ranks[i] > 0)
            assert_true(distinct_add_register(to, arena, i, ranks[i]));
    }
}

static void test_entries_and_registers_merge_to_the_state_of_the_set(void **state)
{
    static const size_t counts[] = {1, 5, 699, 700, 701, 900, 5000};
    struct dice dice = dice_new("members");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct distinct whole = {0}, halves[2] = {{.count = 0}}, merged = {0};
        struct text expected = {0}, found = {0};
        for (size_t i = 0; i < counts[c]; i++) {
            const uint64_t hash = hash_of((uint64_t)bits53(&dice));
            distinct_add(&whole, &arena, hash);
            distinct_add(&halves[below(&dice, 2)], &arena, hash);
        }
        const bool is_many = whole.mask == DISTINCT_MANY; /* only then a store writes ranks */
        add_members(&merged, &arena, &halves[0], false);
        add_members(&merged, &arena, &halves[1], is_many);
        distinct_pack(&whole, &expected);
        distinct_pack(&merged, &found);
        assert_true(slice_equal(text_slice(&expected), text_slice(&found)));
        text_fini(&expected);
        text_fini(&found);
        arena_reset(&arena);
    }
    struct distinct d = {0};
    assert_false(distinct_add_register(&d, &arena, DISTINCT_REGISTERS, 1));
    assert_false(distinct_add_register(&d, &arena, -1, 1));
    assert_false(distinct_add_register(&d, &arena, 0, 0));
    assert_false(distinct_add_register(&d, &arena, 0, 54));
    assert_true(distinct_add_register(&d, &arena, DISTINCT_REGISTERS - 1, 53));
    arena_fini(&arena);
}

/* Joining packed entries one by one gives what merging all of them gives; many of them have the same bits. */
static void test_joined_entries_are_those_of_the_union(void **state)
{
    struct dice d = dice_new("join");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 2000; round++) {
        struct distinct parts[2] = {{.count = 0}}, whole = {0};
        struct text packed[2] = {0}, expected = {0}, found = {0};
        for (int p = 0; p < 2; p++) {
            for (size_t n = 1 + below(&d, round % 20 == 0 ? 700 : 40); n > 0; n--) {
                const uint32_t entry =
                    (uint32_t)(below(&d, round % 2 == 0 ? 50 : 2000) << 6 | (1 + below(&d, 39)));
                distinct_add_entry(&parts[p], &arena, entry);
                distinct_add_entry(&whole, &arena, entry);
            }
            distinct_pack(&parts[p], &packed[p]);
        }
        distinct_pack(&whole, &expected);
        const bool is_few = whole.mask != DISTINCT_MANY;
        assert_true(distinct_join(text_slice(&packed[0]), text_slice(&packed[1]), &found) == is_few);
        assert_true(is_few ? slice_equal(text_slice(&expected), text_slice(&found)) : found.len == 0);
        for (int p = 0; p < 2; p++)
            text_fini(&packed[p]);
        text_fini(&expected);
        text_fini(&found);
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

/* A slot that is among the few takes any number of events, and stays one bucket. */
/* Texts whose hashes have the same 26 bits count once, by the greatest rank, in whatever order they come; and
 * buckets that are widened are the same at once and one by one. */
static void test_unions_at_once_are_those_of_one_by_one(void **state)
{
    static union sketch parts[60];
    const union sketch *from[COUNT_OF(parts)];
    struct dice d = dice_new("at once");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1024);
    for (int round = 0; round < 400; round++) {
        const enum sketch_kind kind = round % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        const int schema = kind == SKETCH_HISTOGRAM && round % 4 == 0 ? 2 : HISTOGRAM_SCHEMA_MAX;
        const size_t count = below(&d, COUNT_OF(parts) + 1), different = 1 + below(&d, 2000);
        union sketch at_once = {0}, one_by_one = {0};
        struct text packed = {0}, expected = {0};
        memset(parts, 0, sizeof parts);
        for (size_t i = 0; i < count; i++) {
            from[i] = &parts[i];
            for (size_t n = below(&d, 60); n > 0; n--) {
                const uint64_t event = below(&d, different), hash = hash_of(event);
                if (kind == SKETCH_HISTOGRAM)
                    add_to(kind, &parts[i], &arena, event);
                else
                    distinct_add(&parts[i].distinct, &arena, hash >> 38 << 38 | (hash & 1) << below(&d, 38));
            }
        }
        sketch_unite_all(kind, &at_once, &arena, from, count, schema);
        for (size_t i = 0; i < count; i++)
            sketch_unite(kind, &one_by_one, &arena, from[i], schema);
        sketch_pack(kind, &at_once, &packed);
        sketch_pack(kind, &one_by_one, &expected);
        assert_int_equal(packed.len, expected.len);
        assert_true(packed.len == 0 || memcmp(packed.ptr, expected.ptr, packed.len) == 0);
        text_fini(&packed);
        text_fini(&expected);
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

static void test_few_slots_take_any_number_of_events(void **state)
{
    struct arena arena;
    struct text few = {0}, many = {0};
    (void)state;
    arena_init(&arena, 4096);
    union sketch one_by_one = {0}, at_once = {0};
    for (int64_t i = 1; i <= 3 * (int64_t)UINT16_MAX; i++) {
        histogram_add(&one_by_one.histogram, &arena, 7, 1);
        if (i % UINT16_MAX > 1) /* only about where counts are full */
            continue;
        assert_int_equal(histogram_count(&one_by_one.histogram), i);
        at_once = (union sketch){0};
        histogram_add(&at_once.histogram, &arena, 7, i);
        text_clear(&few);
        text_clear(&many);
        sketch_pack(SKETCH_HISTOGRAM, &one_by_one, &few);
        sketch_pack(SKETCH_HISTOGRAM, &at_once, &many);
        assert_true(slice_equal(text_slice(&few), text_slice(&many)));
    }
    arena_fini(&arena);
    text_fini(&few);
    text_fini(&many);
}

static void test_what_was_merged_can_be_cut_out_of_a_histogram(void **state)
{
    struct dice d = dice_new("sketch");
    struct text a = {0}, b = {0}, both = {0}, rest = {0};
    struct sketch_work work = {0};
    (void)state;
    scatter(SKETCH_HISTOGRAM, 500, &d, false, &a);
    scatter(SKETCH_HISTOGRAM, 300, &d, false, &b);
    assert_true(sketch_join(SKETCH_HISTOGRAM, text_slice(&a), text_slice(&b), &work, &both));
    assert_true(sketch_cut(SKETCH_HISTOGRAM, text_slice(&both), text_slice(&b), &work, &rest));
    assert_int_equal(rest.len, a.len);
    assert_memory_equal(rest.ptr, a.ptr, a.len);
    text_clear(&rest);
    assert_false(sketch_cut(SKETCH_HISTOGRAM, text_slice(&b), text_slice(&both), &work, &rest));
    text_clear(&a);
    scatter(SKETCH_DISTINCT, 30, &d, false, &a);
    assert_false(sketch_cut(SKETCH_DISTINCT, text_slice(&a), text_slice(&a), &work, &rest));
    text_clear(&rest);
    assert_true(sketch_cut(SKETCH_DISTINCT, text_slice(&a), slice_of("", 0), &work, &rest));
    assert_int_equal(rest.len, a.len);
    text_fini(&a);
    text_fini(&b);
    text_fini(&both);
    text_fini(&rest);
    sketch_work_fini(&work);
}

/* Damaged bytes are refused, or are those of another sketch: then packing it gives bytes that merge again. */
static void test_damaged_bytes_are_refused_or_of_another_sketch(void **state)
{
    struct dice d = dice_new("sketch");
    struct sketch_work work = {0};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        enum sketch_kind kind = i % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        struct text bytes = {0}, joined = {0}, again = {0};
        if (i % 3 == 0)
            scatter(kind, below(&d, i % 50 == 0 ? 900 : 30), &d, false, &bytes);
        else
            for (size_t n = below(&d, 20); n > 0; n--)
                text_putc(&bytes, (char)below(&d, 256));
        for (size_t n = below(&d, 3); n > 0 && bytes.len > 0; n--)
            bytes.ptr[below(&d, bytes.len)] = (char)below(&d, 256);
        if (sketch_join(kind, text_slice(&bytes), slice_of("", 0), &work, &joined)) {
            assert_true(sketch_join(kind, text_slice(&joined), text_slice(&joined), &work, &again));
            if (kind == SKETCH_DISTINCT)
                assert_true(again.len == joined.len &&
                            (again.len == 0 || memcmp(again.ptr, joined.ptr, again.len) == 0));
        }
        text_fini(&bytes);
        text_fini(&joined);
        text_fini(&again);
    }
    sketch_work_fini(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_buckets),
        cmocka_unit_test(test_widened_buckets_are_those_of_the_schema),
        cmocka_unit_test(test_no_number_is_far_from_the_value_of_its_bucket),
        cmocka_unit_test(test_quantiles_are_within_two_percent),
        cmocka_unit_test(test_few_texts_are_counted_exactly),
        cmocka_unit_test(test_few_slots_take_any_number_of_events),
        cmocka_unit_test(test_many_texts_are_counted_within_six_percent),
        cmocka_unit_test(test_any_order_has_the_same_bytes),
        cmocka_unit_test(test_entries_and_registers_merge_to_the_state_of_the_set),
        cmocka_unit_test(test_joined_entries_are_those_of_the_union),
        cmocka_unit_test(test_unions_at_once_are_those_of_one_by_one),
        cmocka_unit_test(test_what_was_merged_can_be_cut_out_of_a_histogram),
        cmocka_unit_test(test_damaged_bytes_are_refused_or_of_another_sketch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
