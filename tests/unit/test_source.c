/* Which file is this, and where does its counting go on? */
#include "base/check.h"
#include "daemon/source.h"
#include "ingest/file/identity.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct desk {
    struct scratch scratch;
    struct report reports[FIXTURE_COUNT];
    struct store *store;
    struct text text; /* 20 KB of different lines */
    struct source_options options;
    /* of the last file counted */
    struct range range;
    char note[640];
    bool is_known, is_empty;
};

static int setup(void **state)
{
    struct err e;
    struct desk *k = calloc(1, sizeof *k);
    scratch_make(&k->scratch);
    fixture_reports(k->reports);
    k->store = store_open("mem:", STORE_WRITE, k->reports, FIXTURE_COUNT, &e);
    k->options.line_max = 10000;
    for (int i = 0; i < 1000; i++)
        text_printf(&k->text, "this is line %06d\n", i);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    struct desk *k = *state;
    store_close(k->store);
    fixture_free(k->reports);
    text_fini(&k->text);
    scratch_remove(&k->scratch);
    free(k);
    return 0;
}

static const char *path_of(struct desk *k, const char *name)
{
    return scratch_path(&k->scratch, name);
}

/* The first `len` bytes of the text, as the file of that name. */
static void put(struct desk *k, const char *name, size_t len)
{
    scratch_write(path_of(k, name), slice_of(k->text.ptr, len));
}

static bool open_source(struct desk *k, const char *name, struct source *src, struct err *e)
{
    if (!source_open(src, path_of(k, name), k->store, &k->options, e))
        return false;
    k->range = src->range;
    k->is_known = src->is_known;
    k->is_empty = src->is_empty;
    snprintf(k->note, sizeof k->note, "%s", src->note);
    return true;
}

/* Read it to its end and store the position, as a pipeline does. Returns how many bytes were new. */
static int64_t count(struct desk *k, const char *name)
{
    struct source src;
    struct block block;
    struct err e;
    if (!open_source(k, name, &src, &e))
        fail_msg("%s", e.text);
    int64_t from = src.range.to;
    assert_true(src.is_empty || reader_offset(src.reader) == from);
    block_init(&block, k->options.line_max);
    while (reader_next(src.reader, &block, -1, &e) == READER_BLOCK)
        continue;
    block_fini(&block);
    struct batcher *b = batcher_new(k->reports, FIXTURE_COUNT, 1);
    const struct batch *batch = batcher_seal(b, src.range.source, from, reader_offset(src.reader));
    struct range *range = batcher_range(b);
    snprintf(range->label, sizeof range->label, "%s", src.range.label);
    range->tail_hash = identity_tail(reader_tail(src.reader), &range->tail_len);
    if (range->to > from)
        assert_true(store_apply(k->store, batch, &e));
    int64_t counted = range->to - from;
    source_close(&src);
    batcher_free(b);
    return counted;
}

/* The store has counted a followed file of this name up to `to`. */
static void know(struct desk *k, const char *source, const char *label, size_t to)
{
    struct err e;
    struct slice bytes = slice_of(k->text.ptr, to);
    struct batcher *b = batcher_new(k->reports, FIXTURE_COUNT, 1);
    const struct batch *batch = batcher_seal(b, source, 0, (int64_t)to);
    struct range *r = batcher_range(b);
    snprintf(r->label, sizeof r->label, "%s", path_of(k, label));
    r->tail_hash = identity_tail(bytes, &r->tail_len);
    source_set_head(r, identity_of(bytes));
    assert_true(store_apply(k->store, batch, &e));
    batcher_free(b);
}

static void assert_is(struct desk *k, const char *name, const char *source)
{
    struct source src;
    struct err e = {0};
    if (!open_source(k, name, &src, &e))
        fail_msg("%s", e.text);
    source_close(&src);
    assert_string_equal(k->range.source, source);
}

/* Names tell logs with the same bytes apart. */
static void test_files_with_the_same_bytes_are_told_apart_by_their_names(void **state)
{
    struct desk *k = *state;
    char id[IDENTITY_TEXT_BYTES], second[IDENTITY_TEXT_BYTES + 2], third[IDENTITY_TEXT_BYTES + 2];
    identity_print(identity_of(slice_of(k->text.ptr, 2000)), id);
    snprintf(second, sizeof second, "%s~2", id);
    snprintf(third, sizeof third, "%s~3", id);
    assert_int_equal(mkdir(path_of(k, "a"), 0700) | mkdir(path_of(k, "b"), 0700), 0);
    know(k, id, "a/log", 2000);
    know(k, second, "b/log", 2000);
    know(k, third, "b/other", 2000);
    put(k, "a/log.1", 2000);
    put(k, "b/log", 2000);
    put(k, "b/log.1", 2000);
    put(k, "log.1", 2000);
    put(k, "elsewhere", 2000);
    assert_is(k, "a/log.1", id);
    assert_is(k, "b/log", second);
    assert_is(k, "b/log.1", second);
    assert_is(k, "log.1", second); /* in `olddir`, perhaps */
    assert_is(k, "elsewhere", third);
}

