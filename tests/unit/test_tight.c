/* Tight sketches come back as the same bytes, in fewer bits; damaged ones are refused or become other ones,
 * within their bytes. */
#include "base/bits.h"
#include "store/sqlite/tight.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NUMBERS 1000

static const size_t counts[] = {0, 1, 2, 3, 7, 40, 400, 699, 700, 701, 5000, 300000};

/* A random number of any length. */
static uint64_t any_number(struct dice *d)
{
    return ((uint64_t)dice_roll(d, INT64_MAX) << 1 | (uint64_t)dice_roll(d, 2)) >> dice_roll(d, 64);
}

static void test_numbers_come_back(void **state)
{
    static uint8_t bytes[NUMBERS * 24];
    static uint64_t numbers[NUMBERS];
    static unsigned shifts[NUMBERS];
    struct dice d = dice_new("bits");
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct bits_out out = {.p = bytes, .end = bytes + sizeof bytes};
        for (int i = 0; i < NUMBERS; i++) {
            numbers[i] = any_number(&d);
            shifts[i] = (unsigned)dice_roll(&d, 32);
            numbers[i] >>= i % 4 == 1 || i % 4 == 3 ? (numbers[i] >> 32 != 0 ? 32 : 0) : 0;
            numbers[i] &= i % 4 == 1 ? ((uint64_t)1 << shifts[i]) - 1 : i % 4 == 2 ? 127 : UINT64_MAX;
            switch (i % 4) {
            case 0:
                bits_put_gamma(&out, numbers[i] |= 1);
                break;
            case 1:
                bits_put(&out, numbers[i], shifts[i]);
                break;
            case 2:
                bits_put_unary(&out, numbers[i]);
                break;
            default:
                shifts[i] = numbers[i] > 127 ? 63 - (unsigned)__builtin_clzll(numbers[i]) - 5 : shifts[i];
                bits_put_rice(&out, numbers[i], shifts[i]);
            }
        }
        struct bits_in in = {.p = bytes, .end = bits_finish(&out)};
        assert_false(out.failed);
        for (int i = 0; i < NUMBERS; i++) {
            assert_false(bits_end(&in) && i < NUMBERS - 1);
            assert_int_equal(numbers[i], i % 4 == 0   ? bits_get_gamma(&in)
                                         : i % 4 == 1 ? bits_get(&in, shifts[i])
                                         : i % 4 == 2 ? bits_get_unary(&in)
                                                      : bits_get_rice(&in, shifts[i]));
        }
        assert_true(bits_end(&in));
        (void)bits_get(&in, 32);
        assert_true(in.failed && !bits_end(&in));
    }
}

/* The last byte of the room is written, and none after it. */
static void test_writing_ends_with_the_room(void **state)
{
    (void)state;
    for (size_t room = 0; room < 8; room++) {
        uint8_t *bytes = malloc(room + 1);
        struct bits_out out = {.p = bytes, .end = bytes + room};
        bits_put(&out, 0, 32);
        bits_put_unary(&out, 20);
        bits_put_unary(&out, UINT64_MAX);
        assert_true(out.failed);
        out = (struct bits_out){.p = bytes, .end = bytes + room};
        for (size_t i = 0; i < room; i++)
            bits_put(&out, 255, 8);
        assert_true(bits_finish(&out) == bytes + room && !out.failed);
        bits_put(&out, 1, 8);
        (void)bits_finish(&out);
        assert_true(out.failed);
        free(bytes);
    }
}

/* The schema whose slots a histogram has. */
static int any_unit(struct dice *d)
{
    return HISTOGRAM_SCHEMA + (dice_roll(d, 3) == 0 ? (int)dice_roll(d, 5) : 0);
}

/* A sketch of so many events. Numbers are about as response times are; `odd` ones are of any size and come
 * any number of times. */
static union sketch add_events(struct dice *d, enum sketch_kind kind, int unit, size_t events, int64_t odd,
                               struct arena *arena)
{
    union sketch s = {0};
    for (size_t i = 0; i < events; i++) {
        int32_t slot = HISTOGRAM_SLOT_OF_ONE - 64;
        for (int k = 0; k < 8; k++)
            slot += (int32_t)dice_roll(d, 31) - 15;
        if (kind == SKETCH_DISTINCT)
            distinct_add(&s.distinct, arena, (uint64_t)dice_roll(d, INT64_MAX) << 1);
        else
            histogram_add(&s.histogram, arena,
                          histogram_slot_of_nth(slot * (1 << (unit - HISTOGRAM_SCHEMA)), unit), 1);
    }
    for (; odd > 0 && kind == SKETCH_HISTOGRAM; odd--)
        histogram_add(&s.histogram, arena,
                      histogram_slot_of_nth((int32_t)dice_roll(d, 2 * HISTOGRAM_NTHS(unit) - 1) -
                                                HISTOGRAM_NTHS(unit) + 1,
                                            unit),
                      (int64_t)(any_number(d) >> 1 | 1));
    for (; odd > 0 && kind == SKETCH_DISTINCT; odd--) /* its rank is any */
        distinct_add(&s.distinct, arena, (uint64_t)dice_roll(d, INT64_MAX) << dice_roll(d, 64));
    return s;
}

