#include "config/config_read.h"
#include "config/keys.h"
#include "tests/support/configs.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct config *parse(const char *yaml, struct text *problems)
{
    return config_parse(slice_text(yaml), "f.yaml", problems);
}

static void expect_decode(const struct decode *d, const char *steps)
{
    struct text out = {0};
    decode_print_steps(d, &out);
    assert_string_equal(out.ptr, steps);
    text_fini(&out);
}

static void test_config_default_is_the_built_in_one(void **state)
{
    (void)state;
    struct config *c = config_default();
    assert_null(c->file);
    assert_int_equal(c->source_count, 1);
    assert_string_equal(c->sources[0].name, "access");
    assert_int_equal(c->sources[0].type, SOURCE_FILE);
    expect_decode(&c->sources[0].decode, "[auto]");
    assert_null(c->sources[0].path);
    assert_int_equal(c->report_count, 2);
    assert_string_equal(c->reports[0].name, "site");
    assert_string_equal(c->reports[0].definition, "measure hits count\nmeasure bytes sum(bytes)\n");
    assert_string_equal(c->reports[1].name, "pages");
    assert_string_equal(c->reports[1].definition, "by path\nmeasure hits count\nmeasure bytes sum(bytes)\n");
    assert_int_equal(c->reports[1].generation, 1);
    assert_int_equal(c->reports[1].series_max, 1000000);
    assert_string_equal(c->store.url, "sqlite:tallyd.db");
    assert_int_equal(c->aggregate.flush_ms, 1000);
    assert_int_equal(c->aggregate.flush_max_ms, 5000);
    assert_int_equal(c->store.connections, 4);
    assert_int_equal(c->aggregate.batch_bytes, 128 << 20);
    assert_int_equal(c->aggregate.batch_ms, 300);
    assert_int_equal(c->limits.line_max, 1 << 20);
    assert_int_equal(c->limits.future_max_ms, 86400000);
    assert_int_equal(c->limits.dimension_bytes_max, 512);
    assert_int_equal(c->query.rows_max, 1000000);
    assert_int_equal(c->query.points_max, 100000);
    assert_int_equal(c->query.series_max, 1000);
    assert_int_equal(c->import.threads, 0);
    assert_true(c->http.enabled);
    assert_string_equal(c->http.listen, "127.0.0.1:8080");
    assert_int_equal(c->log.level, LOG_LEVEL_INFO);
    assert_int_equal(c->store.validation, VALIDATION_WARN);
    config_free(c);
}

static void test_config_reads_every_kind(void **state)
{
    (void)state;
    struct config *c = fixture_config("sources:\n"
                                      "  a: {path: /x/ä, decode: vhost_combined}\n"
                                      "  b: {type: stdin}\n"
                                      "reports:\n"
                                      "  all:\n"
                                      "  r:\n"
                                      "    by: [path:2, status_class]\n"
                                      "    where: [status<400, 'method=POST|GET']\n"
                                      "    measures: {n: count}\n"
                                      "    layout: hour\n"
                                      "    series_max: 30000000\n"
                                      "    generation: 7\n"
                                      "limits: {line_max: 64KiB, future_max: 0s, dimension_max: 64}\n"
                                      "aggregate: {flush: 500ms}\n"
                                      "http: {enabled: false, listen: '[::1]:0'}\n"
                                      "log: {level: debug}\n"
                                      "store: {validation: off}\nquery: {week_start: sunday}\n"
                                      "import:\n");
    assert_string_equal(c->file, "f.yaml");
    assert_int_equal(c->source_count, 2);
    assert_string_equal(c->sources[0].path, "/x/ä");
    expect_decode(&c->sources[0].decode, "[vhost_combined]");
    assert_int_equal(c->sources[1].type, SOURCE_STDIN);
    assert_int_equal(c->report_count, 2);
    assert_string_equal(c->reports[1].definition, "by path:2\nby status_class\nwhere method=GET|POST\nwhere "
                                                  "status<400\nmeasure n count\nlayout hour\n");
    assert_true(c->reports[1].series_max == 30000000);
    assert_int_equal(c->reports[1].generation, 7);
    assert_int_equal(c->limits.line_max, 65536);
    assert_int_equal(c->limits.future_max_ms, 0);
    assert_int_equal(c->limits.dimension_bytes_max, 64);
    assert_int_equal(c->aggregate.flush_ms, 500);
    assert_false(c->http.enabled);
    assert_string_equal(c->http.listen, "[::1]:0");
    assert_int_equal(c->log.level, LOG_LEVEL_DEBUG);
    assert_true(c->store.validation == VALIDATION_OFF && c->query.week_start == WEEKDAY_SUNDAY);
    assert_string_equal(c->store.url, "sqlite:tallyd.db");
    config_free(c);
}