/* A file with fewer bytes than the store knows of another one's beginning is not that. */
static void test_a_header_that_files_share_is_not_the_longer_file(void **state)
{
    struct desk *k = *state;
    char id[IDENTITY_TEXT_BYTES], second[IDENTITY_TEXT_BYTES + 2];
    identity_print(identity_of(slice_of(k->text.ptr, 40)), id);
    snprintf(second, sizeof second, "%s~2", id);
    know(k, second, "log", 40);
    know(k, id, "log", 2000);
    put(k, "log", 40);
    assert_is(k, "log", second);
    put(k, "log", 2000);
    assert_is(k, "log", id);
}

static void assert_refused(struct desk *k, const char *name, const char *words)
{
    struct source src;
    struct err e = {0};
    assert_false(open_source(k, name, &src, &e));
    assert_int_equal(e.code, EX_DATAERR);
    if (strstr(e.text, words) == NULL || strstr(e.text, name) == NULL ||
        strstr(e.text, "--source-id") == NULL)
        fail_msg("found \"%s\"", e.text);
    assert_null(src.in);
}

static void test_new_file_is_counted_from_its_first_byte(void **state)
{
    struct desk *k = *state;
    put(k, "log", 20000);
    assert_int_equal(count(k, "log"), 20000);
    assert_false(k->is_known);
    assert_string_equal(k->note, "");
    assert_int_equal(strncmp(k->range.source, "file:4096:", 10), 0);
    assert_non_null(strstr(k->range.label, "/log"));
}

static void test_unchanged_file_has_nothing_to_count(void **state)
{
    struct desk *k = *state;
    static const size_t lengths[] = {20, 2000, 4096, 20000}; /* shorter and longer than an identity */
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        char name[16];
        snprintf(name, sizeof name, "log%zu", i);
        k->text.ptr[0] = (char)('A' + (char)i); /* a file of its own each time */
        put(k, name, lengths[i] / 20 * 20);
        assert_int_equal(count(k, name), lengths[i] / 20 * 20);
        assert_int_equal(count(k, name), 0);
        assert_true(k->is_known);
        assert_string_equal(k->note, "");
    }
}

/* Also when it was first seen shorter than an identity is long, and cut anywhere. */
static void test_grown_file_goes_on_where_it_was(void **state)
{
    struct desk *k = *state;
    static const size_t lengths[] = {20, 25, 40, 2000, 4090, 4100, 9000, 20000};
    char source[RANGE_SOURCE_BYTES] = "";
    size_t before = 0;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        put(k, "log", lengths[i]);
        size_t whole = lengths[i] / 20 * 20;
        assert_int_equal(count(k, "log"), whole - before);
        assert_int_equal(k->is_known, before > 0);
        assert_true(i == 0 || strcmp(k->range.source, source) == 0);
        memcpy(source, k->range.source, sizeof source);
        before = whole;
    }
}

static void test_renamed_file_is_known(void **state)
{
    struct desk *k = *state;
    put(k, "log", 10000);
    count(k, "log");
    assert_int_equal(rename(path_of(k, "log"), path_of(k, "log.1")), 0);
    assert_int_equal(count(k, "log.1"), 0);
    assert_non_null(strstr(k->note, "was counted before as"));
    assert_non_null(strstr(k->note, "/log"));
    put(k, "log.1", 20000);
    assert_int_equal(count(k, "log.1"), 10000);
    assert_int_equal(count(k, "log.1"), 0);
    assert_string_equal(k->note, ""); /* the name last seen is the name */
}

static void test_packed_copy_is_known(void **state)
{
    struct desk *k = *state;
    put(k, "log", 10000);
    count(k, "log");
    scratch_write_gzip(path_of(k, "log.1.gz"), slice_of(k->text.ptr, 10000));
    assert_int_equal(count(k, "log.1.gz"), 0);
    assert_true(k->is_known);
    scratch_write_gzip(path_of(k, "log.1.gz"), slice_of(k->text.ptr, 20000));
    assert_int_equal(count(k, "log.1.gz"), 10000);
    scratch_write_gzip(path_of(k, "short.gz"), slice_of(k->text.ptr, 8000));
    assert_refused(k, "short.gz", "that were counted of it");
}

static void test_other_file_under_the_same_path_is_a_new_source(void **state)
{
    struct desk *k = *state;
    put(k, "log", 10000);
    count(k, "log");
    char source[RANGE_SOURCE_BYTES];
    memcpy(source, k->range.source, sizeof source);
    scratch_write(path_of(k, "log"), slice_of(k->text.ptr + 10000, 500));
    assert_int_equal(count(k, "log"), 500);
    assert_false(k->is_known);
    assert_string_not_equal(k->range.source, source);
    assert_non_null(strstr(k->note, "new content under an old name"));
    scratch_write(path_of(k, "other"), slice_of(k->text.ptr + 15000, 500));
    assert_int_equal(count(k, "other"), 500);
    assert_string_equal(k->note, "");
}

