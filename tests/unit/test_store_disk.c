/* The promises of store.h for stores that stay: opened again, by a second one, by readers. */
#include "store/mongo/handle/handle.h"
#include "store/sqlite/sqlite.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGES FIXTURE_PAGES
#define HITS  0

static int64_t hits_of(struct store *st, enum span resolution, const char *from, const char *to)
{
    int report = store_find_report(st, slice_text("pages"));
    assert_true(report >= 0);
    return world_sum(st, (size_t)report, resolution, world_every_series, fixture_ms(from), fixture_ms(to),
                     HITS);
}

/* Two in May, one in June. */
static void apply_three_hits(struct world *w)
{
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    world_hit(w, PAGES, "/a", "2015-05-17T23:59", 1);
    world_hit(w, PAGES, "/a", "2015-06-01", 1);
    world_apply(w, 100);
}

static bool count_series(void *context, uint32_t series, struct slice key)
{
    (void)series;
    (void)key;
    ++*(int *)context;
    return true;
}

static void test_reopened_store_goes_on_where_it_was(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++) {
        apply_three_hits(w);
        world_hit(w, PAGES, "/b", "2015-06-02", 1);
        world_apply(w, 1);
        world_reopen(w);
    }
    assert_int_equal(hits_of(w->store, SPAN_HOUR, "2015-05-17", "2015-05-18"), 6);
    assert_int_equal(hits_of(w->store, SPAN_MONTH, "2015-06-01", "2015-07-01"), 6);
    struct err e;
    int series = 0;
    assert_true(store_series_each(w->store, PAGES, count_series, &series, &e));
    assert_int_equal(series, 2);
}

static void test_second_writer_is_refused(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    assert_null(store_open(w->url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e));
    assert_int_equal(e.code, EX_TEMPFAIL);
    assert_true(e.retryable);
    apply_three_hits(w);
}

static void command(struct world *w, const char *json)
{
    struct err e;
    bson_t reply, *c = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(c);
    assert_true(mongo_write(mongo_of(w->store)->client, c, &reply, &e));
    bson_destroy(&reply);
    bson_destroy(c);
}

static void claim(struct store *st, struct range *r, const char *partition)
{
    struct err e = {0};
    *r = (struct range){.source = "access"};
    snprintf(r->partition, sizeof r->partition, "%s", partition);
    if (!store_claim(st, r, 1, &e))
        printf("%s\n", e.text);
}

static void test_claim_says_how_far_a_partition_is_counted(void **state)
{
    struct world *w = *state;
    struct range r[2] = {{.source = "access"}, {.source = "access", .partition = "7"}};
    struct err e;
    apply_three_hits(w);
    const struct batch *last = batcher_seal(w->batcher, "access", 100, 130);
    batcher_range(w->batcher)->tail_hash = UINT64_MAX - 5;
    batcher_range(w->batcher)->tail_len = 17;
    assert_true(store_apply(w->store, last, &e));
    for (int i = 0; i < 2; i++) { /* also where it is ours already */
        assert_true(store_claim(w->store, r, 2, &e));
        assert_int_equal(r[0].from, 130);
        assert_int_equal(r[0].to, 130);
        assert_true(r[0].tail_hash == UINT64_MAX - 5);
        assert_int_equal(r[0].tail_len, 17);
        assert_int_equal(r[1].from, -1);
        assert_int_equal(r[1].to, -1);
    }
    w->next = 130;
    apply_three_hits(w);
}

/* The writer that claims last counts from where the other one ended. The other one's later batches are
 * refused. */
static void test_claimed_partition_is_the_other_ones(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct range r;
    struct store *second = store_open(w->url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e);
    assert_non_null(second);
    assert_true(second->is_shared);
    apply_three_hits(w);
    claim(second, &r, "");
    assert_int_equal(r.to, 100);
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    assert_false(store_apply(w->store, batcher_seal(w->batcher, "access", 100, 200), &e));
    assert_int_equal(e.code, EX_TEMPFAIL);
    assert_false(e.retryable);
    claim(w->store, &r, ""); /* nothing of it was counted by the other one */
    assert_int_equal(r.to, 100);
    assert_true(store_apply(w->store, batcher_seal(w->batcher, "access", 100, 200), &e));
    claim(second, &r, "");
    assert_int_equal(r.to, 200);
    assert_int_equal(hits_of(second, SPAN_HOUR, "2015-05-17T10:00", "2015-05-17T11:00"), 2);
    store_close(second);
}

