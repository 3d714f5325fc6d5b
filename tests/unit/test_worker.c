#include "daemon/count/worker.h"

#include "daemon/setup.h"
#include "daemon/source.h"
#include "store/backend/backend.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"
#include "verify/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_setup_decode_finds_the_source_of_a_file(void **state)
{
    (void)state;
    struct config *c =
        fixture_config("kafka: {brokers: b}\n"
                       "sources: {k: {type: kafka}, a: {path: /a}, b: {path: /b}, s: {type: stdin}}");
    assert_ptr_equal(setup_decode(c, "/b", NULL), &c->sources[2].decode);
    assert_ptr_equal(setup_decode(c, "/b", "/a"), &c->sources[2].decode);
    assert_ptr_equal(setup_decode(c, "/c", "/b"), &c->sources[2].decode);
    assert_ptr_equal(setup_decode(c, "/c", "/d"), &c->sources[1].decode);
    assert_ptr_equal(setup_decode(c, "/c", NULL), &c->sources[1].decode);
    assert_ptr_equal(setup_decode(c, "-", NULL), &c->sources[3].decode);
    config_free(c);
    c = fixture_config("kafka: {brokers: b}\nsources: {k: {type: kafka, decode: json}}");
    const struct decode *d = setup_decode(c, "/a", NULL);
    assert_int_equal(d->step_count, 1);
    assert_int_equal(d->steps[0].kind, STEP_LINE);
    assert_int_equal(d->steps[0].format, CLF_AUTO);
    config_free(c);
}

static void test_setup_parse_decode(void **state)
{
    (void)state;
    struct decode d;
    struct err e = {0};
    assert_true(setup_parse_decode("syslog,json:/a,combined", &d, &e));
    assert_int_equal(d.step_count, 3);
    assert_string_equal(d.steps[1].pointer, "/a");
    assert_false(setup_parse_decode("syslog", &d, &e));
    assert_string_equal(e.text, "found [syslog], expected a last step that makes events, as combined");
    assert_false(setup_parse_decode("combined,", &d, &e));
    assert_false(setup_parse_decode("", &d, &e));
}

static struct worker *new_worker(const struct config *c)
{
    struct worker *w = calloc(1, sizeof *w);
    struct pipeline_options pipeline = setup_pipeline(c, 1);
    struct worker_options options = {
        .decode = setup_decode(c, "/x", NULL), .line_max = pipeline.line_max, .shard = pipeline.shard};
    worker_init(w, 0, NULL, c->reports, c->report_count, &options);
    return w;
}

static void free_worker(struct worker *w)
{
    worker_fini(w);
    free(w);
}

static void give(struct worker *w, int64_t from, struct text *lines)
{
    assert_true(lines->len <= w->block.capacity);
    memcpy(w->block.data, lines->ptr, lines->len);
    w->block.len = lines->len;
    w->block.from = from;
    worker_count(w, INT64_MAX);
}

/* Plain lines and unwrapped ones alike. */
static void test_worker_order_is_the_offset_of_the_line(void **state)
{
    (void)state;
    static const char *const decodes[] = {"combined", "syslog, combined", "json"};
    static const char *const lines[] = {
        "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 7 \"-\" \"-\"\n",
        "<13>May 17 10:05:03 h app: h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 7 \"\" \"\"\n",
        "{\"ts\": 1431857103}\n"};
    for (size_t i = 0; i < COUNT_OF(decodes); i++) {
        char yaml[128];
        struct text block = {0};
        snprintf(yaml, sizeof yaml, "sources: {a: {decode: [%s]}}", decodes[i]);
        struct config *c = fixture_config(yaml);
        struct worker *w = new_worker(c);
        text_printf(&block, "%s%s", lines[i], lines[i]);
        give(w, 1000, &block);
        assert_int_equal(w->open.samples.count[REJECT_SYSLOG] + w->open.samples.count[REJECT_JSON], 0);
        assert_true(w->lane.events[0].at_ms == 1431857103000);
        assert_true(w->lane.events[0].order == record_order(1000, 0));
        assert_true(w->lane.events[1].order == record_order(1000 + (int64_t)strlen(lines[i]), 0));
        free_worker(w);
        config_free(c);
        text_fini(&block);
    }
}