static void test_truncated_file_is_refused(void **state)
{
    struct desk *k = *state;
    put(k, "log", 20000);
    count(k, "log");
    put(k, "log", 19980);
    assert_refused(k, "log", "that were counted of it");
    put(k, "log", 5000);
    assert_refused(k, "log", "that were counted of it");
}

static void test_file_edited_before_its_position_is_refused(void **state)
{
    struct desk *k = *state;
    put(k, "log", 20000);
    count(k, "log");
    k->text.ptr[19999 - 4096] = '#'; /* not in the tail: cannot be seen */
    put(k, "log", 20000);
    assert_int_equal(count(k, "log"), 0);
    k->text.ptr[20000 - 4096] = '#';
    put(k, "log", 20000);
    assert_refused(k, "log", "since it was counted");
}

/* Two files that begin alike, as those of a fixed header do. */
static void test_file_that_begins_alike_is_refused_or_named(void **state)
{
    struct desk *k = *state;
    put(k, "one", 8000);
    count(k, "one");
    memset(k->text.ptr + 5000, 'z', 19);
    put(k, "two", 20000);
    assert_refused(k, "two", "since it was counted");
    k->options.source_id = "second";
    assert_int_equal(count(k, "two"), 20000);
    assert_string_equal(k->range.source, "id:second");
    assert_false(k->is_known);
    assert_int_equal(count(k, "two"), 0);
    assert_true(k->is_known);
    k->options.source_id = "third";
    assert_int_equal(count(k, "two"), 20000);
    k->options.source_id = NULL;
    assert_int_equal(count(k, "one"), 0); /* still itself */
}

static void test_longest_identity_wins(void **state)
{
    struct desk *k = *state;
    put(k, "early", 40); /* seen when it was short … */
    count(k, "early");
    char early[RANGE_SOURCE_BYTES];
    memcpy(early, k->range.source, sizeof early);
    k->options.source_id = "late";
    count(k, "early"); /* a source by name is no identity */
    k->options.source_id = NULL;
    put(k, "log", 20000);
    assert_int_equal(count(k, "log"), 20000 - 40);
    assert_string_equal(k->range.source, early);
}

static void test_source_id_that_is_too_long_is_refused(void **state)
{
    struct desk *k = *state;
    char id[RANGE_SOURCE_BYTES];
    struct source src;
    struct err e = {0};
    memset(id, 'n', sizeof id);
    put(k, "log", 100);
    for (size_t len = RANGE_SOURCE_BYTES - 10; len < RANGE_SOURCE_BYTES - 1; len++) {
        id[len] = '\0';
        k->options.source_id = id;
        bool fits = len + strlen("id:") < RANGE_SOURCE_BYTES;
        assert_int_equal(open_source(k, "log", &src, &e), fits);
        if (fits)
            source_close(&src);
        else
            assert_int_equal(e.code, EX_USAGE);
        id[len] = 'n';
    }
}

static void test_empty_file_is_nothing_yet(void **state)
{
    struct desk *k = *state;
    put(k, "log", 0);
    assert_int_equal(count(k, "log"), 0);
    assert_true(k->is_empty);
    put(k, "log", 2000);
    assert_int_equal(count(k, "log"), 2000);
    assert_false(k->is_empty || k->is_known);
}

static void test_missing_file_is_refused(void **state)
{
    struct desk *k = *state;
    struct source src;
    struct err e = {0};
    assert_false(open_source(k, "none", &src, &e));
    assert_int_equal(e.code, EX_NOINPUT);
    assert_non_null(strstr(e.text, "none"));
}

/* Without a store (a dry run into nothing) every file is new. */
static void test_without_positions_every_file_is_new(void **state)
{
    struct desk *k = *state;
    put(k, "log", 2000);
    count(k, "log");
    struct store *store = k->store;
    struct source src;
    struct err e;
    k->store = NULL;
    assert_true(open_source(k, "log", &src, &e));
    assert_false(src.is_known);
    assert_int_equal(src.range.to, 0);
    source_close(&src);
    k->store = store;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_new_file_is_counted_from_its_first_byte),
        TEST(test_unchanged_file_has_nothing_to_count),
        TEST(test_grown_file_goes_on_where_it_was),
        TEST(test_renamed_file_is_known),
        TEST(test_packed_copy_is_known),
        TEST(test_other_file_under_the_same_path_is_a_new_source),
        TEST(test_truncated_file_is_refused),
        TEST(test_file_edited_before_its_position_is_refused),
        TEST(test_file_that_begins_alike_is_refused_or_named),
        TEST(test_longest_identity_wins),
        TEST(test_files_with_the_same_bytes_are_told_apart_by_their_names),
        TEST(test_a_header_that_files_share_is_not_the_longer_file),
        TEST(test_source_id_that_is_too_long_is_refused),
        TEST(test_empty_file_is_nothing_yet),
        TEST(test_missing_file_is_refused),
        TEST(test_without_positions_every_file_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