#define SECTIONS "sections such as `store: {url: \"sqlite:tallyd.db\"}`\n"

static const struct bad_config bad_files[] = {
    /* the document */
    {"", "f.yaml:1:1: found an empty file, expected " SECTIONS},
    {"# nothing\n", "f.yaml:1:1: found an empty file, expected " SECTIONS},
    {"[a]", "f.yaml:1:1: found a list, expected " SECTIONS},
    {"text", "f.yaml:1:1: found \"text\", expected " SECTIONS},
    {"log:\n  level: [", "f.yaml:3:1: found broken YAML (while parsing a flow node: did not find expected "
                         "node content), expected lines of `key: value`\n"},
    {"log:\n\tlevel: info", "f.yaml:2:1: found broken YAML (while scanning for the next token: found "
                            "character that cannot start any token), expected lines of `key: value`, "
                            "without tabs\n"},
    {"log: {level: *x}", "f.yaml:1:14: found the alias *x, expected its value written out\n"},
    {"log: &x {a: *x}", "f.yaml:1:6: found the anchor &x, expected a value without\n"
                        "f.yaml:1:13: found the alias *x, expected its value written out\n"},
    {"log: !a {level: info}", "f.yaml:1:6: found the tag !a, expected a value without\n"},
    {"log:\n---\nlog:\n", "f.yaml:2:1: found a second document, expected one\n"},
    {"[[[[[[[[[", "f.yaml:1:9: found more than 8 levels of nesting, expected fewer\n"},
    {"log: {level: \"\xff\"}", "f.yaml:1:15: found the byte \\xff, expected UTF-8\n"},
    {"# ä\nä\xc3", "f.yaml:2:2: found the byte \\xc3, expected UTF-8\n"},
    {"# ä\nä\x01", "f.yaml:2:2: found the character U+0001, expected text without control characters\n"},
    /* keys */
    {"{a: b}: c", "f.yaml:1:1: found a mapping as a key, expected a name\n"},
    {"lgo: {level: info}",
     "f.yaml:1:1: lgo: found an unknown key, expected sources, kafka, registry, rejects, derive, "
     "reports, store, aggregate, limits, query, import, http, jobs, run or log (did you mean \"log\"?)\n"},
    {"limits:\n  lien_max: 1MiB", "f.yaml:2:3: limits.lien_max: found an unknown key, expected line_max, "
                                  "future_max or dimension_max (did you mean \"line_max\"?)\n"},
    {"run: {level: info}", "f.yaml:1:7: run.level: found an unknown key, expected stop_timeout "
                           "(did you mean \"log.level\"?)\n"},
    {"run: {\"a\\nb\": 1}", "f.yaml:1:7: run.\"a\\x0ab\": found an unknown key, expected stop_timeout\n"},
    {"log: {level: info}\nlog:\n",
     "f.yaml:2:1: log: found the key again, expected it once (it is on line 1)\n"},
    {"log: [level]",
     "f.yaml:1:6: log: found a list, expected keys and values, such as `log: {level: info}`\n"},
    {"store: sqlite:a.db", "f.yaml:1:8: store: found \"sqlite:a.db\", expected keys and values, such as "
                           "`store: {url: \"sqlite:tallyd.db\"}`\n"},
    {"log: {level: {a: b}}",
     "f.yaml:1:14: log.level: found a mapping, expected debug, info, warn or error\n"},
    {"http: {tls_key: a}", "f.yaml:1:8: http.tls_key: there is no http.tls_cert, expected both or none\n"},
    {"http: {token: short}", "f.yaml:1:15: http.token: found \"\xe2\x80\xa6\", expected 16 to 512 letters, "
                             "digits and signs of -._~+/=\n"},
    {"log: {level: }", "f.yaml:1:14: log.level: found nothing, expected debug, info, warn or error\n"},
    /* values */
    {"log: {level: wran}", "f.yaml:1:14: log.level: found \"wran\", expected debug, info, warn or error (did "
                           "you mean \"warn\"?)\n"},
    {"log: {level: \"info\\0\"}",
     "f.yaml:1:14: log.level: found \"info\\x00\", expected debug, info, warn or error (did you mean "
     "\"info\"?)\n"},
    {"http: {enabled: yes}", "f.yaml:1:17: http.enabled: found \"yes\", expected false or true\n"},
    {"limits: {line_max: 8KiB}",
     "f.yaml:1:20: limits.line_max: found \"8KiB\", expected a size from 16KiB to 1MiB\n"},
    {"limits: {line_max: 1025KiB}",
     "f.yaml:1:20: limits.line_max: found \"1025KiB\", expected a size from 16KiB to 1MiB\n"},
    {"limits: {line_max: 64k}", "f.yaml:1:20: limits.line_max: found \"64k\", expected a size from 16KiB to "
                                "1MiB (did you mean \"64KiB\"?)\n"},
    {"limits: {line_max: 99999999999999999999}",
     "f.yaml:1:20: limits.line_max: found \"99999999999999999999\", expected a size from 16KiB to 1MiB\n"},
    {"limits: {line_max: 9999999999999GiB}",
     "f.yaml:1:20: limits.line_max: found \"9999999999999GiB\", expected a size from 16KiB to 1MiB\n"},
    {"limits: {line_max: -1}",
     "f.yaml:1:20: limits.line_max: found \"-1\", expected a size from 16KiB to 1MiB\n"},
    {"limits: {line_max: KiB}",
     "f.yaml:1:20: limits.line_max: found \"KiB\", expected a size from 16KiB to 1MiB\n"},
    {"aggregate: {flush: 5}", "f.yaml:1:20: aggregate.flush: found \"5\", expected a duration from 100ms to "
                              "1h (did you mean \"5s\"?)\n"},
    {"aggregate: {flush: 5min}", "f.yaml:1:20: aggregate.flush: found \"5min\", expected a duration from "
                                 "100ms to 1h (did you mean \"5m\"?)\n"},
    {"import: {threads: 4s}", "f.yaml:1:19: import.threads: found \"4s\", expected a number from 0 to 64\n"},
    {"import: {threads: ''}", "f.yaml:1:19: import.threads: found \"\", expected a number from 0 to 64\n"},
    {"http: {listen: 127.0.0.1}", "f.yaml:1:16: http.listen: found \"127.0.0.1\", expected ADDRESS:PORT, "
                                  "such as 127.0.0.1:8080 or [::1]:8080\n"},
    {"store: {url: tallyd.db}", "f.yaml:1:14: store.url: found \"tallyd.db\", expected sqlite:PATH, "
                                "mongodb://HOST/DATABASE or mem: (did you "
                                "mean \"sqlite:tallyd.db\"?)\n"},
    {"store: {url: mem}",
     "f.yaml:1:14: store.url: found \"mem\", expected sqlite:PATH, mongodb://HOST/DATABASE "
     "or mem: (did you mean \"mem:\"?)\n"},
    {"store: {url: \"sqllite:x\"}", "f.yaml:1:14: store.url: found \"sqllite:\", expected sqlite:PATH, "
                                    "mongodb://HOST/DATABASE or mem: (did you mean \"sqlite:\"?)\n"},
    {"store: {url: \"postgres://u:secret@h/\"}",
     "f.yaml:1:14: store.url: found \"postgres:\", expected sqlite:PATH, mongodb://HOST/DATABASE or mem:\n"},
    {"store: {url: \"sqlite:\"}",
     "f.yaml:1:14: store.url: found \"sqlite:\", expected sqlite:PATH, mongodb://HOST/DATABASE or mem:\n"},
    /* sources */
    {"sources: {}", "f.yaml:1:10: sources: found none, expected at least one (leave the section out for the "
                    "built-in ones)\n"},
    {"sources: {A: {}}", "f.yaml:1:11: sources.\"A\": found a name that cannot be, expected a-z, then a-z, "
                         "0-9 and _, at most 63\n"},
    {"sources: {a: x}", "f.yaml:1:14: sources.a: found \"x\", expected keys and values\n"},
    {"sources: {a: {type: fil}}",
     "f.yaml:1:21: sources.a.type: found \"fil\", expected file, stdin or kafka (did you mean \"file\"?)\n"},
    {"sources: {a: {type: stdin}, b: {type: stdin}}",
     "f.yaml:1:29: sources.b: found type stdin, expected it once (source a has it)\n"},
    /* reports */
    {"reports: {}", "f.yaml:1:10: reports: found none, expected at least one (leave the section out for the "
                    "built-in ones)\n"},
    {"reports: {Bad: {by: [pth]}}",
     "f.yaml:1:11: reports.\"Bad\": found \"Bad\", expected a name of a report: a-z, then a-z, 0-9 and _, at "
     "most 63\n"
     "f.yaml:1:22: reports.\"Bad\".by: found \"pth\", expected a dimension (did you mean \"path\"?)\n"},
    {"reports: {r: {by: path}}",
     "f.yaml:1:19: reports.r.by: found \"path\", expected a list of dimensions, such as [path, status]\n"},
    {"reports: {r: {by: [[path]]}}", "f.yaml:1:20: reports.r.by: found a list, expected a dimension\n"},
    {"reports: {r: {by: [path, path]}}",
     "f.yaml:1:26: reports.r.by: found dimension \"path\" twice, expected each once\n"},
    {"reports: {r: {by: [\"${HOME}\"]}}",
     "f.yaml:1:20: reports.r.by: found \"${HOME}\", expected a text without ${: what is counted must not "
     "change with the environment\n"},
    {"reports:\n  r:\n    where:\n    - status<400\n    - stauts>1",
     "f.yaml:5:7: reports.r.where: found \"stauts\", expected a field (did you mean \"status\"?)\n"},
    {"reports: {r: {measures: [count]}}",
     "f.yaml:1:25: reports.r.measures: found a list, expected names and measures, such as {hits: count, "
     "bytes: sum(bytes)}\n"},
    {"reports: {r: {measures: {n: sum(byte)}}}",
     "f.yaml:1:29: reports.r.measures.n: found \"byte\", expected a field (did you mean "
     "\"bytes\"?)\n"},
    {"reports: {r: {measures: {n: p99(latency)}}}",
     "f.yaml:1:29: reports.r.measures.n: found \"p99(latency)\", expected histogram(latency): a query asks "
     "it for "
     "p99\n"},
    {"reports: {r: {measures: {n: histogram(bytes, schema=3)}}}",
     "f.yaml:1:29: reports.r.measures.n: found \"histogram(bytes\", expected quotes, since a comma within {} "
     "ends a "
     "text: \"histogram(bytes, …)\"\nf.yaml:1:55: reports.r.measures.\"schema=3)\": found nothing, expected "
     "a "
     "measure, such as count or sum(bytes)\n"},
    {"reports: {r: {keep: {minutes: 2d}}}", "f.yaml:1:31: reports.r.keep.minutes: found \"minutes\", "
                                            "expected second, minute, hour, day or month (did you "
                                            "mean \"minute\"?)\n"},
    {"reports: {r: {where: [path>5]}}", "f.yaml:1:23: reports.r.where: found \"5\" after >, but path is a "
                                        "text: expected status, bytes, value or a "
                                        "number of your own before >, or = and a text after it\n"},
    {"sources: {a: {decode: [\"json:message\"]}}", "f.yaml:1:24: sources.a.decode: found \"json:message\", "
                                                   "expected json:/POINTER, whose pointer begins with /: "
                                                   "json:/message\n"},
    {"reports: {r: {by: [path], measures: {path: count}}}",
     "f.yaml:1:11: reports.r: found measure \"path\" beside a dimension of that name, expected another "
     "name\n"},
    {"reports: {r: {layout: minutes}}",
     "f.yaml:1:23: reports.r.layout: found \"minutes\", expected day, hour or minute (did you mean "
     "\"minute\"?)\n"},
    {"reports: {r: {series_max: 0, generation: 0}}",
     "f.yaml:1:27: reports.r.series_max: found \"0\", expected a number from 1 to 67000000\n"
     "f.yaml:1:42: reports.r.generation: found \"0\", expected a number from 1 to 1000000\n"},
    /* what comes from elsewhere */
    {"log: {level: \"${TALLYD_UNSET}\"}",
     "f.yaml:1:14: log.level: found \"${TALLYD_UNSET}\", expected a variable that is set in the "
     "environment\n"},
    {"log: {level: \"${TALLYD_SECRET}\"}",
     "f.yaml:1:14: log.level: found \"${TALLYD_SECRET}\", expected debug, info, warn or error\n"},
    {"log: {level: \"in${\"}",
     "f.yaml:1:14: log.level: found \"${\", expected ${NAME} (or $${ for the text ${)\n"},
    {"log: {level: \"${A-B}\"}",
     "f.yaml:1:14: log.level: found \"${A-B}\", expected ${NAME} (or $${ for the text ${)\n"},
    {"store: {url: \"${TALLYD_SECRET}\"}", "f.yaml:1:14: store.url: found \"${TALLYD_SECRET}\", expected "
                                           "sqlite:PATH, mongodb://HOST/DATABASE or mem:\n"},
    {"store: {url: \"file:/nowhere/x\"}",
     "f.yaml:1:14: store.url: found \"file:/nowhere/x\", expected a file that can be read: No such file or "
     "directory\n"},
    {"store: {url: \"file:/dev/null\"}",
     "f.yaml:1:14: store.url: found \"file:/dev/null\", expected a file that can be read: it is not a "
     "regular file\n"},
};

