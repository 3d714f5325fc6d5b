#include "aggregate/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct report empty(const char *name)
{
    struct report r;
    struct err e;
    assert_true(report_init(&r, slice_text(name), 1, &e));
    return r;
}

static void must(bool good, const struct err *e)
{
    if (!good)
        fail_msg("%s", e->text);
}

static void test_report_default_measures(void **state)
{
    (void)state;
    struct err e;
    struct report r = empty("site");
    must(report_finish(&r, &e), &e);
    assert_string_equal(r.definition, "measure hits count\nmeasure bytes sum(bytes)\n");
    assert_int_equal(report_find_measure(&r, slice_text("hits")), 0);
    assert_int_equal(report_find_measure(&r, slice_text("bytes")), 1);
    assert_int_equal(report_find_measure(&r, slice_text("byte")), -1);
    assert_int_equal(report_find_dimension(&r, slice_text("path")), -1);
    report_fini(&r);
}

static void test_report_takes_every_listed_dimension(void **state)
{
    (void)state;
    struct err e;
    for (const char *const *name = report_dimension_names; *name != NULL; name++) {
        struct report r = empty("r");
        const char *text = strcmp(*name, "path:N") == 0 ? "path:9" : *name;
        must(report_add_dimension(&r, slice_text(text), &e), &e);
        assert_string_equal(r.dimensions[0].name, text);
        assert_int_equal(report_find_dimension(&r, slice_text(text)), 0);
    }
}

static void test_report_lists_every_field_it_takes(void **state)
{
    (void)state;
    struct err e;
    for (int f = 0; f < FIELD_COUNT; f++) {
        struct report r = empty("r");
        bool listed = false;
        for (const char *const *name = report_dimension_names; *name != NULL; name++)
            listed = listed || strcmp(*name, field_name((enum field)f)) == 0;
        assert_int_equal(report_add_dimension(&r, slice_text(field_name((enum field)f)), &e), listed);
        assert_int_equal(listed, f != FIELD_BYTES && f != FIELD_VALUE);
    }
}

static void test_report_dimension_kinds(void **state)
{
    (void)state;
    struct err e;
    struct report r = empty("r");
    must(report_add_dimension(&r, slice_text("path:2"), &e), &e);
    must(report_add_dimension(&r, slice_text("status_class"), &e), &e);
    must(report_add_dimension(&r, slice_text("referrer_host"), &e), &e);
    must(report_add_dimension(&r, slice_text("target"), &e), &e);
    assert_int_equal(r.dimensions[0].kind, DIMENSION_PATH_SEGMENTS);
    assert_int_equal(r.dimensions[0].field, FIELD_PATH);
    assert_int_equal(r.dimensions[0].segments, 2);
    assert_int_equal(r.dimensions[1].kind, DIMENSION_STATUS_CLASS);
    assert_int_equal(r.dimensions[1].field, FIELD_STATUS);
    assert_int_equal(r.dimensions[2].kind, DIMENSION_REFERRER_HOST);
    assert_int_equal(r.dimensions[2].field, FIELD_REFERRER);
    assert_int_equal(r.dimensions[3].kind, DIMENSION_FIELD);
    assert_int_equal(r.dimensions[3].field, FIELD_TARGET);
}

static void test_report_same_meaning_same_definition(void **state)
{
    (void)state;
    struct err e;
    struct report a = empty("a"), b = empty("b");
    must(report_add_condition(&a, slice_text("status<400"), &e), &e);
    must(report_add_condition(&a, slice_text("method=POST|GET"), &e), &e);
    must(report_add_condition(&b, slice_text("method = GET | POST"), &e), &e);
    must(report_add_condition(&b, slice_text("status < 400"), &e), &e);
    must(report_add_condition(&b, slice_text("status<400"), &e), &e);
    must(report_finish(&a, &e), &e);
    must(report_finish(&b, &e), &e);
    assert_string_equal(a.definition, b.definition);
    assert_int_equal(b.condition_count, 2);
    report_fini(&a);
    report_fini(&b);
}