/* Another source's lines, by the same worker: nothing of the events before stays. */
static void test_worker_decodes_otherwise_from_here_on(void **state)
{
    (void)state;
    struct config *c = fixture_config("sources: {a: {decode: json}, b: {path: /b, decode: common}}");
    struct worker *w = new_worker(c);
    struct text block = {0};
    text_puts(&block, "{\"ts\": 1431857103, \"agent\": \"a\\\\\\u00e4\"}\n");
    give(w, 0, &block);
    assert_true(w->lane.events[0].literal != 0);
    worker_set_decode(w, setup_decode(c, "/b", NULL), NULL);
    text_clear(&block);
    text_puts(&block, "h - \"\\\\ [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 7\n");
    give(w, 0, &block);
    assert_true(event_is_odd(&w->lane.events[0], FIELD_USER));
    assert_true(w->lane.events[0].literal == 0 && w->lane.events[0].numeric == 0);
    free_worker(w);
    config_free(c);
    text_fini(&block);
}

static bool take_position(void *context, const struct position *p)
{
    *(struct position *)context = *p;
    return true;
}

/* Lines with none, one or many events, and with rejects among them. */
static void add_metrics(struct text *lines, struct dice *dice)
{
    for (int64_t n = dice_roll(dice, 3) > 0 ? 1 : dice_roll(dice, 50), i = 0; i < n; i++) {
        text_puts(lines, i == 0 ? "[" : ",");
        if (dice_roll(dice, 10) == 0)
            text_puts(lines, "{\"name\": \"m\"}");
        else
            text_printf(
                lines,
                "{\"name\": \"m\\u0041%d\", \"ts\": %d, \"value\": %d, \"tags\": {\"rack\": \"r\\n%d\"}}",
                (int)dice_roll(dice, 5), 1431857103 + (int)dice_roll(dice, 300), (int)dice_roll(dice, 9),
                (int)dice_roll(dice, 20));
        if (i + 1 == n && dice_roll(dice, 20) > 0)
            text_putc(lines, ']');
    }
    text_putc(lines, '\n');
}

/* The judge decodes line by line, by a chain of its own, and comes to the same. */
static void test_worker_counts_what_the_judge_counts(void **state)
{
    (void)state;
    struct dice dice = dice_new("worker");
    struct scratch scratch;
    struct text lines = {0};
    struct err e;
    struct position position = {0};
    struct source src;
    struct verify v;
    atomic_bool stop = false;
    scratch_make(&scratch);
    struct config *c = fixture_config("sources: {a: {decode: metric}}\nlimits: {line_max: 16KiB}\n"
                                      "reports: {m: {by: [name, rack], measures: {n: count}}, all: }");
    for (int i = 0; i < 3000; i++)
        add_metrics(&lines, &dice);
    text_printf(&lines, "%020000d\n", 0);
    const char *path = scratch_path(&scratch, "log");
    scratch_write(path, text_slice(&lines));
    struct store *st = store_open("mem:", STORE_WRITE, c->reports, c->report_count, &e);
    struct pipeline_options options = setup_pipeline(c, 2);
    struct source_options source_options = {.line_max = (size_t)c->limits.line_max};
    options.decode = setup_decode(c, path, NULL);
    options.stop = &stop;
    assert_true(source_open(&src, path, st, &source_options, &e));
    struct pipeline *p = pipeline_new(st, c->reports, c->report_count, &options);
    assert_true(pipeline_run(p, src.reader, &src.range, &e));
    struct books books = pipeline_progress(p)->books;
    assert_true(books.entries[BOOK_PARSED] > 5000 && books_rejected(&books) > 500);
    bool more;
    verify_init(&v, c, st, stdout);
    assert_true(store_positions(st, take_position, &position, &e));
    assert_true(position.range.to == (int64_t)lines.len);
    assert_true(verify_file(&v, path, options.decode, NULL, &position, &more, &e) && verify_buckets(&v, &e));
    assert_int_equal(v.differences, 0);
    assert_int_equal(v.events, books.entries[BOOK_CONSUMED]);
    assert_true(v.compared > 500);
    verify_fini(&v);
    pipeline_free(p);
    source_close(&src);
    store_close(st);
    config_free(c);
    text_fini(&lines);
    scratch_remove(&scratch);
}

/* A producer may claim any time. */
static void test_latest_time_of_a_record_does_not_wrap(void **state)
{
    const struct record none = {.timestamp_ms = -1}, early = {.timestamp_ms = 1},
                        last = {.timestamp_ms = INT64_MAX};
    (void)state;
    assert_int_equal(record_latest(&none, 5, DAY_MS), 5);
    assert_int_equal(record_latest(&early, 5, DAY_MS), 1 + DAY_MS);
    assert_int_equal(record_latest(&last, 5, DAY_MS), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_setup_decode_finds_the_source_of_a_file),
        cmocka_unit_test(test_setup_parse_decode),
        cmocka_unit_test(test_latest_time_of_a_record_does_not_wrap),
        cmocka_unit_test(test_worker_order_is_the_offset_of_the_line),
        cmocka_unit_test(test_worker_decodes_otherwise_from_here_on),
        cmocka_unit_test(test_worker_counts_what_the_judge_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
