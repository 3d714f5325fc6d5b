/* The newest events: whatever parts they come in, and in whatever order parts are merged, they are the same
 * bytes; and no damage gets through. */
#include "aggregate/bson_text.h"
#include "aggregate/recent.h"
#include "aggregate/recent_document.h"
#include "base/mem.h"
#include "ingest/distribution.h"
#include "ingest/record.h"
#include "tests/support/dice.h"
#include "verify/recent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENTS_MAX 400
#define PARTS      5

static struct slice document_of(struct recent_room *room, int64_t at_ms, int partition, int64_t offset,
                                const char *host)
{
    char place[32];
    struct event ev = {.at_ms = at_ms, .order = record_order(offset, 0), .present = 1 << FIELD_HOST};
    ev.field[FIELD_HOST] = slice_text(host);
    snprintf(place, sizeof place, "kafka:t/%d/", partition);
    return recent_document(room, NULL, 0, slice_text(place), &ev);
}

static int newer_first(const void *a, const void *b)
{
    return recent_compare(*(const struct slice *)b, *(const struct slice *)a);
}

/* The definition: sort all, take the first. */
static void pack_naively(struct slice *all, size_t count, uint32_t limit, struct text *out)
{
    text_clear(out);
    qsort(all, count, sizeof *all, newer_first);
    text_putc(out, (char)(limit < 128 ? limit : (limit & 127) | 128));
    if (limit >= 128)
        text_putc(out, 1);
    for (size_t i = 0; i < count && i < limit; i++)
        text_add(out, all[i].ptr, all[i].len);
}

static void test_parts_merge_in_any_order(void **state)
{
    struct dice d = dice_new("recent");
    struct arena arena;
    struct recent_room document = {.odd = {0}};
    struct text expected = {0}, packed[PARTS] = {{0}}, all = {0};
    (void)state;
    for (int round = 0; round < 300; round++) {
        const uint32_t limit = 1 + (uint32_t)dice_roll(&d, round % 3 == 0 ? RECENT_MAX : 9);
        const size_t count = 1 + (size_t)dice_roll(&d, EVENTS_MAX);
        const int64_t times = 1 + dice_roll(&d, 50); /* few: many events are of one instant */
        struct recent parts[PARTS] = {{0}}, merged = {0}, packed_merged = {0};
        struct slice events[EVENTS_MAX];
        arena_init(&arena, 4096);
        for (size_t i = 0; i < count; i++) {
            char host[200];
            const size_t zeros = (size_t)dice_roll(&d, 150);
            memset(host, '0', zeros);
            snprintf(host + zeros, sizeof host - zeros, "%zu", i);
            events[i] = arena_copy(&arena, document_of(&document, 1000 * dice_roll(&d, times),
                                                       (int)dice_roll(&d, 12), (int64_t)i, host));
            struct recent *part = &parts[dice_roll(&d, PARTS)];
            int64_t at_ms;
            struct slice place;
            assert_true(recent_key(events[i], &at_ms, &place));
            if (recent_wants(part, limit, at_ms))
                recent_add(part, &arena, limit, events[i]);
        }
        pack_naively(events, count, limit, &expected);
        int order[PARTS] = {0, 1, 2, 3, 4};
        for (int i = PARTS - 1; i > 0; i--) {
            int k = (int)dice_roll(&d, i + 1), swap = order[i];
            order[i] = order[k];
            order[k] = swap;
        }
        for (int i = 0; i < PARTS; i++) {
            text_clear(&packed[i]);
            recent_pack(&parts[order[i]], &packed[i]);
            recent_add_all(&merged, &arena, &parts[order[i]]);
            assert_true(recent_merge(&packed_merged, &arena, text_slice(&packed[i])));
        }
        assert_true(
            recent_merge(&packed_merged, &arena, text_slice(&packed[0]))); /* once more: nothing new */
        text_clear(&all);
        recent_pack(&merged, &all);
        assert_true(slice_equal(text_slice(&expected), text_slice(&all)));
        text_clear(&all);
        recent_pack(&packed_merged, &all);
        assert_true(slice_equal(text_slice(&expected), text_slice(&all)));
        arena_fini(&arena);
    }
    for (int i = 0; i < PARTS; i++)
        text_fini(&packed[i]);
    recent_room_fini(&document);
    text_fini(&expected);
    text_fini(&all);
}