static void test_config_says_what_is_wrong(void **state)
{
    (void)state;
    setenv("TALLYD_SECRET", "hunter2", 1);
    unsetenv("TALLYD_UNSET");
    expect_all_problems(bad_files, COUNT_OF(bad_files));
}

static void test_config_says_all_at_once(void **state)
{
    (void)state;
    static const char yaml[] = "log: {level: x}\nlimits:\n  line_max: 1\n  nope: 2\nstore: {url: y}\n";
    expect_problems(yaml, "f.yaml:1:14: log.level: found \"x\", expected debug, info, warn or error\n"
                          "f.yaml:3:13: limits.line_max: found \"1\", expected a size from 16KiB to 1MiB\n"
                          "f.yaml:4:3: limits.nope: found an unknown key, expected line_max, future_max or "
                          "dimension_max\n"
                          "f.yaml:5:14: store.url: found \"y\", expected sqlite:PATH, "
                          "mongodb://HOST/DATABASE or mem: (did you mean \"sqlite:y\"?)\n");
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void test_config_bounds_its_problems_and_its_input(void **state)
{
    (void)state;
    struct text yaml = {0}, problems = {0};
    text_puts(&yaml, "log:\n");
    for (int i = 0; i < 900; i++)
        text_printf(&yaml, "  key%d: 1\n", i);
    assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
    assert_int_equal(count_lines(problems.ptr), CONFIG_PROBLEMS_MAX + 1);
    assert_non_null(strstr(problems.ptr, "\nf.yaml: and 800 more problems\n"));
    text_clear(&problems);
    for (int i = 900; i < 1001; i++)
        text_printf(&yaml, "  key%d: 1\n", i);
    assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
    assert_string_equal(problems.ptr, "f.yaml:2:3: log: found 1001 entries, expected at most 1000\n");
    text_clear(&problems);
    text_clear(&yaml);
    for (int i = 0; i < CONFIG_REPORTS_MAX + 5; i++)
        text_printf(&yaml, "%s  r%d:\n", i == 0 ? "reports:\n" : "", i);
    assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
    assert_string_equal(problems.ptr, "f.yaml:66:3: reports.r64: found one more, expected at most 64\n");
    text_clear(&problems);
    text_clear(&yaml);
    while (yaml.len <= CONFIG_FILE_BYTES_MAX)
        text_puts(&yaml, "################################################################\n");
    assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
    assert_string_equal(problems.ptr, "f.yaml:1:1: found more than 1048576 bytes, expected a smaller file\n");
    text_fini(&problems);
    text_fini(&yaml);
}

static void expect_same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL)
        assert_string_equal(a, b);
}

