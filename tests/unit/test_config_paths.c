#include "config/config_read.h"
#include "config/source_path.h"
#include "daemon/setup.h"
#include "tests/support/configs.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Does `check --print` show this line, and the same for what it printed? */
static void expect_printed(const char *yaml, const char *line)
{
    struct config *c = fixture_config(yaml);
    char *printed = config_printed(c);
    if (strstr(printed, line) == NULL)
        fail_msg("%s\nlacks %s", printed, line);
    config_free(config_again(c));
    config_free(c);
    free(printed);
}

static void test_config_path_is_one_or_a_list(void **state)
{
    (void)state;
    struct config *c = fixture_config("sources:\n"
                                      "  one: {path: /a.log, olddir: ../old}\n"
                                      "  list: {path: [/b.log, \"/c/*.log\", '/{vhost}.log']}\n"
                                      "  glob: {path: '/?.log'}\n"
                                      "  block:\n"
                                      "    path: /var/log/{vhost}.{kind}.log\n"
                                      "  none: {}\n");
    static const size_t counts[] = {1, 3, 1, 1, 0};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        assert_int_equal(c->sources[i].path_count, counts[i]);
        assert_true((c->sources[i].path != NULL) == (i == 0));
    }
    assert_string_equal(c->sources[0].path, "/a.log");
    assert_string_equal(c->sources[0].olddir, "../old");
    assert_string_equal(c->sources[1].paths[1]->text, "/c/*.log");
    assert_null(c->sources[1].olddir);
    assert_string_equal(c->sources[3].paths[0]->captures[1], "kind");
    config_free(c);
}

static void test_config_paths_are_printed_as_they_were_read(void **state)
{
    (void)state;
    setenv("TALLYD_LOGS", "/secret/place", 1);
    expect_printed("sources: {a: {path: ['/a.log']}}", "    path: \"/a.log\"\n");
    expect_printed("sources: {a: {path: ['/{v}.log', '/\\[$${x}']}}",
                   "    path: [\"/{v}.log\", \"/\\u005c[$${x}\"]\n");
    expect_printed("sources: {a: {path: '${TALLYD_LOGS}/*.log'}}", "    path: \"${TALLYD_LOGS}/*.log\"\n");
    expect_printed("sources: {a: {path: [/a, '${TALLYD_LOGS}/*']}}",
                   "    path: [\"/a\", \"${TALLYD_LOGS}/*\"]\n");
    expect_printed("sources: {a: {path: ['${TALLYD_LOGS}/*']}}", "    path: \"${TALLYD_LOGS}/*\"\n");
    expect_printed("sources: {a: {path: /a, olddir: '${TALLYD_LOGS}'}}", "    olddir: \"${TALLYD_LOGS}\"\n");
}

static void test_config_says_what_is_wrong_with_paths(void **state)
{
    (void)state;
    static const struct bad_config wrong[] = {
        {"sources: {a: {path: }}", "f.yaml:1:21: sources.a.path: found nothing, expected a path\n"},
        {"sources: {a: {path: []}}",
         "f.yaml:1:21: sources.a.path: found an empty list, expected a path, or a list of paths\n"},
        {"sources: {a: {path: {b: c}}}",
         "f.yaml:1:21: sources.a.path: found a mapping, expected a path, or a list of paths\n"},
        {"sources: {a: {path: [/x, [/y]]}}", "f.yaml:1:26: sources.a.path: found a list, expected a path\n"},
        {"sources: {a: {path: [/x, '']}}", "f.yaml:1:26: sources.a.path: found \"\", expected a path\n"},
        {"sources: {a: {path: [/x, /x]}}",
         "f.yaml:1:26: sources.a.path: found \"/x\" twice, expected each path once\n"},
        {"sources: {a: {path: /x}, b: {path: [/y, /x]}}",
         "f.yaml:1:26: sources.b: found the path of source a, expected each path once\n"},
        {"sources: {a: {path: '/**'}}",
         "f.yaml:1:21: sources.a.path: found \"/**\", expected a single *, since there is no **\n"},
        {"sources: {a: {path: '/{status}.log'}}", "f.yaml:1:21: sources.a.path: found \"status\", expected a "
                                                  "field that is just a text, such as vhost, "
                                                  "or a name of your own\n"},
        {"sources: {a: {path: '/{vhost}.log', decode: json, fields: {vhost: /v}}}",
         "f.yaml:1:11: sources.a: found the field vhost in the path and in fields, expected it in one\n"},
        {"sources: {a: {type: stdin, olddir: /x}}",
         "f.yaml:1:28: sources.a.olddir: found it with another type, expected it with type: file only\n"},
        {"sources: {a: {path: '/{shop}.log'}}\nreports: {r: {by: [shpo]}}",
         "f.yaml:2:20: reports.r.by: found \"shpo\", expected a dimension (did you mean \"shop\"?)\n"},
        {"sources: {a: {path: '${TALLYD_LOGS}/**'}}",
         "f.yaml:1:21: sources.a.path: found \"${TALLYD_LOGS}/**\", expected a path\n"},
    };
    struct text yaml = {0};
    setenv("TALLYD_LOGS", "/secret/place", 1);
    expect_all_problems(wrong, COUNT_OF(wrong));
    text_puts(&yaml, "sources: {a: {path: [0");
    for (int i = 1; i <= CONFIG_PATHS_MAX; i++)
        text_printf(&yaml, ",\n%d", i);
    text_puts(&yaml, "]}}");
    expect_problems(yaml.ptr, "f.yaml:101:1: sources.a.path: found one more, expected at most 100 paths\n");
    text_fini(&yaml);
}