/* The newest events are behind the measures: no loop over these sees them, but cells have room for them. */
static void test_report_newest(void **state)
{
    (void)state;
    static const char *const wrong[] = {"newest 0\n",
                                        "newest 151\n",
                                        "newest\n",
                                        "newest 5 host host\n",
                                        "newest 5 status_class\n",
                                        "newest 05\n",
                                        "measure newest count\nnewest 5\n"};
    const char *definition = "by path\nmeasure n count\nmeasure d distinct(host)\nnewest 50 host bytes\n";
    struct err e;
    struct report r;
    must(report_read(&r, slice_text("few"), 1, slice_text(definition), &e), &e);
    assert_string_equal(r.definition, definition);
    assert_int_equal(r.newest, 50);
    assert_int_equal(r.newest_field_count, 2);
    assert_int_equal(r.measure_count, 2);
    assert_int_equal(r.sketch_count, 1);
    assert_int_equal(r.column_count, 2);
    assert_int_equal(report_sketched(&r, 1)->kind, MEASURE_NEWEST);
    assert_int_equal(report_cell_values(&r), 2 + 2 * SKETCH_VALUES);
    report_fini(&r);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(report_read(&r, slice_text("few"), 1, slice_text(wrong[i]), &e));
    r = empty("few");
    must(report_add_newest_field(&r, slice_text("host"), &e), &e);
    assert_false(report_finish(&r, &e));
    assert_int_equal(e.code, EX_CONFIG);
    report_fini(&r);
}

static void test_report_sample(void **state)
{
    (void)state;
    static const char *const gauges[] = {"min(bytes)", "max(bytes)", "last(bytes)", "histogram(bytes)",
                                         "distinct(host)"};
    const char *definition =
        "measure n count\nmeasure bytes sum(bytes)\nmeasure size mean(bytes)\nsample 1/100\n";
    struct err e;
    struct report r;
    must(report_read(&r, slice_text("few"), 1, slice_text(definition), &e), &e);
    assert_int_equal(r.one_in, 100);
    assert_string_equal(r.definition, definition);
    report_fini(&r);
    assert_false(report_read(&r, slice_text("few"), 1, slice_text("measure n count\nsample 1/1\n"), &e));
    assert_false(report_read(&r, slice_text("few"), 1, slice_text("measure n count\nsample 1/0\n"), &e));
    for (size_t i = 0; i < COUNT_OF(gauges); i++) {
        r = empty("few");
        r.one_in = 2;
        must(report_add_measure(&r, slice_text("n"), slice_text("count"), &e), &e);
        must(report_add_measure(&r, slice_text("g"), slice_text(gauges[i]), &e), &e);
        assert_false(report_finish(&r, &e));
        assert_int_equal(e.code, EX_CONFIG);
        assert_non_null(strstr(e.text, gauges[i]));
        report_fini(&r);
    }
    r = empty("few");
    r.one_in = 2;
    must(report_add_measure(&r, slice_text("bytes"), slice_text("sum(bytes)"), &e), &e);
    assert_false(report_finish(&r, &e)); /* nothing tells its error */
    report_fini(&r);
}

static void test_report_refuses_names(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    "Pages", "1a", "_a",
        "a-b", "a b",   "é",  "a234567890123456789012345678901234567890123456789012345678901234"};
    struct report r;
    struct err e;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(report_init(&r, slice_text(bad[i]), 1, &e));
        assert_int_equal(e.code, EX_CONFIG);
    }
    assert_true(report_init(&r, slice_text("a23456789012345678901234567890123456789012345678901234567890123"),
                            1, &e));
    assert_false(report_init(&r, slice_text("a"), 0, &e));
    assert_false(report_init(&r, slice_text("Pages"), 1, &e));
    assert_string_equal(e.text,
                        "found \"Pages\", expected a name of a report: a-z, then a-z, 0-9 and _, at most 63");
}