static void expect_same_source(const struct config_source *a, const struct config_source *b)
{
    expect_same_text(a->path, b->path);
    expect_same_text(a->olddir, b->olddir);
    assert_int_equal(a->path_count, b->path_count);
    for (size_t i = 0; i < a->path_count; i++)
        assert_string_equal(a->paths[i]->text, b->paths[i]->text);
    expect_same_text(a->topic, b->topic);
    assert_true(a->start_ms == b->start_ms);
    expect_same_decode(&a->decode, &b->decode);
}

static void expect_same(const struct config *a, const struct config *b)
{
    assert_int_equal(a->source_count, b->source_count);
    for (size_t i = 0; i < a->source_count; i++) {
        assert_string_equal(a->sources[i].name, b->sources[i].name);
        assert_int_equal(a->sources[i].type, b->sources[i].type);
        expect_same_source(&a->sources[i], &b->sources[i]);
    }
    assert_int_equal(a->report_count, b->report_count);
    for (size_t i = 0; i < a->report_count; i++) {
        assert_string_equal(a->reports[i].name, b->reports[i].name);
        assert_string_equal(a->reports[i].definition, b->reports[i].definition);
        assert_int_equal(a->reports[i].generation, b->reports[i].generation);
        assert_int_equal(a->reports[i].series_max, b->reports[i].series_max);
    }
    expect_same_text(a->kafka.brokers, b->kafka.brokers);
    assert_string_equal(a->kafka.group, b->kafka.group);
    assert_int_equal(a->kafka.threads, b->kafka.threads);
    assert_int_equal(a->kafka.queue_bytes, b->kafka.queue_bytes);
    assert_int_equal(a->kafka.property_count, b->kafka.property_count);
    for (size_t i = 0; i < a->kafka.property_count; i++) {
        assert_string_equal(a->kafka.properties[i].name, b->kafka.properties[i].name);
        assert_string_equal(a->kafka.properties[i].value, b->kafka.properties[i].value);
    }
    expect_same_text(a->rejects.topic, b->rejects.topic);
    expect_same_text(a->rejects.file, b->rejects.file);
    assert_int_equal(a->http.lag_max, b->http.lag_max);
    assert_int_equal(a->run.stop_timeout_ms, b->run.stop_timeout_ms);
    assert_string_equal(a->store.url, b->store.url);
    assert_memory_equal(&a->aggregate, &b->aggregate, sizeof a->aggregate);
    assert_memory_equal(&a->limits, &b->limits, sizeof a->limits);
    assert_memory_equal(&a->query, &b->query, sizeof a->query);
    assert_memory_equal(&a->import, &b->import, sizeof a->import);
    assert_int_equal(a->http.enabled, b->http.enabled);
    assert_string_equal(a->http.listen, b->http.listen);
    assert_int_equal(a->http.connections_max, b->http.connections_max);
    assert_int_equal(a->http.streams_max, b->http.streams_max);
    assert_int_equal(a->http.timeout_ms, b->http.timeout_ms);
    assert_int_equal(a->log.level, b->log.level);
}