/* Its tight bytes, in memory of just their length. */
static struct slice tighten(enum sketch_kind kind, const union sketch *s, struct slice packed)
{
    struct text work = {0};
    uint8_t *room = malloc(tight_room(kind, s));
    const size_t len = tight_put(kind, s, room, &work);
    assert_true(len <= tight_room(kind, s) && len <= packed.len + TIGHT_BYTES_MORE);
    assert_true((len == 0) == (packed.len == 0));
    text_fini(&work);
    return slice_of(realloc(room, len > 0 ? len : 1), len);
}

/* Do tight bytes say the same to both of their readers? If `expected` is not NULL, it is what they say. */
static bool read_both(enum sketch_kind kind, struct slice tight, const struct text *expected)
{
    struct arena arena;
    union sketch gotten = {0}, merged = {0};
    struct text packed = {0}, one = {0}, two = {0};
    arena_init(&arena, 1 << 16);
    const bool good =
        tight_get(kind, tight, &packed) && sketch_merge(kind, &gotten, &arena, text_slice(&packed));
    assert_int_equal(tight_merge(kind, tight, &merged, &arena, &two), good);
    text_clear(&two);
    sketch_pack(kind, &gotten, &one);
    sketch_pack(kind, &merged, &two);
    assert_true(!good || slice_equal(text_slice(&one), text_slice(&two)));
    assert_true(expected == NULL || (good && slice_equal(text_slice(&packed), text_slice(expected))));
    text_fini(&packed);
    text_fini(&one);
    text_fini(&two);
    arena_fini(&arena);
    return good;
}

/* Joining tight bytes with a sketch writes what the union would be written as, or leaves it to the caller. */
static void test_joined_bytes_are_those_of_the_union(void **state)
{
    struct dice d = dice_new("join");
    size_t joined = 0, left = 0;
    (void)state;
    for (int round = 0; round < 8000; round++) {
        const enum sketch_kind kind = round % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        const int64_t most = round % 50 < 2 ? 3000 : 40;
        struct arena arena;
        struct text packed = {0};
        arena_init(&arena, 1 << 16);
        union sketch a =
            add_events(&d, kind, any_unit(&d), 1 + (size_t)dice_roll(&d, most), dice_roll(&d, 4) - 2, &arena);
        union sketch b =
            add_events(&d, kind, any_unit(&d), (size_t)dice_roll(&d, most), dice_roll(&d, 4) - 2, &arena);
        if (dice_roll(&d, 4) == 0)
            sketch_unite(kind, &b, &arena, &a, HISTOGRAM_SCHEMA_MAX);
        sketch_pack(kind, &a, &packed);
        struct slice old = tighten(kind, &a, text_slice(&packed));
        sketch_unite(kind, &a, &arena, &b, HISTOGRAM_SCHEMA_MAX);
        text_clear(&packed);
        sketch_pack(kind, &a, &packed);
        struct slice both = tighten(kind, &a, text_slice(&packed));
        uint8_t *room = malloc(TIGHT_JOINED_MAX);
        const size_t len = tight_join(kind, old, &b, room);
        joined += len > 0;
        left += len == 0;
        assert_true(len == 0 || (len == both.len && memcmp(room, both.ptr, len) == 0));
        assert_true(len <= packed.len);
        free(room);
        free((void *)(uintptr_t)old.ptr);
        free((void *)(uintptr_t)both.ptr);
        text_fini(&packed);
        arena_fini(&arena);
    }
    assert_true(joined > left && left > 10);
}

