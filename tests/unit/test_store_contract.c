/* The promises of store.h, tested on every store. */
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGES FIXTURE_PAGES
#define HITS  0
#define BYTES 1

static int64_t sum_all(struct world *w, enum span span, const char *from, const char *to, size_t measure)
{
    return world_sum(w->store, PAGES, span, world_every_series, fixture_ms(from), fixture_ms(to), measure);
}

static bool count_position(void *context, const struct position *p)
{
    (void)p;
    ++*(int *)context;
    return true;
}

static bool count_book(void *context, const char *source, const char *partition, const char *report,
                       const char *entry, int64_t value)
{
    (void)source, (void)partition, (void)report, (void)entry, (void)value;
    ++*(int *)context;
    return true;
}

static bool count_series(void *context, uint32_t series, struct slice key)
{
    (void)series, (void)key;
    ++*(int *)context;
    return true;
}

static void test_empty_store_holds_nothing(void **state)
{
    struct world *w = *state;
    struct err e;
    int positions = 0, books = 0, series = 0;
    assert_true(store_positions(w->store, count_position, &positions, &e));
    assert_true(store_books(w->store, count_book, &books, &e));
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(positions + books + series, 0);

    uint32_t number;
    bool found = true;
    assert_true(store_series_find(w->store, PAGES, slice_text("/a"), &number, &found, &e));
    assert_false(found);
    for (enum span s = report_cell(&w->reports[PAGES]); s < SPAN_COUNT; s++)
        assert_int_equal(sum_all(w, s, "1970-01-01", "2100-01-01", HITS), 0);
    assert_true(store_housekeep(w->store, true, &e));
    assert_int_equal(store_find_report(w->store, slice_text("pages")), PAGES);
    assert_int_equal(store_find_report(w->store, slice_text("page")), -1);
}

static void test_empty_batch_moves_the_position_only(void **state)
{
    struct world *w = *state;
    struct err e;
    int positions = 0;
    world_apply(w, 0);
    world_apply(w, 10);
    assert_true(store_positions(w->store, count_position, &positions, &e));
    assert_int_equal(positions, 1);
    assert_int_equal(sum_all(w, SPAN_MONTH, "1970-01-01", "2100-01-01", HITS), 0);
}

struct seen {
    int64_t buckets[8], hits[8];
    size_t count;
};

static void see(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct seen *seen = context;
    (void)series;
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->buckets[i] == bucket_ms) {
            seen->hits[i] += values[HITS];
            return;
        }
    }
    ASSERT(seen->count < COUNT_OF(seen->buckets));
    seen->buckets[seen->count] = bucket_ms;
    seen->hits[seen->count++] = values[HITS];
}

/* `expected`: pairs of bucket and hits, NULL at the end. */
static void check_buckets(struct world *w, enum span span, const char *from, const char *to,
                          const char *const *expected, const int64_t *hits)
{
    struct err e;
    struct seen seen = {0};
    struct scan_stats stats = {0};
    struct scan scan = {PAGES, span, fixture_ms(from), fixture_ms(to), world_every_series, 1000, 0, NULL};
    assert_true(store_scan(w->store, &scan, see, &seen, &stats, &e));
    size_t count = 0;
    for (; expected[count] != NULL; count++) {
        size_t i = 0;
        while (i < seen.count && seen.buckets[i] != fixture_ms(expected[count]))
            i++;
        assert_true(i < seen.count);
        assert_int_equal(seen.hits[i], hits[count]);
    }
    assert_int_equal(seen.count, count);
    assert_true(stats.rows > 0 && stats.bytes > 0);
}

static void add_four_hits(struct world *w)
{
    world_hit(w, PAGES, "/a", "2015-05-17T10:05:00", 100);
    world_hit(w, PAGES, "/a", "2015-05-17T10:05:59.999", 10);
    world_hit(w, PAGES, "/a", "2015-05-17T23:59", 1);
    world_hit(w, PAGES, "/a", "2015-06-01", 1000);
}