/* Any byte may be wrong: what is merged then packs to what is sound. */
static void test_damage(void **state)
{
    struct dice d = dice_new("damage");
    struct recent_room document = {.odd = {0}};
    struct text packed = {0}, again = {0};
    struct arena arena;
    int refused = 0, told = 0;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct recent whole = {0}, damaged = {0}, sound = {0};
        arena_init(&arena, 4096);
        for (int i = 0; i < 4; i++)
            recent_add(&whole, &arena, 3, document_of(&document, 1000 * i, 0, i, "192.0.2.1"));
        text_clear(&packed);
        recent_pack(&whole, &packed);
        assert_true(recent_is_whole(text_slice(&packed)));
        packed.ptr[dice_roll(&d, (int64_t)packed.len)] ^= (char)(1 << dice_roll(&d, 8));
        const size_t len = round % 4 == 0 ? (size_t)dice_roll(&d, (int64_t)packed.len + 1) : packed.len;
        char *exact = xstrndup(packed.ptr, len); /* an address sanitizer sees each byte beyond it */
        const bool is_whole = recent_is_whole(slice_of(exact, len));
        told += !is_whole;
        if (!recent_merge(&damaged, &arena, slice_of(exact, len))) {
            assert_false(is_whole && len > 0);
            refused++;
        } else {
            text_clear(&again);
            recent_pack(&damaged, &again);
            assert_true(recent_merge(&sound, &arena, text_slice(&again)));
            assert_int_equal(sound.count, damaged.count);
        }
        free(exact);
        arena_fini(&arena);
    }
    assert_true(refused > 200);
    assert_true(told > refused + 100); /* merging does not look at members */
    recent_room_fini(&document);
    text_fini(&packed);
    text_fini(&again);
}

static void set_field(struct event *ev, enum field f, const char *text)
{
    ev->field[f] = slice_text(text);
    ev->present |= (uint64_t)1 << f;
}

/* A document as JSON, without its time and place. */
static const char *shown(struct slice document, struct text *json)
{
    struct slice members = bson_members(document);
    struct bson_member m;
    text_clear(json);
    assert_true(bson_member_next(&members, &m) && slice_is(m.name, "time"));
    assert_true(bson_member_next(&members, &m) && slice_is(m.name, "at"));
    while (bson_member_next(&members, &m)) {
        text_printf(json, "%.*s=", SLICE_ARGS(m.name));
        bson_member_json(&m, json);
        text_putc(json, ' ');
    }
    assert_int_equal(members.len, 0);
    return json->ptr;
}