static void test_sketches_come_back(void **state)
{
    struct dice d = dice_new("tight");
    size_t others = 0;
    (void)state;
    for (int kind = SKETCH_HISTOGRAM; kind <= SKETCH_DISTINCT; kind++) {
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            for (size_t round = 0; round < 1 + 20000 / (1 + counts[i]); round++) {
                struct arena arena;
                struct text packed = {0};
                arena_init(&arena, 1 << 16);
                const union sketch s = add_events(&d, (enum sketch_kind)kind, any_unit(&d), counts[i],
                                                  dice_roll(&d, 5) - 2, &arena);
                sketch_pack((enum sketch_kind)kind, &s, &packed);
                struct slice tight = tighten((enum sketch_kind)kind, &s, text_slice(&packed));
                others += tight.len > packed.len;
                if (packed.len > 0)
                    (void)read_both((enum sketch_kind)kind, tight, &packed);
                free((void *)(uintptr_t)tight.ptr);
                text_fini(&packed);
                arena_fini(&arena);
            }
        }
    }
    assert_true(others > 100); /* some are shorter as they are packed */
}

/* `percent` is the most, of the packed bytes. By their entropy, sketches of a few events need some 60 %. */
static void test_they_are_shorter(void **state)
{
    static const struct {
        enum sketch_kind kind;
        size_t events;
        int percent;
    } cases[] = {{SKETCH_HISTOGRAM, 1, 67},    {SKETCH_HISTOGRAM, 7, 62},  {SKETCH_HISTOGRAM, 400, 45},
                 {SKETCH_HISTOGRAM, 5000, 60}, {SKETCH_DISTINCT, 1, 75},   {SKETCH_DISTINCT, 7, 75},
                 {SKETCH_DISTINCT, 400, 72},   {SKETCH_DISTINCT, 701, 35}, {SKETCH_DISTINCT, 4000, 45},
                 {SKETCH_DISTINCT, 300000, 72}};
    struct dice d = dice_new("shorter");
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        size_t loose = 0, tight = 0;
        for (size_t round = 0; round < 3 + 2000 / cases[c].events; round++) {
            struct arena arena;
            struct text packed = {0};
            arena_init(&arena, 1 << 16);
            const union sketch s =
                add_events(&d, cases[c].kind, HISTOGRAM_SCHEMA, cases[c].events, 0, &arena);
            sketch_pack(cases[c].kind, &s, &packed);
            struct slice bytes = tighten(cases[c].kind, &s, text_slice(&packed));
            loose += packed.len;
            tight += bytes.len;
            free((void *)(uintptr_t)bytes.ptr);
            text_fini(&packed);
            arena_fini(&arena);
        }
        if (tight * 100 > loose * (size_t)cases[c].percent)
            fail_msg("kind %d, %zu events: %zu bytes of %zu", cases[c].kind, cases[c].events, tight, loose);
    }
}

static void test_damaged_bytes_stay_within(void **state)
{
    struct dice d = dice_new("damaged");
    int refused = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const enum sketch_kind kind = round % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        struct arena arena;
        struct text packed = {0};
        arena_init(&arena, 1 << 16);
        const union sketch s = add_events(&d, kind, any_unit(&d),
                                          round % 100 == 0 ? 1000 : 1 + (size_t)dice_roll(&d, 40), 1, &arena);
        sketch_pack(kind, &s, &packed);
        struct slice tight = tighten(kind, &s, text_slice(&packed));
        char *bytes = malloc(tight.len > 0 ? tight.len : 1);
        memcpy(bytes, tight.ptr, tight.len);
        for (int64_t n = dice_roll(&d, 3); n >= 0; n--)
            bytes[dice_roll(&d, (int64_t)tight.len)] = (char)dice_roll(&d, 256);
        bytes = realloc(bytes, tight.len -= (size_t)dice_roll(&d, (int64_t)tight.len));
        const bool good = read_both(kind, slice_of(bytes, tight.len), NULL);
        uint8_t *room = malloc(TIGHT_JOINED_MAX);
        assert_true(tight_join(kind, slice_of(bytes, tight.len), &s, room) == 0 || good);
        refused += !good;
        free(room);
        free(bytes);
        free((void *)(uintptr_t)tight.ptr);
        text_fini(&packed);
        arena_fini(&arena);
    }
    assert_true(refused > 10000);
}

/* An entry whose rank has too many bits is damaged: no reader takes it for an entry of other bits. */
static void test_a_rank_is_no_other_entry(void **state)
{
    static const char damaged[] = "\xf2\xff\xff\xfc\0\0\0\0\0\0\0\0\0\0\0\x80";
    (void)state;
    assert_false(read_both(SKETCH_DISTINCT, slice_of(damaged, sizeof damaged - 1), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_back),
        cmocka_unit_test(test_writing_ends_with_the_room),
        cmocka_unit_test(test_sketches_come_back),
        cmocka_unit_test(test_joined_bytes_are_those_of_the_union),
        cmocka_unit_test(test_they_are_shorter),
        cmocka_unit_test(test_damaged_bytes_stay_within),
        cmocka_unit_test(test_a_rank_is_no_other_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