static void check_four_hits(struct world *w)
{
    const char *from = "2015-05-01", *to = "2015-07-01";
    check_buckets(w, SPAN_MINUTE, from, to,
                  (const char *const[]){"2015-05-17T10:05", "2015-05-17T23:59", "2015-06-01", NULL},
                  (const int64_t[]){2, 1, 1});
    check_buckets(w, SPAN_HOUR, from, to,
                  (const char *const[]){"2015-05-17T10:00", "2015-05-17T23:00", "2015-06-01", NULL},
                  (const int64_t[]){2, 1, 1});
    check_buckets(w, SPAN_DAY, from, to, (const char *const[]){"2015-05-17", "2015-06-01", NULL},
                  (const int64_t[]){3, 1});
    check_buckets(w, SPAN_MONTH, from, to, (const char *const[]){"2015-05-01", "2015-06-01", NULL},
                  (const int64_t[]){3, 1});
    assert_int_equal(sum_all(w, SPAN_DAY, "2015-05-17", "2015-05-18", BYTES), 111);
}

static void test_counts_are_found_at_every_bucket(void **state)
{
    struct world *w = *state;
    struct err e;
    add_four_hits(w);
    world_apply(w, 400);
    check_four_hits(w);
    assert_true(store_housekeep(w->store, true, &e));
    check_four_hits(w);
}

static void test_range_of_a_scan_ends_before_to(void **state)
{
    struct world *w = *state;
    struct err e;
    add_four_hits(w);
    world_apply(w, 400);
    for (int housekeep = 0; housekeep < 2; housekeep++) {
        assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:05", "2015-05-17T10:06", HITS), 2);
        assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:06", "2015-05-17T23:59", HITS), 0);
        assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:04", "2015-05-17T10:05", HITS), 0);
        assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:05", "2015-05-17T10:05", HITS), 0);
        assert_int_equal(sum_all(w, SPAN_HOUR, "2015-05-17T11:00", "2015-05-17T23:00", HITS), 0);
        assert_int_equal(sum_all(w, SPAN_HOUR, "2015-05-17T23:00", "2015-05-18T00:00", HITS), 1);
        assert_int_equal(sum_all(w, SPAN_DAY, "2015-05-18", "2015-06-01", HITS), 0);
        assert_int_equal(sum_all(w, SPAN_MONTH, "2015-06-01", "2015-07-01", HITS), 1);
        assert_true(store_housekeep(w->store, true, &e));
    }
}

static void test_scan_of_one_all_or_some_series(void **state)
{
    struct world *w = *state;
    struct err e;
    char key[16];
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "/%d", i);
        world_hit(w, PAGES, key, i % 2 == 0 ? "2015-05-17T10:05" : "2015-05-18", 1 << (i % 8));
    }
    world_apply(w, 300);
    int64_t from = fixture_ms("2015-05-01"), to = fixture_ms("2015-06-01");
    for (int housekeep = 0; housekeep < 2; housekeep++) {
        for (enum span span = report_cell(&w->reports[PAGES]); span < SPAN_COUNT; span++) {
            assert_int_equal(world_sum(w->store, PAGES, span, world_every_series, from, to, HITS), 300);
            struct series_set one = world_one_series(w->store, PAGES, "/213");
            assert_int_equal(world_sum(w->store, PAGES, span, one, from, to, BYTES), 1 << (213 % 8));

            uint64_t bits[5] = {0};
            uint32_t other = world_one_series(w->store, PAGES, "/299").one;
            bits[one.one / 64] |= (uint64_t)1 << one.one % 64;
            bits[other / 64] |= (uint64_t)1 << other % 64;
            struct series_set set = {.kind = SERIES_SET, .bits = bits, .bits_max = 301};
            assert_int_equal(world_sum(w->store, PAGES, span, set, from, to, HITS), 2);
            set.bits_max = one.one < other ? other : one.one; /* now without the greater one */
            assert_int_equal(world_sum(w->store, PAGES, span, set, from, to, HITS), 1);
            set.bits_max = 0;
            assert_int_equal(world_sum(w->store, PAGES, span, set, from, to, HITS), 0);
        }
        assert_true(store_housekeep(w->store, true, &e));
    }
}