/* A writer that was silent for long finds its slot taken; it takes another and goes on. */
static void test_lost_slot_is_replaced(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct range r;
    apply_three_hits(w);
    command(w, "{\"update\": \"ledger\", \"updates\": [{\"q\": {\"_id\": \"ledger\"}, \"u\": {\"$inc\": "
               "{\"writers.w0.inc\": {\"$numberLong\": \"1\"}}}}, {\"q\": {\"_id\": \"w0\"}, \"u\": "
               "{\"$inc\": {\"inc\": {\"$numberLong\": \"1\"}}}}]}");
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    assert_false(store_apply(w->store, batcher_seal(w->batcher, "access", 100, 200), &e));
    assert_int_equal(e.code, EX_TEMPFAIL);
    assert_false(e.retryable);
    claim(w->store, &r, "");
    assert_int_equal(r.to, 100);
    assert_string_equal(mongo_of(w->store)->writer.slot, "w1");
    assert_true(store_apply(w->store, batcher_seal(w->batcher, "access", 100, 200), &e));
    assert_int_equal(hits_of(w->store, SPAN_HOUR, "2015-05-17T10:00", "2015-05-17T11:00"), 2);
}

/* In a server, several write; a source belongs to the one that took it last. */
static void test_second_writer_takes_over_a_source(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    apply_three_hits(w);
    struct store *second = store_open(w->url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e);
    if (second == NULL)
        printf("%s\n", e.text);
    assert_non_null(second);
    struct batcher *batcher = batcher_new(w->reports, FIXTURE_COUNT, 1);
    batcher_add(batcher, 0, PAGES, "/a", fixture_ms("2015-05-17T10:05"), (int64_t[]){1, 1});
    assert_true(store_apply(second, batcher_seal(batcher, "other", 0, 10), &e));
    apply_three_hits(w);
    batcher_clear(batcher);
    batcher_add(batcher, 0, PAGES, "/a", fixture_ms("2015-05-17T10:05"), (int64_t[]){1, 1});
    assert_true(store_apply(second, batcher_seal(batcher, "access", 200, 300), &e));
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    assert_false(store_apply(w->store, batcher_seal(w->batcher, "access", 200, 300), &e));
    assert_int_equal(e.code, EX_TEMPFAIL);
    assert_false(e.retryable);
    assert_false(store_apply(w->store, batcher_seal(w->batcher, "access", 200, 300), &e));
    assert_int_equal(e.code, EX_DATAERR); /* it took the source back, and there it goes on elsewhere */
    assert_true(store_apply(w->store, batcher_seal(w->batcher, "access", 300, 400), &e));
    assert_int_equal(hits_of(second, SPAN_HOUR, "2015-05-17T10:00", "2015-05-17T11:00"), 5);
    batcher_free(batcher);
    store_close(second);
}

/* Its batch is sealed, its documents are not there, and no further event of its source will ever come. */
static void test_what_a_dead_writer_left_is_finished_by_one_that_lives(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct store *second = store_open(w->url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e);
    assert_non_null(second);
    struct batcher *batcher = batcher_new(w->reports, FIXTURE_COUNT, 1);
    batcher_add(batcher, 0, PAGES, "/a", fixture_ms("2015-05-17T10:05"), (int64_t[]){1, 1});
    assert_true(store_apply(second, batcher_seal(batcher, "other", 0, 10), &e));
    command(w, "{\"delete\": \"pages.day\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}");
    command(w, "{\"delete\": \"pages.hour\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}");
    command(w, "{\"delete\": \"pages.minute\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}");
    mongo_of(w->store)->writer.kept_ms = 1; /* long ago */
    assert_true(store_housekeep(w->store, false, &e));
    assert_int_equal(hits_of(w->store, SPAN_HOUR, "2015-05-17", "2015-05-18"), 0); /* it lives */
    command(
        w,
        "{\"update\": \"ledger\", \"updates\": [{\"q\": {\"_id\": \"ledger\"}, \"u\": {\"$set\": "
        "{\"writers.w1.host\": \"gone\", \"writers.w1.lease\": {\"$date\": \"2020-01-01T00:00:00Z\"}}}}]}");
    mongo_of(w->store)->writer.kept_ms = 1;
    assert_true(store_housekeep(w->store, false, &e));
    assert_int_equal(hits_of(w->store, SPAN_HOUR, "2015-05-17", "2015-05-18"), 1);
    batcher_free(batcher);
    store_close(second);
}