/* A printed configuration reads back as the same. */
static void expect_round_trip(const struct config *c)
{
    struct config *again = config_again(c);
    expect_same(c, again);
    config_free(again);
}

static void test_config_print_reads_back(void **state)
{
    (void)state;
    static const char *const yamls[] = {
        "log:",
        "sources: {a: {path: \"/a b/\\u00e4 \\u2028 \\u0085\\ufeff\\\\\\\"#: x\\U0001F600\"}, b: {type: "
        "stdin}}",
        "rejects: {file: \"$${x} $$${ $ {}\"}",
        "sources: {a: {path: ['/a/$${x}-*.log', '/[b]/\\{.log'], olddir: old}}",
        "reports: {r: {by: [path:9, host], where: ['agent!=*\"x\\y\"*|# a', status=-|5*, bytes>1], "
        "measures: {n: count, m: count, b: sum(bytes)}, layout: minute, series_max: 67000000, generation: "
        "1000000}}",
        "limits: {line_max: 1000000, future_max: 36h, dimension_max: 1025}\naggregate: {flush: 1001ms}",
        "http: {enabled: false, listen: 'localhost:65535', timeout: 90s}\nlog: {level: error}",
    };
    struct config *c = config_default();
    expect_round_trip(c);
    config_free(c);
    for (size_t i = 0; i < COUNT_OF(yamls); i++) {
        c = fixture_config(yamls[i]);
        expect_round_trip(c);
        config_free(c);
    }
}

