/* Streams without HTTP: what each reads, who waits, who shares, how they end. */
#include "base/mem.h"
#include "tests/support/turning.h"
#include "tests/support/world.h"
#include "web/api.h"
#include "web/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STREAMS_MAX 3

/* The clients that wait; clients are numbers. */
struct waiting {
    pthread_mutex_t lock;
    bool is_suspended[STREAMS_MAX + 1];
};

struct fixture {
    void *world_state;
    struct world *w;
    struct report reports[FIXTURE_COUNT];
    struct status status;
    struct turning time;
    struct api api;
};

static struct waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int clients[STREAMS_MAX + 1];

static void suspend(void *client)
{
    pthread_mutex_lock(&waiting.lock);
    waiting.is_suspended[(int *)client - clients] = true;
    pthread_mutex_unlock(&waiting.lock);
}

static void resume(void *client)
{
    pthread_mutex_lock(&waiting.lock);
    assert_true(waiting.is_suspended[(int *)client - clients]);
    waiting.is_suspended[(int *)client - clients] = false;
    pthread_mutex_unlock(&waiting.lock);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    world_kind = &world_kinds[1];
    world_setup(&f->world_state);
    f->w = f->world_state;
    world_hit(f->w, FIXTURE_PAGES, "/a", "2015-05-17T10:05", 1);
    world_apply(f->w, 1);
    fixture_reports(f->reports);
    turning_init(&f->time, fixture_ms("2015-05-17T10:07"));
    status_init(&f->status, &(struct status_options){.clock = &f->time.clock,
                                                     .store = "sqlite:test.db",
                                                     .source = "test",
                                                     .reports = f->reports,
                                                     .report_count = FIXTURE_COUNT});
    pthread_mutex_init(&f->api.limits_lock, NULL);
    missed_cache_init(&f->api.missed);
    f->api.limits = (struct query_limits){.rows_max = 1000, .points_max = 200, .series_max = 10};
    quota_init(&f->api.memory, 1 << 20);
    f->api.status = &f->status;
    f->api.clock = &f->time.clock;
    readers_init(&f->api.readers, f->w->url, &f->time.clock);
    f->api.streams = streams_start(&f->api, &(struct streams_clients){suspend, resume}, STREAMS_MAX);
    assert_non_null(f->api.streams);
    memset(waiting.is_suspended, 0, sizeof waiting.is_suspended);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    streams_free(f->api.streams);
    readers_fini(&f->api.readers);
    pthread_mutex_destroy(&f->api.limits_lock);
    missed_cache_fini(&f->api.missed);
    status_fini(&f->status);
    fixture_free(f->reports);
    world_teardown(&f->world_state);
    free(f);
    return 0;
}

static struct stream *open_by(struct fixture *f, const char *report, const char *step, struct reply *rp)
{
    struct parameter parameters[] = {{slice_text("report"), slice_text(report)},
                                     {slice_text("step"), slice_text(step)}};
    *rp = (struct reply){0};
    return stream_open(f->api.streams, parameters, COUNT_OF(parameters), rp);
}

static struct stream *open_stream(struct fixture *f, const char *report, struct reply *rp)
{
    return open_by(f, report, "month", rp);
}

static struct stream *must_open_by(struct fixture *f, const char *report, const char *step)
{
    struct reply rp;
    struct stream *st = open_by(f, report, step, &rp);
    if (st == NULL)
        fail_msg("%s", rp.body.ptr);
    return st;
}

static struct stream *must_open(struct fixture *f, const char *report)
{
    return must_open_by(f, report, "month");
}

/* A frame, by bites of `size`; until the stream waits. */
static void read_frame(struct stream *st, int client, size_t size, struct text *out)
{
    char buf[4096];
    long len;
    assert_true(size <= sizeof buf);
    text_clear(out);
    while ((len = stream_read(st, &clients[client], buf, size)) > 0)
        text_add(out, buf, (size_t)len);
    assert_int_equal(len, 0);
}

static bool is_waiting(int client)
{
    pthread_mutex_lock(&waiting.lock);
    bool is = waiting.is_suspended[client];
    pthread_mutex_unlock(&waiting.lock);
    return is;
}

static void end(struct fixture *f, struct stream **streams, size_t count)
{
    char buf[16];
    streams_end(f->api.streams);
    for (size_t i = 0; i < count; i++) {
        assert_false(is_waiting((int)i));
        assert_int_equal(stream_read(streams[i], &clients[i], buf, sizeof buf), -1);
        stream_close(streams[i]);
    }
}

static void test_streams_of_one_question_read_the_same(void **state)
{
    struct fixture *f = *state;
    struct stream *streams[] = {must_open(f, "pages"), must_open(f, "pages"), must_open(f, "site")};
    struct text frames[COUNT_OF(streams)] = {{0}}, before = {0};
    read_frame(streams[0], 0, 1, &before);
    assert_non_null(strstr(
        before.ptr, "event: rows\ndata: {\"report\":\"pages\",\"measures\":[\"hits\"],\"step\":\"month\""));
    assert_non_null(strstr(before.ptr, "\n\nevent: status\ndata: {\"version\":"));
    assert_string_equal(before.ptr + before.len - 3, "}\n\n");
    turning_pass(&f->time, STREAMS_INTERVAL_MS - 1);
    assert_true(is_waiting(0));
    turning_pass(&f->time, 1);
    assert_false(is_waiting(0));
    for (int i = 0; i < 2; i++)
        read_frame(streams[i], i, 7, &frames[i]);
    assert_string_equal(frames[0].ptr, frames[1].ptr);
    read_frame(streams[2], 2, 9, &frames[2]);
    assert_string_not_equal(frames[0].ptr, before.ptr);
    assert_non_null(strstr(frames[2].ptr, "{\"report\":\"site\""));
    end(f, streams, COUNT_OF(streams));
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        text_fini(&frames[i]);
    text_fini(&before);
}