/* It was carried out, its reply was lost, and another recovered the batch before it was sent again. */
static void test_seal_that_is_sent_again_counts_once(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    world_hit(w, PAGES, "/a", "2015-05-17T10:05", 1);
    const struct batch *batch = batcher_seal(w->batcher, "access", 0, 100);
    assert_true(store_apply(w->store, batch, &e));
    assert_true(store_housekeep(w->store, true, &e));
    mongo_of(w->store)->batch.step = STEP_COMMITTING;
    assert_true(store_apply(w->store, batch, &e));
    assert_int_equal(hits_of(w->store, SPAN_DAY, "2015-05-17", "2015-05-18"), 1);
    batcher_clear(w->batcher);
    w->next = 100;
    world_apply(w, 10);
}

/* A secondary's ledger may be old: a writer never asks a secondary. */
static void test_writer_reads_from_the_primary(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    char url[sizeof w->url + 64];
    const char *set = getenv("TALLYD_TEST_REPLICA_SET"); /* empty: the server is none's */
    bool is_of_one = set != NULL && *set != '\0';
    snprintf(url, sizeof url, "%s?readPreference=secondary%s%.16s", w->url, is_of_one ? "&replicaSet=" : "",
             is_of_one ? set : "");
    struct store *writer = store_open(url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e);
    assert_non_null(writer); /* the set of the server at hand has no secondary */
    store_close(writer);
}

static void test_reader_sees_what_was_applied_so_far(void **state)
{
    struct world *w = *state;
    struct err e;
    struct store *reader = store_open(w->url, STORE_READ, NULL, 0, &e);
    assert_non_null(reader);
    assert_int_equal(reader->report_count, FIXTURE_COUNT);
    int report = store_find_report(reader, slice_text("clients"));
    assert_true(report >= 0);
    assert_int_equal(reader->reports[report].dimension_count, 3);
    assert_string_equal(reader->reports[report].dimensions[1].name, "method");
    for (int i = 0; i < 4; i++) {
        apply_three_hits(w);
        if (i == 2)
            assert_true(store_housekeep(w->store, true, &e));
        assert_int_equal(hits_of(reader, SPAN_DAY, "2015-05-01", "2015-06-01"), 2 * (i + 1));
    }
    store_close(reader);
}

static void test_store_that_is_not_there_cannot_be_read(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    char url[sizeof w->url + 16];
    snprintf(url, sizeof url, "%s_missing", w->url);
    assert_null(store_open(url, STORE_READ, NULL, 0, &e));
    assert_int_equal(e.code, EX_NOINPUT);
}

static void test_changed_report_needs_a_new_generation(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct report changed;
    assert_true(report_init(&changed, slice_text("pages"), 1, &e));
    assert_true(report_add_dimension(&changed, slice_text("host"), &e));
    assert_true(report_finish(&changed, &e));
    store_close(w->store);
    w->store = store_open(w->url, STORE_WRITE, &changed, 1, &e);
    assert_null(w->store);
    assert_int_equal(e.code, EX_CONFIG);
    report_fini(&changed);
}