/* So that a key cannot be forgotten in the reader or the printer: each is there, at both its ends. */
static void test_config_every_number_reads_back_at_its_ends(void **state)
{
    (void)state;
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner != KEY_OF_config ||
            (k->type != KEY_SIZE && k->type != KEY_DURATION && k->type != KEY_INTEGER))
            continue;
        for (int end = 0; end < 2; end++) {
            char yaml[128];
            snprintf(yaml, sizeof yaml, "%s: {%s: %lld%s}", k->section, k->name,
                     (long long)(end == 0 ? k->min : k->max), k->type == KEY_DURATION ? "ms" : "");
            struct config *c = fixture_config(yaml);
            expect_round_trip(c);
            int64_t value;
            assert_int_equal(k->bytes, sizeof value);
            memcpy(&value, (char *)c + k->offset, sizeof value);
            assert_true(value == (end == 0 ? k->min : k->max));
            config_free(c);
        }
    }
}

static void test_config_listen_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"127.0.0.1:8080", true},   {"0.0.0.0:0", true},     {"localhost:65535", true},
        {"a-b.example:1", true},    {"[::1]:80", true},      {"[fe80::1:2]:80", true},
        {"127.0.0.1", false},       {":80", false},          {"127.0.0.1:", false},
        {"127.0.0.1:65536", false}, {"256.0.0.1:80", false}, {"1.2.3:80", false},
        {"[::1]", false},           {"[]:80", false},        {"[:80", false},
        {"::1:80", false},          {"a b:80", false},       {"a:8x", false},
        {"a:99999999999", false},   {"[g::1]:80", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char yaml[64];
        struct text problems = {0};
        snprintf(yaml, sizeof yaml, "http: {listen: \"%s\"}", rows[i].text);
        struct config *c = parse(yaml, &problems);
        if ((c != NULL) != rows[i].good)
            fail_msg("%s must be %s", rows[i].text, rows[i].good ? "good" : "bad");
        config_free(c);
        text_fini(&problems);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_config_secrets_stay_out_of_what_is_printed(void **state)
{
    (void)state;
    char path[] = "/tmp/tallyd-test-XXXXXX", yaml[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "sqlite:/secret/file.db\n");
    setenv("TALLYD_SECRET", "/secret/place", 1);
    setenv("TALLYD_LEVEL", "warn", 1);
    snprintf(yaml, sizeof yaml,
             "sources: {a: {path: \"${TALLYD_SECRET}/x.${TALLYD_LEVEL}\"}}\n"
             "store: {url: \"file:%s\"}\nlog: {level: \"${TALLYD_LEVEL}\"}\n",
             path);
    struct config *c = fixture_config(yaml);
    assert_string_equal(c->sources[0].path, "/secret/place/x.warn");
    assert_string_equal(c->store.url, "sqlite:/secret/file.db");
    assert_int_equal(c->log.level, LOG_LEVEL_WARN);
    char *printed = config_printed(c);
    assert_null(strstr(printed, "/secret"));
    assert_non_null(strstr(printed, "    path: \"${TALLYD_SECRET}/x.${TALLYD_LEVEL}\"\n"));
    assert_non_null(strstr(printed, "  level: \"${TALLYD_LEVEL}\"\n"));
    free(printed);
    expect_round_trip(c);
    config_free(c);
    unlink(path);
}

static void test_config_refuses_a_secret_that_is_no_line(void **state)
{
    (void)state;
    setenv("TALLYD_SECRET", "a\nb", 1);
    expect_problems("sources: {a: {path: \"${TALLYD_SECRET}\"}}",
                    "f.yaml:1:21: sources.a.path: found \"${TALLYD_SECRET}\", expected a path\n");
    setenv("TALLYD_SECRET", "a\xff", 1);
    expect_problems("sources: {a: {path: \"${TALLYD_SECRET}\"}}",
                    "f.yaml:1:21: sources.a.path: found \"${TALLYD_SECRET}\", expected a path\n");
}

static void test_config_set_store(void **state)
{
    (void)state;
    struct err e = {0};
    setenv("TALLYD_SECRET", "sqlite:/secret", 1);
    struct config *c = fixture_config("store: {url: \"${TALLYD_SECRET}\"}");
    assert_false(config_set_store(c, "x.db", &e));
    assert_string_equal(e.text, "found \"x.db\", expected sqlite:PATH, mongodb://HOST/DATABASE or mem: (did "
                                "you mean \"sqlite:x.db\"?)");
    assert_string_equal(c->store.url, "sqlite:/secret");
    assert_true(config_set_store(c, "mem:", &e));
    assert_string_equal(c->store.url, "mem:");
    char *printed = config_printed(c);
    assert_non_null(strstr(printed, "  url: \"mem:\"\n"));
    free(printed);
    config_free(c);
}

static void test_config_load_says_why_it_cannot_read(void **state)
{
    (void)state;
    struct text problems = {0};
    int code = 0;
    assert_null(config_load("/nowhere/tallyd.yaml", &problems, &code));
    assert_int_equal(code, EX_NOINPUT);
    assert_string_equal(problems.ptr, "/nowhere/tallyd.yaml: cannot read: No such file or directory\n");
    text_clear(&problems);
    assert_null(config_load("/tmp", &problems, &code));
    assert_int_equal(code, EX_NOINPUT);
    assert_string_equal(problems.ptr, "/tmp: cannot read: Is a directory\n");
    text_clear(&problems);
    assert_null(config_load("/dev/null", &problems, &code));
    assert_int_equal(code, EX_CONFIG);
    text_fini(&problems);
}

/* The examples are what people start from. */
static void test_config_example_is_good_and_as_the_defaults(void **state)
{
    (void)state;
    struct text problems = {0};
    int code = 0;
    struct config *c = config_load("docs/examples/tallyd.yaml", &problems, &code);
    if (c == NULL)
        fail_msg("%s", problems.ptr);
    struct config *built_in = config_default();
    assert_memory_equal(&c->aggregate, &built_in->aggregate, sizeof c->aggregate);
    assert_memory_equal(&c->limits, &built_in->limits, sizeof c->limits);
    assert_memory_equal(&c->query, &built_in->query, sizeof c->query);
    assert_memory_equal(&c->import, &built_in->import, sizeof c->import);
    assert_string_equal(c->http.listen, built_in->http.listen);
    assert_int_equal(c->http.timeout_ms, built_in->http.timeout_ms);
    assert_int_equal(c->log.level, built_in->log.level);
    assert_string_equal(c->store.url, built_in->store.url);
    config_free(built_in);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_default_is_the_built_in_one),
        cmocka_unit_test(test_config_reads_every_kind),
        cmocka_unit_test(test_config_says_what_is_wrong),
        cmocka_unit_test(test_config_says_all_at_once),
        cmocka_unit_test(test_config_bounds_its_problems_and_its_input),
        cmocka_unit_test(test_config_print_reads_back),
        cmocka_unit_test(test_config_every_number_reads_back_at_its_ends),
        cmocka_unit_test(test_config_listen_addresses),
        cmocka_unit_test(test_config_secrets_stay_out_of_what_is_printed),
        cmocka_unit_test(test_config_refuses_a_secret_that_is_no_line),
        cmocka_unit_test(test_config_set_store),
        cmocka_unit_test(test_config_load_says_why_it_cannot_read),
        cmocka_unit_test(test_config_example_is_good_and_as_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
