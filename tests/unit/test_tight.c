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

static const size_t counts[] = {1, 2, 3, 7, 40, 400, 699, 700, 701, 5000, 300000};

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

/* A packed sketch of so many events. Numbers are about as response times are; `odd` ones are of any size and
 * come any number of times. */
static void pack_events(struct dice *d, enum sketch_kind kind, size_t events, int64_t odd,
                        struct text *packed)
{
    struct arena arena;
    union sketch s = {0};
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < events; i++) {
        int32_t slot = HISTOGRAM_SLOT_OF_ONE - 64;
        for (int k = 0; k < 8; k++)
            slot += (int32_t)dice_roll(d, 31) - 15;
        if (kind == SKETCH_DISTINCT)
            distinct_add(&s.distinct, &arena, (uint64_t)dice_roll(d, INT64_MAX) << 1);
        else
            histogram_add(&s.histogram, &arena, slot, 1);
    }
    for (; odd > 0 && kind == SKETCH_HISTOGRAM; odd--)
        histogram_add(&s.histogram, &arena,
                      (int32_t)dice_roll(d, 2 * HISTOGRAM_SLOTS - 1) - HISTOGRAM_SLOTS + 1,
                      (int64_t)(any_number(d) >> 1 | 1));
    sketch_pack(kind, &s, packed);
    arena_fini(&arena);
}

/* Its tight bytes, in memory of just their length. */
static struct slice tighten(enum sketch_kind kind, struct slice packed)
{
    uint8_t *room = malloc(packed.len + TIGHT_BYTES_MORE);
    const size_t len = tight_put(kind, packed, room);
    assert_true(len > 0 && len <= packed.len + TIGHT_BYTES_MORE);
    return slice_of(realloc(room, len), len);
}

static void test_sketches_come_back(void **state)
{
    struct dice d = dice_new("tight");
    (void)state;
    for (int kind = SKETCH_HISTOGRAM; kind <= SKETCH_DISTINCT; kind++) {
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            for (size_t round = 0; round < 1 + 20000 / counts[i]; round++) {
                struct text packed = {0}, again = {0};
                pack_events(&d, (enum sketch_kind)kind, counts[i], dice_roll(&d, 5) - 2, &packed);
                struct slice tight = tighten((enum sketch_kind)kind, text_slice(&packed));
                assert_true(tight_get((enum sketch_kind)kind, tight, &again));
                assert_true(slice_equal(text_slice(&packed), text_slice(&again)));
                free((void *)(uintptr_t)tight.ptr);
                text_fini(&packed);
                text_fini(&again);
            }
        }
    }
}

/* Bytes that are no packed sketch, or none that has a tight form, come back, too. */
static void test_other_bytes_come_back(void **state)
{
    struct dice d = dice_new("other");
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const enum sketch_kind kind = round % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        struct text bytes = {0}, again = {0};
        if (round % 3 == 0)
            pack_events(&d, kind, 1 + (size_t)dice_roll(&d, 20), 1, &bytes);
        for (int64_t n = 1 + dice_roll(&d, 9); n > 0; n--)
            text_putc(&bytes, (char)dice_roll(&d, dice_roll(&d, 2) == 0 ? 256 : 4));
        struct slice tight = tighten(kind, text_slice(&bytes));
        assert_true(tight_get(kind, tight, &again));
        if (!slice_equal(text_slice(&bytes), text_slice(&again))) { /* a varint was longer than it need be */
            struct sketch_work work = {0};
            struct text one = {0}, two = {0};
            assert_true(again.len < bytes.len);
            const bool good = sketch_join(kind, text_slice(&bytes), slice_of(NULL, 0), &work, &one);
            assert_true(good == sketch_join(kind, text_slice(&again), slice_of(NULL, 0), &work, &two));
            assert_true(!good || slice_equal(text_slice(&one), text_slice(&two)));
            sketch_work_fini(&work);
            text_fini(&one);
            text_fini(&two);
        }
        free((void *)(uintptr_t)tight.ptr);
        text_fini(&bytes);
        text_fini(&again);
    }
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
                 {SKETCH_DISTINCT, 300000, 65}};
    struct dice d = dice_new("shorter");
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        size_t loose = 0, tight = 0;
        for (size_t round = 0; round < 3 + 2000 / cases[c].events; round++) {
            struct text packed = {0};
            pack_events(&d, cases[c].kind, cases[c].events, 0, &packed);
            struct slice bytes = tighten(cases[c].kind, text_slice(&packed));
            loose += packed.len;
            tight += bytes.len;
            free((void *)(uintptr_t)bytes.ptr);
            text_fini(&packed);
        }
        if (tight * 100 > loose * (size_t)cases[c].percent)
            fail_msg("kind %d, %zu events: %zu bytes of %zu", cases[c].kind, cases[c].events, tight, loose);
    }
}

static void test_damaged_bytes_stay_within(void **state)
{
    struct dice d = dice_new("damaged");
    struct sketch_work work = {0};
    int refused = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const enum sketch_kind kind = round % 2 == 0 ? SKETCH_HISTOGRAM : SKETCH_DISTINCT;
        struct text packed = {0}, again = {0}, joined = {0};
        pack_events(&d, kind, round % 100 == 0 ? 1000 : 1 + (size_t)dice_roll(&d, 40), 1, &packed);
        struct slice tight = tighten(kind, text_slice(&packed));
        char *bytes = malloc(tight.len);
        memcpy(bytes, tight.ptr, tight.len);
        for (int64_t n = dice_roll(&d, 3); n >= 0; n--)
            bytes[dice_roll(&d, (int64_t)tight.len)] = (char)dice_roll(&d, 256);
        bytes = realloc(bytes, tight.len -= (size_t)dice_roll(&d, (int64_t)tight.len));
        refused += !tight_get(kind, slice_of(bytes, tight.len), &again) ||
                   !sketch_join(kind, text_slice(&again), slice_of(NULL, 0), &work, &joined);
        free(bytes);
        free((void *)(uintptr_t)tight.ptr);
        text_fini(&packed);
        text_fini(&again);
        text_fini(&joined);
    }
    assert_true(refused > 10000);
    sketch_work_fini(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_back),  cmocka_unit_test(test_writing_ends_with_the_room),
        cmocka_unit_test(test_sketches_come_back), cmocka_unit_test(test_other_bytes_come_back),
        cmocka_unit_test(test_they_are_shorter),   cmocka_unit_test(test_damaged_bytes_stay_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