static int count_frames(const struct text *bytes)
{
    int count = 0;
    for (const char *p = bytes->ptr; (p = strstr(p, "event: rows\ndata: {")) != NULL; p++)
        count++;
    return count;
}

/* A slow client gets the frame that it began whole, and then the newest. */
static void test_slow_streams_miss_frames_but_no_byte_of_one(void **state)
{
    struct fixture *f = *state;
    struct stream *streams[] = {must_open(f, "pages"), must_open(f, "pages")};
    struct text slow = {0}, quick = {0}; /* slow: but for its first bytes */
    char buf[100];
    long len = stream_read(streams[1], &clients[1], buf, sizeof buf);
    assert_int_equal(len, sizeof buf);
    for (int i = 0; i < 3; i++) {
        read_frame(streams[0], 0, 4096, &quick);
        turning_pass(&f->time, STREAMS_INTERVAL_MS);
    }
    read_frame(streams[1], 1, 4096, &slow);
    assert_memory_equal(slow.ptr + slow.len - 3, "}\n\n", 3);
    assert_int_equal(count_frames(&slow), 1); /* the newest, behind the rest of the first */
    assert_memory_equal(buf, "event: rows", 11);
    end(f, streams, COUNT_OF(streams));
    text_fini(&slow);
    text_fini(&quick);
}

static const struct store_reader_ops *quick_ops;
static struct clock *dear_clock;
static int dear_ms; /* of a question of pages */

static bool scan_slowly(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                        struct scan_stats *stats, struct err *e)
{
    if (scan->report == FIXTURE_PAGES)
        clock_pass(dear_clock, dear_ms);
    return quick_ops->scan(st, scan, fn, context, stats, e);
}

/* Handles, in advance, for all who ask at once. */
static void make_pages_dear(struct fixture *f, int ms)
{
    static struct store_reader_ops ops;
    struct err e;
    dear_clock = &f->time.clock;
    dear_ms = ms;
    for (int i = 0; i < 2; i++) {
        struct store *st = store_open(f->w->url, STORE_READ, NULL, 0, &e);
        assert_non_null(st);
        quick_ops = st->reader;
        ops = *st->reader;
        ops.scan = scan_slowly;
        st->reader = &ops;
        readers_give(&f->api.readers, st, true);
    }
}

static void test_dear_question_does_not_slow_the_others(void **state)
{
    struct fixture *f = *state;
    make_pages_dear(f, 1000); /* due each 5 s */
    struct stream *streams[] = {must_open(f, "pages"), must_open(f, "site")};
    struct text bytes = {0};
    int frames = 0;
    for (read_frame(streams[0], 0, 4096, &bytes); is_waiting(0); frames++) {
        read_frame(streams[1], 1, 4096, &bytes);
        turning_pass(&f->time, STREAMS_INTERVAL_MS);
        assert_false(is_waiting(1));
    }
    assert_int_equal(frames, 4); /* one in each second that the thread has left */
    end(f, streams, COUNT_OF(streams));
    text_fini(&bytes);
}

/* Each alone takes a fifth of the time, and would be due each second. */
static void test_dear_questions_take_a_fifth_together(void **state)
{
    struct fixture *f = *state;
    make_pages_dear(f, STREAMS_INTERVAL_MS / STREAMS_SHARE);
    struct stream *streams[] = {must_open_by(f, "pages", "month"), must_open_by(f, "pages", "day")};
    struct text bytes = {0};
    int64_t begun_ms = clock_mono_ms(&f->time.clock);
    for (read_frame(streams[0], 0, 4096, &bytes); is_waiting(0);)
        turning_pass(&f->time, STREAMS_INTERVAL_MS / 20);
    assert_int_equal(clock_mono_ms(&f->time.clock) - begun_ms, 2 * STREAMS_INTERVAL_MS);
    end(f, streams, COUNT_OF(streams));
    text_fini(&bytes);
}

static void test_streams_have_a_limit(void **state)
{
    struct fixture *f = *state;
    struct stream *streams[STREAMS_MAX];
    struct reply rp;
    for (size_t i = 0; i < STREAMS_MAX; i++)
        streams[i] = must_open(f, i == 0 ? "site" : "pages");
    assert_null(open_stream(f, "site", &rp));
    assert_int_equal(rp.code, 503);
    text_fini(&rp.body);
    stream_close(streams[0]);
    streams[0] = must_open(f, "clients");
    end(f, streams, STREAMS_MAX);
    assert_null(open_stream(f, "site", &rp));
    assert_int_equal(rp.code, 503);
    text_fini(&rp.body);
}

static void test_wrong_questions_are_no_streams(void **state)
{
    struct fixture *f = *state;
    struct reply rp;
    assert_null(open_stream(f, "page", &rp));
    assert_int_equal(rp.code, 400);
    text_fini(&rp.body);
    end(f, NULL, 0);
}

int main(void)
{
#define STREAMS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        STREAMS_TEST(test_streams_of_one_question_read_the_same),
        STREAMS_TEST(test_slow_streams_miss_frames_but_no_byte_of_one),
        STREAMS_TEST(test_dear_question_does_not_slow_the_others),
        STREAMS_TEST(test_dear_questions_take_a_fifth_together),
        STREAMS_TEST(test_streams_have_a_limit),
        STREAMS_TEST(test_wrong_questions_are_no_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