static void test_adding_twice_adds_up(void **state)
{
    struct world *w = *state;
    struct err e;
    for (int i = 0; i < 3; i++) {
        add_four_hits(w);
        world_apply(w, 400);
        if (i == 1)
            assert_true(store_housekeep(w->store, true, &e));
    }
    assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:05", "2015-05-17T10:06", HITS), 6);
    assert_int_equal(sum_all(w, SPAN_MONTH, "2015-05-01", "2015-06-01", BYTES), 333);
}

static void test_reports_are_kept_apart(void **state)
{
    struct world *w = *state;
    world_hit(w, FIXTURE_SITE, "", "2015-05-17", 7);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t200", "2015-05-17", 8);
    world_apply(w, 1);
    int64_t from = fixture_ms("2015-05-17"), to = fixture_ms("2015-05-18");
    assert_int_equal(world_sum(w->store, FIXTURE_SITE, SPAN_DAY, world_every_series, from, to, BYTES), 7);
    assert_int_equal(world_sum(w->store, FIXTURE_CLIENTS, SPAN_DAY, world_every_series, from, to, BYTES), 8);
    assert_int_equal(world_sum(w->store, PAGES, SPAN_DAY, world_every_series, from, to, BYTES), 0);
    assert_int_equal(world_one_series(w->store, FIXTURE_SITE, "").one, 1);
}