/* Its rows end with minutes; hours are nothing but another identity there. */
static void test_file_refuses_seconds(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    char url[sizeof w->url + 16];
    snprintf(url, sizeof url, "sqlite:%s/other.db", w->dir);
    fixture_lay_out(w->reports, LAYOUT_MINUTE);
    assert_null(store_open(url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e));
    assert_int_equal(e.code, EX_CONFIG);
    assert_non_null(strstr(e.text, "use a MongoDB store"));
    fixture_lay_out(w->reports, LAYOUT_HOUR);
    struct store *st = store_open(url, STORE_WRITE, w->reports, FIXTURE_COUNT, &e);
    assert_non_null(st);
    store_close(st);
}

/* A dictionary that outgrows its memory within a batch must not give a key of that batch a second number. */
static void test_forgetful_dictionary_numbers_each_key_once(void **state)
{
    struct world *w = *state;
    struct err e;
    char key[16];
    int series = 0;
    sqlite_limit_dictionary(w->store, 1);
    for (int batch = 0; batch < 3; batch++) {
        for (uint32_t shard = 0; shard < WORLD_SHARDS; shard++) {
            for (int i = 0; i < 400; i++) {
                snprintf(key, sizeof key, "/%d", i + batch * 100);
                batcher_add(w->batcher, shard, FIXTURE_PAGES, key, fixture_ms("2015-05-17"),
                            (int64_t[]){1, 1});
            }
        }
        world_apply(w, 1);
    }
    assert_true(store_series_each(w->store, FIXTURE_PAGES, count_series, &series, &e));
    assert_int_equal(series, 600);
    int64_t from = fixture_ms("2015-05-17"), to = fixture_ms("2015-05-18");
    for (int i = 0; i < 600; i++) {
        int batches = i < 100 || i >= 500 ? 1 : i < 200 || i >= 400 ? 2 : 3;
        snprintf(key, sizeof key, "/%d", i);
        struct series_set one = world_one_series(w->store, FIXTURE_PAGES, key);
        assert_int_equal(world_sum(w->store, FIXTURE_PAGES, SPAN_DAY, one, from, to, 0),
                         batches * WORLD_SHARDS);
    }
}

/* A report that is not configured for a while says which part of a source it does not count. */
static void test_report_that_was_away_knows_its_gap(void **state)
{
    struct world *w = *state;
    struct err e;
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17", 1);
    world_apply(w, 100);
    store_close(w->store);
    w->store = store_open(w->url, STORE_WRITE, w->reports, 1, &e); /* the first report alone */
    struct batcher *alone = batcher_new(w->reports, 1, 1);
    assert_true(store_apply(w->store, batcher_seal(alone, "access", 100, 250), &e));
    batcher_free(alone);
    w->next = 250;
    world_reopen(w);
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17", 1);
    world_apply(w, 50);
    for (size_t r = 0; r < FIXTURE_COUNT; r++) {
        assert_int_equal(world_book(w->store, "access", w->reports[r].name, "until"), 300);
        assert_int_equal(world_book(w->store, "access", w->reports[r].name, "gap.100"), r == 0 ? 0 : 250);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reopened_store_goes_on_where_it_was),
        TEST(test_reader_sees_what_was_applied_so_far),
        TEST(test_store_that_is_not_there_cannot_be_read),
        TEST(test_changed_report_needs_a_new_generation),
        TEST(test_report_that_was_away_knows_its_gap),
        TEST(test_claim_says_how_far_a_partition_is_counted),
    };
    const struct CMUnitTest of_file[] = {
        TEST(test_second_writer_is_refused),
        TEST(test_file_refuses_seconds),
        TEST(test_forgetful_dictionary_numbers_each_key_once),
    };
    const struct CMUnitTest of_server[] = {
        TEST(test_second_writer_takes_over_a_source),
        TEST(test_claimed_partition_is_the_other_ones),
        TEST(test_lost_slot_is_replaced),
        TEST(test_what_a_dead_writer_left_is_finished_by_one_that_lives),
        TEST(test_seal_that_is_sent_again_counts_once),
        TEST(test_writer_reads_from_the_primary),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        if (!world_kind->on_disk)
            continue;
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
        if (strcmp(world_kind->name, "sqlite") == 0)
            failed += cmocka_run_group_tests_name("of a file", of_file, NULL, NULL);
        else
            failed += cmocka_run_group_tests_name("of a server", of_server, NULL, NULL);
    }
    return failed;
}