/* A capture is a field like others, for reports and raw events. */
static void test_config_captures_are_fields(void **state)
{
    (void)state;
    config_free(
        fixture_config("reports: {r: {by: [vhost, shop], where: [shop!=-]}}\n"
                       "sources: {a: {path: '/{vhost}/{shop}.log', decode: common, raw: [vhost, shop]}}"));
}

/* `wanted`: the first constant; NULL: no match. */
static void expect_match(const struct config_source *source, const char *path, const char *wanted)
{
    struct constants k = {0};
    bool matches = source_path_match(source, path, &k);
    if (matches != (wanted != NULL))
        fail_msg("%s must%s match", path, wanted != NULL ? "" : " not");
    assert_true(matches == source_path_match(source, path, NULL));
    if (wanted != NULL && !slice_is(k.list[0].text, wanted))
        fail_msg("%s gives %.*s", path, SLICE_ARGS(k.list[0].text));
    constants_fini(&k);
}

static void test_source_path_matches_under_every_name(void **state)
{
    (void)state;
    struct scratch s;
    struct text yaml = {0};
    char here[512];
    scratch_make(&s);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(scratch_path(&s, "logs"), 0700), 0);
    assert_int_equal(symlink("logs", scratch_path(&s, "link")), 0);
    scratch_write(scratch_path(&s, "logs/www.log"), slice_text("x"));
    text_printf(&yaml,
                "sources: {a: {path: '%s/logs/{vhost}.log'}, b: {path: [/x, 'logs/{vhost}.log']},\n"
                "  c: {path: '%s/link/{vhost}.log'}}",
                s.dir, s.dir);
    struct config *c = fixture_config(yaml.ptr);
    assert_int_equal(chdir(s.dir), 0);
    expect_match(&c->sources[0], scratch_path(&s, "logs/www.log"), "www");
    expect_match(&c->sources[0], scratch_path(&s, "logs/missing.log"), "missing");
    expect_match(&c->sources[0], scratch_path(&s, "link/www.log"), "www");
    expect_match(&c->sources[0], "logs/www.log", "www");
    expect_match(&c->sources[0], "logs/missing.log", NULL);
    expect_match(&c->sources[1], "logs/missing.log", "missing");
    expect_match(&c->sources[1], "link/../logs/www.log", "www");
    expect_match(&c->sources[1], scratch_path(&s, "logs/www.log"), "www");
    expect_match(&c->sources[1], scratch_path(&s, "logs/gone.log"), "gone");
    expect_match(&c->sources[1], scratch_path(&s, "gone.log"), NULL);
    expect_match(&c->sources[2], scratch_path(&s, "link/www.log"), "www");
    expect_match(&c->sources[2], scratch_path(&s, "logs/gone.log"), "gone");
    struct constants k;
    setup_constants(c, "/other", "logs/blog.log", &k);
    assert_true(k.count == 1 && slice_is(k.list[0].text, "blog"));
    constants_fini(&k);
    setup_constants(c, "logs/shop.log", "logs/blog.log", &k);
    assert_true(k.count == 1 && slice_is(k.list[0].text, "shop"));
    constants_fini(&k);
    setup_constants(c, "/x", "logs/blog.log", &k);
    assert_int_equal(k.count, 0);
    setup_constants(c, "-", NULL, &k);
    assert_int_equal(k.count, 0);
    assert_int_equal(chdir(here), 0);
    config_free(c);
    text_fini(&yaml);
    scratch_remove(&s);
}