static void check_refused(struct world *w, int64_t from, int64_t to)
{
    struct err e = {0};
    int series = 0;
    assert_false(store_apply(w->store, batcher_seal(w->batcher, "access", from, to), &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_false(e.retryable);
    assert_int_equal(sum_all(w, SPAN_MONTH, "2015-05-01", "2015-06-01", HITS), 3);
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(series, 1);
    assert_int_equal(world_book(w->store, "access", "", "consumed"), 4);
}

static void test_range_that_does_not_continue_changes_nothing(void **state)
{
    struct world *w = *state;
    add_four_hits(w);
    *books_source(batcher_books(w->batcher, 0), BOOK_CONSUMED) = 4;
    world_apply(w, 400);
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    world_hit(w, PAGES, "/new", "2015-05-17T10:05", 1);
    *books_source(batcher_books(w->batcher, 0), BOOK_CONSUMED) = 2;
    check_refused(w, 0, 500);
    check_refused(w, 399, 500);
    check_refused(w, 401, 500);
    world_apply(w, 100); /* the same batch where it does continue */
    assert_int_equal(sum_all(w, SPAN_MONTH, "2015-05-01", "2015-06-01", HITS), 5);
    assert_int_equal(world_book(w->store, "access", "", "consumed"), 6);
}

static void test_partitions_advance_on_their_own(void **state)
{
    struct world *w = *state;
    struct err e;
    world_apply(w, 100);
    const struct batch *ba = batcher_seal(w->batcher, "access", 70, 80);
    strcpy(batcher_range(w->batcher)->partition, "1"); /* first sight: it may begin anywhere */
    assert_true(store_apply(w->store, ba, &e));
    assert_true(store_apply(w->store, batcher_seal(w->batcher, "other", 0, 5), &e));
    ba = batcher_seal(w->batcher, "access", 80, 90);
    strcpy(batcher_range(w->batcher)->partition, "1");
    assert_true(store_apply(w->store, ba, &e));
    world_apply(w, 100);
    int positions = 0;
    assert_true(store_positions(w->store, count_position, &positions, &e));
    assert_int_equal(positions, 3);
}

static void test_parts_of_several_shards_meet_in_one_series(void **state)
{
    struct world *w = *state;
    struct err e;
    int series = 0;
    int64_t at = fixture_ms("2015-05-17T10:05"), one[] = {1, 10};
    batcher_add(w->batcher, 0, PAGES, "/a", at, one);
    batcher_add(w->batcher, 0, PAGES, "/b", at, one);
    batcher_add(w->batcher, 1, PAGES, "/b", at, one);
    batcher_add(w->batcher, 2, PAGES, "/c", at, one);
    batcher_add(w->batcher, 2, PAGES, "/b", at, one);
    world_apply(w, 1);
    batcher_add(w->batcher, 1, PAGES, "/b", at, one); /* known: its key is not sent again */
    batcher_add(w->batcher, 1, PAGES, "/c", at, one);
    world_apply(w, 1);
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(series, 3);
    struct series_set b = world_one_series(w->store, PAGES, "/b");
    assert_int_equal(world_sum(w->store, PAGES, SPAN_MINUTE, b, at, at + MINUTE_MS, HITS), 4);
    assert_int_equal(sum_all(w, SPAN_MINUTE, "2015-05-17T10:05", "2015-05-17T10:06", BYTES), 70);
}

static void test_new_epoch_gives_numbers_a_new_meaning(void **state)
{
    struct world *w = *state;
    int64_t at = fixture_ms("2015-05-17T10:05"), one[] = {1, 0};
    batcher_add(w->batcher, 0, PAGES, "/a", at, one);
    batcher_add(w->batcher, 0, PAGES, "/b", at, one);
    batcher_add(w->batcher, 1, PAGES, "/a", at, one);
    world_apply(w, 1);
    batcher_new_epoch(w->batcher, 0);
    batcher_add(w->batcher, 0, PAGES, "/b", at, one); /* number 0 of the shard, which was /a */
    batcher_add(w->batcher, 0, PAGES, "/b", at, one);
    batcher_add(w->batcher, 1, PAGES, "/a", at, one); /* the other shard goes on in its epoch */
    world_apply(w, 1);
    struct series_set a = world_one_series(w->store, PAGES, "/a"),
                      b = world_one_series(w->store, PAGES, "/b");
    assert_int_equal(world_sum(w->store, PAGES, SPAN_MINUTE, a, at, at + MINUTE_MS, HITS), 3);
    assert_int_equal(world_sum(w->store, PAGES, SPAN_MINUTE, b, at, at + MINUTE_MS, HITS), 3);
}

static void test_series_beyond_the_limit_are_counted_as_other(void **state)
{
    struct world *w = *state;
    struct err e;
    int series = 0;
    w->reports[PAGES].series_max = 2;
    world_reopen(w);
    const char *keys[] = {"/a", "/b", "/c", "/d", "/a", "/c"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        world_hit(w, PAGES, keys[i], "2015-05-17T10:05", 10);
    world_apply(w, 1);
    batcher_new_epoch(w->batcher, 0);
    world_hit(w, PAGES, "/d", "2015-05-18", 10);
    world_hit(w, PAGES, "/b", "2015-05-18", 10); /* known before: under its own number for ever */
    world_apply(w, 1);

    struct series_set other = {.kind = SERIES_ONE, .one = STORE_SERIES_OTHER};
    int64_t from = fixture_ms("2015-05-01"), to = fixture_ms("2015-06-01");
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(series, 2);
    assert_int_equal(world_sum(w->store, PAGES, SPAN_DAY, other, from, to, HITS), 4);
    assert_int_equal(world_sum(w->store, PAGES, SPAN_DAY, other, from, to, BYTES), 40);
    struct series_set b = world_one_series(w->store, PAGES, "/b");
    assert_int_equal(world_sum(w->store, PAGES, SPAN_DAY, b, from, to, HITS), 2);
    assert_int_equal(world_book(w->store, "", "pages", "other"), 4);
    assert_int_equal(world_book(w->store, "", "site", "other"), 0);
    struct text key = {0};
    assert_true(store_series_key(w->store, PAGES, STORE_SERIES_OTHER, &key, &e));
    assert_string_equal(key.ptr, STORE_OTHER_KEY);
    text_fini(&key);
}

static void test_books_add_up_per_source_and_report(void **state)
{
    struct world *w = *state;
    for (int round = 0; round < 2; round++) {
        for (uint32_t s = 0; s < WORLD_SHARDS; s++) {
            struct books *books = batcher_books(w->batcher, s);
            *books_source(books, BOOK_CONSUMED) = 10;
            *books_source(books, BOOK_PARSED) = 8;
            *books_source(books, BOOK_REJECTED + REJECT_TIME) = 2;
            *books_report(books, PAGES, BOOK_REPORT_PARSED) = 8;
            *books_report(books, PAGES, BOOK_FILTERED) = 3;
            *books_report(books, PAGES, BOOK_COUNTED) = 5;
        }
        world_apply(w, 100);
        if (world_kind->on_disk)
            world_reopen(w);
    }
    assert_int_equal(world_book(w->store, "access", "", "consumed"), 60);
    assert_int_equal(world_book(w->store, "access", "", "parsed"), 48);
    assert_int_equal(world_book(w->store, "access", "", "rejected.time"), 12);
    assert_int_equal(world_book(w->store, "access", "", "rejected.bytes"), 0);
    assert_int_equal(world_book(w->store, "access", "pages", "parsed"), 48);
    assert_int_equal(world_book(w->store, "access", "pages", "filtered"), 18);
    assert_int_equal(world_book(w->store, "access", "pages", "counted"), 30);
    assert_int_equal(world_book(w->store, "access", "site", "parsed"), 0);
}

static bool keep_position(void *context, const struct position *p)
{
    *(struct position *)context = *p;
    return false;
}

static void test_position_keeps_all_of_the_last_range(void **state)
{
    struct world *w = *state;
    struct err e;
    world_apply(w, 100);
    const struct batch *ba = batcher_seal(w->batcher, "access", 100, 5000000000);
    strcpy(batcher_range(w->batcher)->label, "/var/log/access.log.1");
    batcher_range(w->batcher)->tail_hash = UINT64_MAX - 1;
    batcher_range(w->batcher)->tail_len = RANGE_TAIL_BYTES_MAX;
    batcher_range(w->batcher)->latest_ms = 1431829000123;
    assert_true(store_apply(w->store, ba, &e));
    for (int reopened = 0; reopened < 2; reopened++) {
        struct position p = {0};
        assert_true(store_positions(w->store, keep_position, &p, &e));
        assert_string_equal(p.range.source, "access");
        assert_string_equal(p.range.partition, "");
        assert_string_equal(p.range.label, "/var/log/access.log.1");
        assert_int_equal(p.range.from, 0);
        assert_int_equal(p.range.to, 5000000000);
        assert_true(p.range.tail_hash == UINT64_MAX - 1);
        assert_int_equal(p.range.tail_len, RANGE_TAIL_BYTES_MAX);
        assert_int_equal(p.range.latest_ms, 1431829000123);
        if (world_kind->on_disk)
            world_reopen(w);
    }
}

static void test_position_keeps_witnesses(void **state)
{
    struct world *w = *state;
    struct err e;
    struct range claimed = {.source = "kafka:access", .partition = "3"};
    const struct batch *ba = batcher_seal(w->batcher, claimed.source, 0, 500);
    strcpy(batcher_range(w->batcher)->partition, "3");
    for (int i = 0; i < 100; i++)
        witnesses_add(&batcher_range(w->batcher)->witnesses, 4 * i, UINT64_MAX - (uint64_t)i);
    assert_true(store_apply(w->store, ba, &e));
    for (int reopened = 0; reopened < 2; reopened++) {
        assert_true(store_claim(w->store, &claimed, 1, &e));
        assert_true(claimed.witnesses.at[WITNESSES_MAX - 1].hash == UINT64_MAX - 99);
        if (world_kind->on_disk)
            world_reopen(w);
    }
}

static void test_late_minutes_years_apart_each_find_their_place(void **state)
{
    static const char *const times[] = {"1970-01-01T00:00", "1999-12-31T23:59", "2000-02-29T12:00",
                                        "2015-01-31T23:59", "2015-02-01T00:00", "2016-02-28T23:59",
                                        "2016-02-29T23:59", "2016-03-01T00:00", "2038-01-19T03:14",
                                        "2100-02-28T23:59", "2100-03-01T00:00", "9999-12-31T23:59"};
    struct world *w = *state;
    struct err e;
    size_t count = COUNT_OF(times);
    while (fixture_ms(times[count - 1]) >= world_end_ms())
        count--;
    for (size_t i = 0; i < count; i++)
        world_hit(w, PAGES, "/a", times[count - 1 - i], 1);
    world_apply(w, 1);
    for (size_t i = 0; i < count; i += 2) {
        world_hit(w, PAGES, "/a", times[i], 1); /* a few in a batch of their own, oldest first */
        world_apply(w, 1);
    }
    for (int housekeep = 0; housekeep < 2; housekeep++) {
        for (size_t i = 0; i < count; i++) {
            int64_t minute = fixture_ms(times[i]), expected = i % 2 == 0 ? 2 : 1;
            for (enum span span = report_cell(&w->reports[PAGES]); span < SPAN_COUNT; span++) {
                int64_t from = span_floor(span, minute), to = span_next(span, from);
                bool two_in_it = span == SPAN_MONTH && strncmp(times[i], "2016-02", 7) == 0;
                assert_int_equal(world_sum(w->store, PAGES, span, world_every_series, from, to, HITS),
                                 two_in_it ? 3 : expected);
            }
        }
        assert_true(store_housekeep(w->store, true, &e));
    }
}

static void test_sums_stay_at_the_end_of_int64(void **state)
{
    struct world *w = *state;
    struct err e;
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", INT64_MAX - 5);
    world_hit(w, PAGES, "/b", "2015-05-17T10:05", INT64_MAX);
    world_hit(w, PAGES, "/c", "2015-05-17T10:05", (int64_t)1 << 62);
    world_apply(w, 1);
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 5);
    world_hit(w, PAGES, "/b", "2015-05-17T10:05", 1);
    world_hit(w, PAGES, "/c", "2015-05-17T10:06", (int64_t)1 << 62);
    world_apply(w, 1);
    for (int housekeep = 0; housekeep < 2; housekeep++) {
        int64_t from = fixture_ms("2015-05-17"), to = fixture_ms("2015-05-18");
        for (enum span s = report_cell(&w->reports[PAGES]); s <= SPAN_DAY; s++) {
            struct series_set a = world_one_series(w->store, PAGES, "/a");
            struct series_set b = world_one_series(w->store, PAGES, "/b");
            struct series_set c = world_one_series(w->store, PAGES, "/c");
            assert_true(world_sum(w->store, PAGES, s, a, from, to, BYTES) == INT64_MAX);
            assert_true(world_sum(w->store, PAGES, s, b, from, to, BYTES) == INT64_MAX);
            assert_true(world_sum(w->store, PAGES, s, c, from, to, BYTES) == INT64_MAX);
            assert_int_equal(world_sum(w->store, PAGES, s, c, from, to, HITS), 2);
        }
        assert_true(store_housekeep(w->store, true, &e));
    }
}

static bool check_key(void *context, uint32_t series, struct slice key)
{
    struct world *w = context;
    struct err e;
    struct text text = {0};
    uint32_t number = 0;
    bool found = false;
    assert_true(series >= 1 && series <= 3);
    text_puts(&text, "key=");
    assert_true(store_series_key(w->store, PAGES, series, &text, &e)); /* adds to it */
    assert_int_equal(text.len, 4 + key.len);
    assert_memory_equal(text.ptr + 4, key.ptr, key.len);
    assert_true(store_series_find(w->store, PAGES, key, &number, &found, &e));
    assert_true(found);
    assert_int_equal(number, series);
    text_fini(&text);
    return true;
}

static bool stop_at_once(void *context, uint32_t series, struct slice key)
{
    count_series(context, series, key);
    return false;
}

static void test_series_are_found_by_key_and_number(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    const char *keys[] = {"/a", "", "/caf\xc3\xa9 '\"%\\"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        world_hit(w, PAGES, keys[i], "2015-05-17T10:05", 1);
    world_apply(w, 1);
    int series = 0;
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(series, 3);
    assert_true(store_series_each(w->store, PAGES, check_key, w, &e));
    assert_true(store_series_each(w->store, PAGES, stop_at_once, &series, &e));
    assert_int_equal(series, 4);

    struct text text = {0};
    bool found = true;
    uint32_t number;
    assert_true(store_series_find(w->store, PAGES, slice_text("/A"), &number, &found, &e));
    assert_false(found);
    assert_false(store_series_key(w->store, PAGES, 4, &text, &e));
    assert_int_equal(e.code, EX_DATAERR);
    text_fini(&text);
}

static void test_scan_of_too_many_rows_is_refused(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct seen seen = {0};
    struct scan_stats stats = {0};
    int64_t from = fixture_ms("2015-05-01"), to = fixture_ms("2015-06-01");
    for (int day = 0; day < 20; day++)
        batcher_add(w->batcher, 0, PAGES, "/a", from + day * DAY_MS, (int64_t[]){1, 1});
    world_apply(w, 1);
    struct scan scan = {PAGES, SPAN_MINUTE, from, to, world_every_series, 5, 0, NULL};
    assert_false(store_scan(w->store, &scan, see, &seen, &stats, &e));
    assert_int_equal(e.code, EX_UNAVAILABLE);
    scan.series = world_one_series(w->store, PAGES, "/a");
    assert_false(store_scan(w->store, &scan, see, &seen, &stats, &e));
    assert_int_equal(e.code, EX_UNAVAILABLE);
    scan.series = world_every_series;
    scan.to_ms = fixture_ms("2015-05-06");
    assert_true(store_scan(w->store, &scan, see, &seen, &stats, &e));
}

static void test_url_of_no_store_is_refused(void **state)
{
    static const char *const urls[] = {"", "paper:", "sqlite", "sqlite:", "mem", "mem:x", "tallyd.db"};
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct err e = {0};
        assert_null(store_open(urls[i], STORE_WRITE, w->reports, FIXTURE_COUNT, &e));
        assert_int_equal(e.code, EX_USAGE);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_empty_store_holds_nothing),
        TEST(test_empty_batch_moves_the_position_only),
        TEST(test_counts_are_found_at_every_bucket),
        TEST(test_range_of_a_scan_ends_before_to),
        TEST(test_scan_of_one_all_or_some_series),
        TEST(test_adding_twice_adds_up),
        TEST(test_reports_are_kept_apart),
        TEST(test_range_that_does_not_continue_changes_nothing),
        TEST(test_partitions_advance_on_their_own),
        TEST(test_position_keeps_witnesses),
        TEST(test_parts_of_several_shards_meet_in_one_series),
        TEST(test_new_epoch_gives_numbers_a_new_meaning),
        TEST(test_series_beyond_the_limit_are_counted_as_other),
        TEST(test_books_add_up_per_source_and_report),
        TEST(test_position_keeps_all_of_the_last_range),
        TEST(test_late_minutes_years_apart_each_find_their_place),
        TEST(test_sums_stay_at_the_end_of_int64),
        TEST(test_series_are_found_by_key_and_number),
        TEST(test_scan_of_too_many_rows_is_refused),
        TEST(test_url_of_no_store_is_refused),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