static void test_report_refuses_pieces(void **state)
{
    (void)state;
    struct err e;
    struct report r = empty("r");
    struct slice path = slice_text("path"), n = slice_text("n"), count = slice_text("count");
    must(report_add_dimension(&r, path, &e), &e);
    must(report_add_measure(&r, n, count, &e), &e);
    struct report before = r;
    assert_false(report_add_dimension(&r, path, &e));
    assert_string_equal(e.text, "found dimension \"path\" twice, expected each once");
    assert_false(report_add_dimension(&r, slice_text("pth"), &e));
    assert_string_equal(e.text, "found \"pth\", expected a dimension (did you mean \"path\"?)");
    assert_false(report_add_dimension(&r, slice_text("path:0"), &e));
    assert_string_equal(e.text, "found \"path:0\", expected path:1 to path:9");
    assert_false(report_add_dimension(&r, slice_text("path:10"), &e));
    assert_string_equal(e.text, "found \"path:10\", expected path:1 to path:9");
    assert_false(report_add_dimension(&r, slice_text("bytes"), &e));
    assert_false(report_add_measure(&r, n, count, &e));
    assert_string_equal(e.text, "found measure \"n\" twice, expected each once");
    assert_false(report_add_measure(&r, slice_text("m"), slice_text("sum(byte)"), &e));
    assert_string_equal(e.text,
                        "found \"sum(byte)\", expected count; sum, min, max, last, mean or histogram of a "
                        "field with numbers; or distinct of dimensions (did you mean \"sum(bytes)\"?)");
    assert_false(report_add_measure(&r, slice_text("m"), slice_text("sum(path)"), &e));
    assert_string_equal(e.text,
                        "found \"sum(path)\", but path is a text: expected count; sum, min, max, last, "
                        "mean or histogram of a field with numbers; or distinct of dimensions");
    assert_false(report_add_measure(&r, slice_text("m"), slice_text("distinct(bytes)"), &e));
    assert_string_equal(
        e.text, "found \"distinct(bytes)\", but bytes is a number: expected count; sum, min, max, last, "
                "mean or histogram of a field with numbers; or distinct of dimensions");
    assert_false(report_add_measure(&r, slice_text("m"), slice_text("maxx(value)"), &e));
    assert_string_equal(e.text,
                        "found \"maxx(value)\", expected count; sum, min, max, last, mean or histogram of a "
                        "field with numbers; or distinct of dimensions (did you mean \"max(value)\"?)");
    assert_false(report_add_measure(&r, slice_text("m"), slice_text("distinct(byte)"), &e));
    assert_null(strstr(e.text, "distinct(bytes)")); /* which is no dimension */
    static const char *const others[] = {
        "",      "sum",          "sum(",        "sum()",       "(bytes)",     "sum(bytes", "sum (bytes)",
        "COUNT", "count(bytes)", "sum(bytes) ", "mean(Value)", "last(value)x"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(report_add_measure(&r, slice_text("m"), slice_text(others[i]), &e));
    assert_false(report_add_measure(&r, slice_text("M"), count, &e));
    assert_false(report_add_condition(&r, slice_text("status"), &e));
    assert_memory_equal(&r, &before, sizeof r);
    must(report_add_measure(&r, path, count, &e), &e);
    assert_false(report_finish(&r, &e));
    assert_string_equal(e.text,
                        "found measure \"path\" beside a dimension of that name, expected another name");
}

static void test_report_limits(void **state)
{
    (void)state;
    struct err e;
    struct report r = empty("r");
    for (int i = 0; i < REPORT_DIMENSIONS_MAX; i++) {
        char name[] = {'p', 'a', 't', 'h', ':', (char)('1' + i), '\0'};
        must(report_add_dimension(&r, slice_text(name), &e), &e);
    }
    assert_false(report_add_dimension(&r, slice_text("host"), &e));
    for (int i = 0; i < REPORT_MEASURES_MAX; i++) {
        char name[] = {'m', (char)('0' + i), '\0'};
        must(report_add_measure(&r, slice_text(name), slice_text("count"), &e), &e);
    }
    assert_false(report_add_measure(&r, slice_text("more"), slice_text("count"), &e));
    for (int i = 0; i < REPORT_CONDITIONS_MAX; i++)
        must(report_add_condition(&r, slice_text("status<400"), &e), &e);
    assert_false(report_add_condition(&r, slice_text("status<500"), &e));
}

static void test_report_read_refuses_what_is_not_its_own(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "by path\n",                                         /* measures are always written */
        "by path\nmeasure hits count",                       /* cut short */
        "measure hits count\nby path\n",                     /* another order */
        "by path\nwhere status < 400\nmeasure hits count\n", /* another spelling */
        "by path\nhaving path=a\nmeasure hits count\n",      /* a newer word */
        "by path\nmeasure hits\n",
        "by\n",
        "by path\n\nmeasure hits count\n",
        "by path\nmeasure path count\n",
        "layout hour\nmeasure hits count\n",
        "measure hits count\nlayout day\n", /* which has no line */
        "measure hits count\nlayout week\n",
        "measure hits count\nlayout\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct report r;
        struct err e = {0};
        assert_false(report_read(&r, slice_text("r"), 1, slice_text(bad[i]), &e));
        assert_int_equal(e.code, EX_DATAERR);
        assert_null(r.definition);
    }
}