/* The source of this path is that, and its first capture `vhost`; NULL: none. */
static void expect_source(const struct config *c, const char *path, const char *name, const char *vhost)
{
    struct constants k = {0};
    const struct config_source *source = source_path_find(c, path, &k);
    if (name == NULL ? source != NULL : source == NULL || strcmp(source->name, name) != 0)
        fail_msg("%s is of %s", path, source != NULL ? source->name : "no source");
    assert_true(vhost == NULL ? k.count == 0 : k.count == 1 && slice_is(k.list[0].text, vhost));
    assert_ptr_equal(source, source_path_find(c, path, NULL));
    constants_fini(&k);
}

static void test_rotated_files_have_the_source_of_their_log(void **state)
{
    (void)state;
    struct scratch s;
    struct text yaml = {0};
    char path[512];
    static const char *const folders[] = {"logs", "logs/old", "away"};
    static const char *const logs[] = {"logs/shop.log", "logs/api.log"};
    static const struct {
        const char *path, *source, *vhost;
    } cases[] = {{"logs/shop.log", "vhosts", "shop"},
                 {"logs/shop.log.1", "vhosts", "shop"},
                 {"logs/shop.log.12.gz", "vhosts", "shop"},
                 {"logs/shop.log-20261127.zst", "vhosts", "shop"},
                 {"logs/shop-20261127.log", "vhosts", "shop"},
                 {"logs/shop.log.old", "vhosts", "shop"},
                 {"logs/shop.log.gz", "vhosts", "shop"},
                 {"logs/gone-20261127.log", "vhosts", "gone-20261127"},
                 {"logs/gone.log.1", "vhosts", "gone"},
                 {"logs/site-2.log", "vhosts", "site-2"},
                 {"logs/listed-20261127.log", "listed", NULL},
                 {"logs/api.log.1", "vhosts", "api"},
                 {"logs/old/shop.log.3", "vhosts", "shop"},
                 {"logs/shop.txt.1", NULL, NULL},
                 {"away/cart.txt.1", "carts", NULL},
                 {"away/other.txt.1", NULL, NULL},
                 {"logs/.1", NULL, NULL},
                 {"missing/x.log.1", NULL, NULL}};
    scratch_make(&s);
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        assert_int_equal(mkdir(scratch_path(&s, folders[i]), 0700), 0);
    for (size_t i = 0; i < COUNT_OF(logs); i++)
        scratch_write(scratch_path(&s, logs[i]), slice_text("x"));
    text_printf(&yaml,
                "sources: {vhosts: {path: '%s/logs/{vhost}.log', olddir: old}, \n"
                "  carts: {path: '%s/logs/cart.txt', olddir: '%s/away'},\n"
                "  listed: {path: '%s/logs/listed-20261127.log'}}",
                s.dir, s.dir, s.dir, s.dir);
    struct config *c = fixture_config(yaml.ptr);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(path, sizeof path, "%s/%s", s.dir, cases[i].path);
        expect_source(c, path, cases[i].source, cases[i].vhost);
    }
    expect_source(c, "", NULL, NULL);
    expect_source(c, "a.log.1", NULL, NULL);
    config_free(c);
    text_fini(&yaml);
    scratch_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_path_is_one_or_a_list),
        cmocka_unit_test(test_config_paths_are_printed_as_they_were_read),
        cmocka_unit_test(test_config_says_what_is_wrong_with_paths),
        cmocka_unit_test(test_config_captures_are_fields),
        cmocka_unit_test(test_source_path_matches_under_every_name),
        cmocka_unit_test(test_rotated_files_have_the_source_of_their_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
