/* The values of a dimension, by prefix. */
#include "aggregate/dimension.h"
#include "base/mem.h"
#include "query/values.h"
#include "tests/support/asking.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void begin(struct query *q)
{
    static const struct query_limits limits = {.rows_max = 1000, .points_max = 100, .series_max = 50};
    query_init(q, 0, &limits);
    q->top = 3;
}

static const struct asking values = {begin, values_set, values_run};

static int setup(void **state)
{
    static const char *const pages[] = {"/b", "/a", "/ab\"", "/abc", "/c", "/\xc3\xa9", "x"};
    static const char *const clients[] = {"::1\tGET\t200", "::1\tPOST\t200", "h\tGET\t404", "h\tPUT\t200"};
    world_setup(state);
    for (size_t i = 0; i < COUNT_OF(pages); i++)
        world_hit(*state, FIXTURE_PAGES, pages[i], "2015-05-17T10:05", 1);
    for (size_t i = 0; i < COUNT_OF(clients); i++)
        world_hit(*state, FIXTURE_CLIENTS, clients[i], "2015-05-17T10:05", 1);
    world_apply(*state, 1);
    return 0;
}

static void test_values_are_sorted_and_end_at_the_limit(void **state)
{
    asking_check(&values, *state, PARAMETERS("report=pages"),
                 "{\"values\":[\"/a\",\"/ab\\\"\",\"/abc\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "dimension=path", "prefix=/a"),
                 "{\"values\":[\"/a\",\"/ab\\\"\",\"/abc\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/ab", "limit=1"),
                 "{\"values\":[\"/ab\\\"\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/abcd"),
                 "{\"values\":[],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/\xc3"),
                 "{\"values\":[\"/\xc3\xa9\"],\"more\":false}\n");
}

static void test_values_of_one_dimension_of_several_come_once(void **state)
{
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=host"),
                 "{\"values\":[\"::1\",\"h\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=method"),
                 "{\"values\":[\"GET\",\"POST\",\"PUT\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=method", "prefix=P", "limit=1"),
                 "{\"values\":[\"POST\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=status", "prefix=2"),
                 "{\"values\":[\"200\"],\"more\":false}\n");
}

static void test_refusals(void **state)
{
    asking_refused(&values, *state, PARAMETERS("report=page"), EX_USAGE, "did you mean \"pages\"?");
    asking_refused(&values, *state, PARAMETERS("report=clients"), EX_USAGE,
                   "report clients: unknown dimension");
    asking_refused(&values, *state, PARAMETERS("report=clients", "dimension=hots"), EX_USAGE,
                   "did you mean \"host\"?");
    asking_refused(&values, *state, PARAMETERS("report=site"), EX_USAGE, "there is none");
    asking_refused(&values, *state, PARAMETERS("report=pages", "limit=5x"), EX_USAGE, "limit: found");
    asking_refused(&values, *state, PARAMETERS("report=pages", "limit=-1"), EX_USAGE, "limit: found");
    asking_refused(&values, *state, PARAMETERS("report=pages", "from=now"), EX_USAGE, "unknown parameter");
}

static void test_other_has_no_texts(void **state)
{
    struct world *w = *state;
    w->reports[FIXTURE_PAGES].series_max = 1;
    world_reopen(w);
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T10:05", 1);
    world_hit(w, FIXTURE_PAGES, "(another)", "2015-05-17T10:05", 1);
    world_apply(w, 1);
    asking_check(&values, w, PARAMETERS("report=pages", "prefix=("), "{\"values\":[],\"more\":false}\n");
    asking_check(&values, w, PARAMETERS("report=pages", "limit=1", "prefix="),
                 world_kind->on_disk ? "{\"values\":[\"/a\"],\"more\":true}\n"
                                     : "{\"values\":[\"/a\"],\"more\":false}\n");
}

/* A long text has no more in common with its `_id` than how it begins. */
static void test_long_texts(void **state)
{
    struct world *w = *state;
    char key[2100], parameter[2120];
    memset(key, '/', sizeof key);
    memcpy(key, "long", 4);
    key[2000] = '\0';
    world_hit(w, FIXTURE_PAGES, key, "2015-05-17T10:05", 1);
    world_apply(w, 1);
    /* Its `_id` is three times as long, and cut at 900 bytes: short ones in small steps. */
    for (size_t len = 2000; len > 240; len -= len > 400 ? 350 : 10) {
        struct text expected = {0};
        text_printf(&expected, "{\"values\":[\"%s\"],\"more\":false}\n", key);
        snprintf(parameter, sizeof parameter, "prefix=%.*s", (int)len, key);
        asking_check(&values, w, PARAMETERS("report=pages", parameter), expected.ptr);
        snprintf(parameter, sizeof parameter, "prefix=%.*s!", (int)len, key);
        asking_check(&values, w, PARAMETERS("report=pages", parameter), "{\"values\":[],\"more\":false}\n");
        text_fini(&expected);
    }
}

/* ---- any texts, any prefix */

#define KEYS      120
#define QUESTIONS 60
#define TEXT_MAX  40

/* Bytes of which patterns, paths and names of documents are made; the greatest of ASCII, and of all. */
static const char *const pieces[] = {"/",
                                     "%",
                                     "%2F",
                                     ".",
                                     "*",
                                     "(other)",
                                     "$",
                                     "\\",
                                     "~",
                                     "[^a]",
                                     "a",
                                     "b",
                                     "-",
                                     "!",
                                     "&",
                                     " ",
                                     "\"",
                                     "_id",
                                     "0",
                                     "\xc3\xa9",
                                     "\xe2\x82\xac",
                                     "\xf0\x9f\x98\x80",
                                     "\xf4\x8f\xbf\xbf"};

