/* What is known of files after a batch was stored is what the store would say. */
#include "base/check.h"
#include "daemon/file/known.h"
#include "daemon/source.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FIRST  "file:5:00000000000000a1"
#define SECOND "file:6:00000000000000b2"

struct stored {
    const char *source, *partition, *label;
    int64_t from, to;
    enum range_state state;
    int64_t host;
    struct identity head; /* length 0: none is given */
};

static void assert_equal(const struct known_file *a, const struct known_file *b)
{
    assert_string_equal(a->source, b->source);
    assert_string_equal(a->label, b->label);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->tail_hash, b->tail_hash);
    assert_int_equal(a->tail_len, b->tail_len);
    assert_int_equal(a->latest_ms, b->latest_ms);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->host, b->host);
    assert_int_equal(a->first.len, b->first.len);
    assert_int_equal(a->first.hash, b->first.hash);
    assert_int_equal(a->head.len, b->head.len);
    assert_int_equal(a->head.hash, b->head.hash);
}

static void test_noted_batches_are_known_as_read_ones(void **state)
{
    (void)state;
    static const struct stored steps[] = {
        {FIRST, "", "/a/log", 0, 10, RANGE_FOLLOWED, 7, {5, 0xa1}},
        {"kafka:access", "3", "access/3", 0, 5, RANGE_UNCHANGED, 0, {0}},
        {FIRST, "", "/a/log", 10, 30, RANGE_UNCHANGED, 0, {30, 0xa2}},
        {SECOND, "", "/b/log", 0, 4, RANGE_UNCHANGED, 0, {0}},
        {FIRST "~2", "", "/a/log", 0, 50, RANGE_FOLLOWED, 7, {50, 0xa3}},
        {FIRST, "", "/a/moved", 30, 30, RANGE_ENDED, 7, {30, 0xa2}},
        {SECOND, "", "/b/log", 4, 40, RANGE_LOST, 9, {0}},
    };
    struct err e;
    struct report reports[FIXTURE_COUNT];
    struct known noted = {0}, read;
    struct range r;
    fixture_reports(reports);
    struct store *st = store_open("mem:", STORE_WRITE, reports, FIXTURE_COUNT, &e);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        const struct stored *s = &steps[i];
        struct batcher *b = batcher_new(reports, FIXTURE_COUNT, 1);
        const struct batch *batch = batcher_seal(b, s->source, s->from, s->to);
        struct range *range = batcher_range(b);
        snprintf(range->label, sizeof range->label, "%s", s->label);
        snprintf(range->partition, sizeof range->partition, "%s", s->partition);
        range->tail_hash = (uint64_t)i;
        range->tail_len = (uint32_t)i + 1;
        range->latest_ms = 1000 + (int64_t)i;
        range->state = s->state != RANGE_UNCHANGED ? (int64_t)s->state + s->host * KNOWN_HOST : 0;
        if (s->head.len > 0)
            source_set_head(range, s->head);
        assert_true(store_apply(st, batch, &e));
        known_note(&noted, range);
        batcher_free(b);
        assert_true(known_read(&read, st, &e));
        assert_int_equal(noted.count, read.count);
        for (size_t n = 0; n < noted.count; n++)
            assert_equal(&noted.files[n], known_find(&read, noted.files[n].source));
        known_fini(&read);
    }
    assert_int_equal(noted.count, 3);
    known_range(known_find(&noted, FIRST), &r);
    assert_string_equal(r.label, "/a/moved");
    assert_true(r.from == 30 && r.to == 30 && r.tail_len == 6);
    assert_null(known_find(&noted, "kafka:access"));
    known_fini(&noted);
    store_close(st);
    fixture_free(reports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_noted_batches_are_known_as_read_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