static void test_documents(void **state)
{
    struct recent_room room = {.odd = {0}};
    struct text json = {0};
    struct slice document;
    struct event ev = {.at_ms = 1000, .order = record_order(5, 2)};
    char longest[RECENT_TEXT_BYTES + 1], longer[4 * RECENT_TEXT_BYTES];
    const enum field listed[] = {FIELD_PATH, FIELD_AGENT, FIELD_BYTES};
    struct slice place;
    int64_t at_ms;
    (void)state;
    set_field(&ev, FIELD_HOST, "192.0.2.1");
    set_field(&ev, FIELD_REQUEST, "GET /a HTTP/1.1");
    set_field(&ev, FIELD_METHOD, "GET");
    set_field(&ev, FIELD_TARGET, "/a");
    set_field(&ev, FIELD_PATH, "/a");
    set_field(&ev, FIELD_PROTOCOL, "HTTP/1.1");
    set_field(&ev, FIELD_STATUS, "200");
    ev.number[FIELD_STATUS] = 200;
    document = recent_document(&room, NULL, 0, slice_text("kafka:t/3/"), &ev);
    assert_string_equal(shown(document, &json), "host=\"192.0.2.1\" request=\"GET /a HTTP/1.1\" status=200 ");
    assert_true(recent_key(document, &at_ms, &place));
    assert_int_equal(at_ms, 1000);
    assert_true(slice_is(place, "kafka:t/3/0000000000000000005.000002"));

    ev.present &= ~((uint64_t)1 << FIELD_REQUEST);
    document = recent_document(&room, NULL, 0, slice_text(""), &ev);
    assert_string_equal(shown(document, &json),
                        "host=\"192.0.2.1\" method=\"GET\" target=\"/a\" protocol=\"HTTP/1.1\" status=200 ");

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    set_field(&ev, FIELD_AGENT, longest);
    document = recent_document(&room, listed, 3, slice_text(""), &ev);
    text_clear(&json);
    struct text expected = {0};
    text_printf(&expected, "path=\"/a\" user_agent=\"%s\" ", longest);
    assert_string_equal(shown(document, &json), expected.ptr);
    text_fini(&expected);

    memset(longer, 'y', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    set_field(&ev, FIELD_AGENT, longer);
    set_field(&ev, FIELD_REFERRER, longer);
    set_field(&ev, FIELD_TARGET, longer);
    set_field(&ev, FIELD_USER, longer);
    document = recent_document(&room, NULL, 0, slice_text(""), &ev);
    assert_non_null(strstr(shown(document, &json), "cut=true"));
    assert_true(document.len < RECENT_EVENT_BYTES);
    recent_room_fini(&room);
    text_fini(&json);
}

/* A histogram that is too wide is left out before it takes memory, and one that fits is not. */
static void test_a_wide_histogram_is_left_out(void **state)
{
    struct recent_room room = {.odd = {0}};
    struct text json = {0};
    char counts[100000];
    const enum field listed[] = {FIELD_VALUE};
    struct distribution many = {.count = 1};
    struct event ev = {.at_ms = 1000, .distribution = &many};
    (void)state;
    memset(counts, 1, sizeof counts);
    set_field(&ev, FIELD_VALUE, "1");
    ev.numeric = ev.present;
    many.sides[DISTRIBUTION_ABOVE_0].counts = slice_of(counts, sizeof counts);
    assert_string_equal(shown(recent_document(&room, listed, 1, slice_text(""), &ev), &json), "cut=true ");
    assert_true(room.odd.capacity < 64 * 1024);
    many.sides[DISTRIBUTION_ABOVE_0].counts.len = 200;
    assert_string_equal(shown(recent_document(&room, listed, 1, slice_text(""), &ev), &json), "cut=true ");
    many.sides[DISTRIBUTION_ABOVE_0].counts.len = 20;
    assert_non_null(strstr(shown(recent_document(&room, listed, 1, slice_text(""), &ev), &json), "value="));
    recent_room_fini(&room);
    text_fini(&json);
}

/* Beyond RECORD_ELEMENT_BITS, events of a record share a place: stores and the recount keep one of them. */
/* The lengths of documents that are in a document must fit, too. */
static void test_documents_within(void **state)
{
    char bytes[] = "\x10\0\0\0\x03"
                   "d\0"
                   "\x08\0\0\0\x0A"
                   "a\0\0"; /* {d: {a: null}} but for its last NUL */
    (void)state;
    assert_true(bson_is_whole(slice_of(bytes, sizeof bytes)));
    for (size_t len = 0; len < sizeof bytes; len++)
        assert_false(bson_is_whole(slice_of(bytes, len)));
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (bytes[i] == 'd' || bytes[i] == 'a' || bytes[i] == 0x03)
            continue; /* other names; an array */
        bytes[i]++;
        assert_false(bson_is_whole(slice_of(bytes, sizeof bytes)));
        bytes[i]--;
    }
}

static void test_the_recount_keeps_one_of_a_place(void **state)
{
    const struct recount_origin of = {.source = "kafka:t", .partition = "0"};
    const struct report r = {.newest = 3};
    const uint32_t most = (1U << RECORD_ELEMENT_BITS) - 1;
    struct recent_list l = {.list = NULL};
    size_t count;
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        const struct event ev = {.at_ms = 1000, .order = record_order(7, i < 3 ? most + i : most - i)};
        recent_list_add(&l, &r, 0, &ev, &of);
    }
    recent_list_cut(&l, r.newest);
    (void)recent_list_find(&l, 0, 0, &count);
    assert_int_equal(count, 3);
    assert_true(recent_compare(l.list[0].document, l.list[1].document) > 0);
    assert_true(recent_compare(l.list[1].document, l.list[2].document) > 0);
    recent_list_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_merge_in_any_order),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_documents_within),
        cmocka_unit_test(test_a_wide_histogram_is_left_out),
        cmocka_unit_test(test_the_recount_keeps_one_of_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