struct game {
    struct dice dice;
    char keys[2][KEYS][3 * TEXT_MAX]; /* of pages, and of clients */
};

static size_t roll_text(struct dice *dice, char *to)
{
    size_t len = 0;
    to[0] = '\0';
    for (int64_t left = dice_roll(dice, 5); left > 0; left--)
        len += (size_t)snprintf(to + len, TEXT_MAX - len, "%s",
                                pieces[dice_roll(dice, dice_roll(dice, COUNT_OF(pieces)) + 1)]);
    return len;
}

static void fill(struct game *g, struct world *w)
{
    static const size_t reports[] = {FIXTURE_PAGES, FIXTURE_CLIENTS};
    for (size_t r = 0; r < COUNT_OF(reports); r++) {
        for (size_t i = 0; i < KEYS; i++) {
            char *key = g->keys[r][i];
            size_t len = roll_text(&g->dice, key);
            for (size_t d = 1; d < w->reports[reports[r]].dimension_count; d++) {
                key[len++] = '\t';
                len += roll_text(&g->dice, key + len);
            }
            world_hit(w, reports[r], key, "2015-05-17T10:05", 1);
        }
    }
    world_apply(w, 1);
}

static struct slice text_of(struct slice key, size_t dimension)
{
    struct slice text = dimension_next(&key);
    for (size_t d = 0; d < dimension; d++)
        text = dimension_next(&key);
    return text;
}

/* The least text above `after` that begins with the prefix, by looking at every key; NULL: there is none. */
static struct slice next_of(const char (*keys)[3 * TEXT_MAX], size_t count, size_t dimension,
                            struct slice prefix, struct slice after)
{
    struct slice least = {0};
    for (size_t i = 0; i < count; i++) {
        struct slice text = text_of(slice_text(keys[i]), dimension);
        bool is_after = after.ptr == NULL || slice_compare(text, after) > 0;
        if (is_after && text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0 &&
            (least.ptr == NULL || slice_compare(text, least) < 0))
            least = text;
    }
    return least;
}

static void write_expected(const struct game *g, size_t report, size_t dimension, struct slice prefix,
                           uint64_t limit, struct text *out)
{
    /* of those from setup(), too */
    static const char pages[][3 * TEXT_MAX] = {"/b", "/a", "/ab\"", "/abc", "/c", "/\xc3\xa9", "x"};
    static const char clients[][3 * TEXT_MAX] = {"::1\tGET\t200", "::1\tPOST\t200", "h\tGET\t404",
                                                 "h\tPUT\t200"};
    struct slice last = {0};
    uint64_t count = 0;
    text_clear(out);
    text_puts(out, "{\"values\":[");
    for (;; count++) {
        struct slice one = next_of(g->keys[report], KEYS, dimension, prefix, last);
        struct slice two = report == 0 ? next_of(pages, COUNT_OF(pages), dimension, prefix, last)
                                       : next_of(clients, COUNT_OF(clients), dimension, prefix, last);
        last = one.ptr == NULL || (two.ptr != NULL && slice_compare(two, one) < 0) ? two : one;
        if (last.ptr == NULL || count == limit)
            break;
        text_puts(out, count > 0 ? "," : "");
        text_json(out, last);
    }
    text_printf(out, "],\"more\":%s}\n", last.ptr != NULL ? "true" : "false");
}

/* How a text begins, to any byte of it; or any pieces; or with a NUL, or with what is no text at all. */
static struct slice roll_prefix(struct game *g, size_t report, size_t dimension, char *to)
{
    size_t len;
    if (dice_roll(&g->dice, 3) > 0) {
        struct slice text = text_of(slice_text(g->keys[report][dice_roll(&g->dice, KEYS)]), dimension);
        len = (size_t)dice_roll(&g->dice, (int64_t)text.len + 1);
        memcpy(to, text.ptr, len);
    } else {
        len = roll_text(&g->dice, to);
    }
    if (dice_roll(&g->dice, 10) == 0)
        to[len++] = "\0\xff\n\x80"[dice_roll(&g->dice, 4)];
    return slice_of(to, len);
}

static void test_any_prefix_of_any_texts(void **state)
{
    struct world *w = *state;
    struct game g = {.dice = dice_new(world_kind->name)};
    struct text out = {0}, expected = {0};
    struct err e = {0};
    fill(&g, w);
    for (int i = 0; i < QUESTIONS; i++) {
        char prefix[TEXT_MAX + 1];
        struct query q;
        size_t report = (size_t)dice_roll(&g.dice, 2);
        size_t dimension = report == 0 ? 0 : (size_t)dice_roll(&g.dice, 3);
        begin(&q);
        q.report = slice_text(report == 0 ? "pages" : "clients");
        q.filters[0].dimension =
            slice_text(w->reports[report == 0 ? FIXTURE_PAGES : FIXTURE_CLIENTS].dimensions[dimension].name);
        q.filters[0].value = roll_prefix(&g, report, dimension, prefix);
        q.top = (uint64_t)(1 + dice_roll(&g.dice, dice_roll(&g.dice, 2) == 0 ? 5 : 50));
        text_clear(&out);
        if (!values_run(w->store, &q, &out, &e))
            fail_msg("%s", e.text);
        write_expected(&g, report, dimension, q.filters[0].value, q.top, &expected);
        assert_string_equal(out.ptr, expected.ptr);
    }
    text_fini(&out);
    text_fini(&expected);
}

int main(void)
{
#define VALUES_TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        VALUES_TEST(test_values_are_sorted_and_end_at_the_limit),
        VALUES_TEST(test_values_of_one_dimension_of_several_come_once),
        VALUES_TEST(test_refusals),
        VALUES_TEST(test_other_has_no_texts),
        VALUES_TEST(test_long_texts),
        VALUES_TEST(test_any_prefix_of_any_texts),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