static void test_report_piece_fields_finds_the_names(void **state)
{
    (void)state;
    static const struct {
        enum report_piece kind;
        const char *text, *name;
    } rows[] = {
        {PIECE_DIMENSION, "userid", "userid"},
        {PIECE_DIMENSION, "path", "path"},
        {PIECE_DIMENSION, "path:2", ""},
        {PIECE_DIMENSION, "status_class", ""},
        {PIECE_DIMENSION, "user id", ""},
        {PIECE_DIMENSION, " userid", ""},
        {PIECE_DIMENSION, "UserId", ""},
        {PIECE_DIMENSION, "a234567890123456789012345678901", "a234567890123456789012345678901"},
        {PIECE_DIMENSION, "a2345678901234567890123456789012", ""},
        {PIECE_CONDITION, "userid!=-", "userid"},
        {PIECE_CONDITION, " userid <= 3", "userid"},
        {PIECE_CONDITION, "userid", ""},
        {PIECE_CONDITION, "user id=3", ""},
        {PIECE_CONDITION, "referrer_host=a", ""},
        {PIECE_MEASURE, "sum(userid)", "userid"},
        {PIECE_MEASURE, "sum( userid )", "userid"},
        {PIECE_MEASURE, "sum(userid", ""},
        {PIECE_MEASURE, "count", ""},
        {PIECE_MEASURE, "count()", ""},
        {PIECE_MEASURE, "", ""},
        {PIECE_MEASURE, "distinct(host, userid)", "host userid"},
        {PIECE_MEASURE, "distinct(path:2,userid ,status_class)", "userid"},
        {PIECE_MEASURE, "distinct(a,b,c,d,e)", "a b c d"},
        {PIECE_MEASURE, "distinct(a,", "a"},
        {PIECE_MEASURE, "distinct(a,b", "a"},
        {PIECE_OTHER, "sum(userid)", ""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice names[MEASURE_DIMENSIONS_MAX];
        struct text found = {0};
        const size_t count = report_piece_fields(rows[i].kind, slice_text(rows[i].text), names);
        for (size_t k = 0; k < count; k++)
            text_printf(&found, "%s%.*s", k > 0 ? " " : "", SLICE_ARGS(names[k]));
        if (!slice_is(text_slice(&found), rows[i].name))
            fail_msg("%s: found \"%.*s\"", rows[i].text, SLICE_ARGS(text_slice(&found)));
        text_fini(&found);
    }
}

/* A store's definition stays readable where no source of today has its fields. */
static void test_definition_of_before_keys_is_the_same_report(void **state)
{
    (void)state;
    static const struct {
        const char *given, *stored;
        enum report_likeness likeness;
    } rows[] = {{"host_id key 0123456789abcdef\n", "given host_id key 0123456789abcdef\n", REPORT_IS_SAME},
                {"host_id key 0123456789abcdef\n", "", REPORT_WITHOUT_KEY},
                {"host_id key 0123456789abcdef\n", "given host_id key 0123456789abcdee\n", REPORT_DIFFERS},
                {"host_id key 0123456789abcdef\n", "given hour_of_day Asia/Tokyo\n", REPORT_DIFFERS},
                {"host_id key 0123456789abcdef\nhour_of_day Asia/Tokyo\n", "given hour_of_day Asia/Tokyo\n",
                 REPORT_WITHOUT_KEY},
                {"host_id key 0123456789abcdef\nhour_of_day Asia/Tokyo\n", "", REPORT_DIFFERS},
                {"hour_of_day Asia/Tokyo\n", "", REPORT_DIFFERS},
                {"", "", REPORT_IS_SAME},
                {"", "given host_id key 0123456789abcdef\n", REPORT_DIFFERS}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char stored[128];
        struct report r;
        struct err e;
        must(report_init(&r, slice_text("ids"), 1, &e), &e);
        must(report_add_measure(&r, slice_text("n"), slice_text("count"), &e), &e);
        report_set_given(&r, slice_text(rows[i].given));
        must(report_finish(&r, &e), &e);
        snprintf(stored, sizeof stored, "measure n count\n%s", rows[i].stored);
        assert_int_equal(report_compare(&r, stored), rows[i].likeness);
        report_fini(&r);
    }
}

static void test_report_read_takes_any_field_and_text(void **state)
{
    (void)state;
    static const char definition[] = "by dc_once\nwhere rack_once!=-\nmeasure hits count\n";
    static const char older[] = "by path\nwhere path==/x\nwhere status!=5xx\nmeasure hits count\n";
    struct report r;
    struct err e = {0};
    must(report_read(&r, slice_text("r"), 1, slice_text(definition), &e), &e);
    assert_string_equal(r.definition, definition);
    assert_string_equal(field_name(r.dimensions[0].field), "dc_once");
    report_fini(&r);
    /* and conditions that a configuration may not have any more */
    must(report_read(&r, slice_text("r"), 1, slice_text(older), &e), &e);
    assert_string_equal(r.definition, older);
    report_fini(&r);
}

static void add_random_pieces(struct report *r, unsigned *seed)
{
    static const char *const conditions[] = {"status<400", "agent!=*bot*", "path=*.html|*.php|/",
                                             "user!=-",    "bytes>0",      "host=192.0.2.*"};
    static const char *const measures[] = {"count", "sum(bytes)"};
    struct err e;
    for (int i = rand_r(seed) % REPORT_DIMENSIONS_MAX; i > 0; i--) {
        const char *name = report_dimension_names[rand_r(seed) % 16];
        if (!report_add_dimension(r, slice_text(name), &e))
            continue; /* "path:N", or there already */
    }
    for (int i = rand_r(seed) % REPORT_CONDITIONS_MAX; i > 0; i--)
        must(report_add_condition(r, slice_text(conditions[rand_r(seed) % 6]), &e), &e);
    for (int i = rand_r(seed) % REPORT_MEASURES_MAX; i > 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        must(report_add_measure(r, slice_text(name), slice_text(measures[rand_r(seed) % 2]), &e), &e);
    }
}

static void test_report_layout_is_part_of_the_definition(void **state)
{
    (void)state;
    static const char *const definitions[] = {
        "measure hits count\nmeasure bytes sum(bytes)\n",
        "measure hits count\nmeasure bytes sum(bytes)\nlayout hour\n",
        "measure hits count\nmeasure bytes sum(bytes)\nlayout minute\n",
    };
    struct err e;
    for (int i = 0; i < 3; i++) {
        struct report r = empty("r");
        r.layout = (enum report_layout)i;
        must(report_finish(&r, &e), &e);
        assert_string_equal(r.definition, definitions[i]);
        assert_int_equal(report_cell(&r), i == 2 ? SPAN_SECOND : SPAN_MINUTE);
        report_fini(&r);
    }
}

static void test_report_definition_reads_back(void **state)
{
    (void)state;
    unsigned seed = 2010;
    for (int i = 0; i < 2000; i++) {
        struct report r = empty("r"), again;
        struct err e;
        add_random_pieces(&r, &seed);
        r.layout = (enum report_layout)(rand_r(&seed) % 3);
        must(report_finish(&r, &e), &e);
        must(report_read(&again, slice_text("r"), 1, slice_text(r.definition), &e), &e);
        assert_string_equal(r.definition, again.definition);
        assert_memory_equal(r.dimensions, again.dimensions, r.dimension_count * sizeof *r.dimensions);
        assert_memory_equal(r.measures, again.measures, r.measure_count * sizeof *r.measures);
        assert_memory_equal(r.conditions, again.conditions, r.condition_count * sizeof *r.conditions);
        assert_int_equal(r.condition_count, again.condition_count);
        assert_int_equal(r.layout, again.layout);
        report_fini(&r);
        report_fini(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_default_measures),
        cmocka_unit_test(test_report_takes_every_listed_dimension),
        cmocka_unit_test(test_report_lists_every_field_it_takes),
        cmocka_unit_test(test_report_dimension_kinds),
        cmocka_unit_test(test_report_same_meaning_same_definition),
        cmocka_unit_test(test_report_sample),
        cmocka_unit_test(test_report_newest),
        cmocka_unit_test(test_report_refuses_names),
        cmocka_unit_test(test_report_refuses_pieces),
        cmocka_unit_test(test_report_limits),
        cmocka_unit_test(test_report_read_refuses_what_is_not_its_own),
        cmocka_unit_test(test_report_layout_is_part_of_the_definition),
        cmocka_unit_test(test_report_definition_reads_back),
        cmocka_unit_test(test_report_piece_fields_finds_the_names),
        cmocka_unit_test(test_report_read_takes_any_field_and_text),
        cmocka_unit_test(test_definition_of_before_keys_is_the_same_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
