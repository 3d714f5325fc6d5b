#include "config/config_read.h"
#include "ingest/decode/preset.h"
#include "tests/support/configs.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define CLUSTER "kafka: {brokers: \"b:9092\"}\n"

/* A printed configuration reads back, and prints the same. */
static void expect_round_trip(const struct config *c)
{
    struct config *again = config_again(c);
    assert_int_equal(c->source_count, again->source_count);
    for (size_t i = 0; i < c->source_count; i++) {
        expect_same_decode(&c->sources[i].decode, &again->sources[i].decode);
        assert_true(c->sources[i].start_ms == again->sources[i].start_ms);
    }
    config_free(again);
}

static void test_config_reads_a_topic(void **state)
{
    (void)state;
    struct config *c = fixture_config(
        "reports:\n"
        "  r: {by: [name, userid, dc], where: [\"shop!=-\"]}\n"
        "sources:\n"
        "  access:\n"
        "    type: kafka\n"
        "    decode: [\"json:/message\", combined]\n"
        "    fields: {dc: \"header:dc\", device: key, shop: /a/b}\n"
        "    time: broker\n"
        "  m: {type: kafka, topic: app.M_1-x, start: \"2026-11-21T10:00:00+01:00\", decode: metric,\n"
        "      metric_name: n, metric_time: t, metric_value: v, metric_tags: g}\n"
        "  l: {type: kafka, start: latest, decode: json, time: /a/ts}\n"
        "  c: {type: kafka, decode: [syslog, {csv: [time, host, -, cost]}]}\n"
        "kafka: {brokers: \"a,b:9092,[::1]:9\", group: G, threads: 3, queue_size: 1MiB,\n"
        "        properties: {security.protocol: ssl, topic.acks: all, client.id: \"\"}}\n"
        "rejects: {topic: tallyd-rejects}\n"
        "http: {lag_max: 7}\n"
        "run: {stop_timeout: 5s}\n");
    const struct config_source *s = c->sources;
    assert_int_equal(s[0].type, SOURCE_KAFKA);
    assert_string_equal(s[0].topic, "access");
    assert_true(s[0].start_ms == CONFIG_START_EARLIEST);
    assert_int_equal(s[0].decode.step_count, 2);
    assert_int_equal(s[0].decode.origin_count, 3);
    assert_true(s[0].decode.time_is_brokers);
    assert_string_equal(s[1].topic, "app.M_1-x");
    assert_true(s[1].start_ms == 1795251600000);
    assert_string_equal(s[1].decode.metric[METRIC_TIME], "t");
    assert_string_equal(s[1].decode.metric[METRIC_TAGS], "g");
    assert_true(s[2].start_ms == CONFIG_START_LATEST);
    assert_string_equal(s[2].decode.time_pointer, "/a/ts");
    assert_string_equal(s[3].decode.parts, "time,host,-,cost");
    assert_string_equal(c->kafka.brokers, "a,b:9092,[::1]:9");
    assert_string_equal(c->kafka.group, "G");
    assert_int_equal(c->kafka.threads, 3);
    assert_int_equal(c->kafka.queue_bytes, 1 << 20);
    assert_int_equal(c->kafka.property_count, 3);
    assert_string_equal(c->kafka.properties[0].name, "security.protocol");
    assert_string_equal(c->kafka.properties[0].value, "ssl");
    assert_string_equal(c->kafka.properties[2].value, "");
    assert_string_equal(c->rejects.topic, "tallyd-rejects");
    assert_null(c->rejects.file);
    assert_int_equal(c->http.lag_max, 7);
    assert_int_equal(c->run.stop_timeout_ms, 5000);
    expect_round_trip(c);
    config_free(c);
}

#define KEYS_OF_SOURCE                                                                                 \
    "type, path, olddir, topic, start, decode, fields, time, metric_name, metric_time, metric_value, " \
    "metric_tags, raw, raw_w, raw_j or raw_growth"

static const struct bad_config bad_files[] = {
    /* which keys go together */
    {"sources: {a: {type: kafka}}",
     "f.yaml:1:11: sources.a: found type kafka, expected kafka.brokers to say where the cluster is\n"},
    {CLUSTER "sources: {a: {type: kafka, path: /x}}",
     "f.yaml:2:28: sources.a.path: found it with another type, expected it with type: file only\n"},
    {"sources: {a: {type: stdin, path: /x}}",
     "f.yaml:1:28: sources.a.path: found it with another type, expected it with type: file only\n"},
    {"sources: {a: {topic: x, start: latest}}",
     "f.yaml:1:15: sources.a.topic: found it with another type, expected it with type: kafka only\n"
     "f.yaml:1:25: sources.a.start: found it with another type, expected it with type: kafka only\n"},
    {"sources: {a: {decode: json, metric_name: x}}", "f.yaml:1:29: sources.a.metric_name: found it without "
                                                     "the step metric, expected it with decode: [metric] "
                                                     "only\n"},
    {"sources: {a: {fields: {dc: key}}}",
     "f.yaml:1:11: sources.a: found the field dc from key, expected that with type: kafka only\n"},
    {"sources: {a: {time: broker}}",
     "f.yaml:1:11: sources.a: found time: broker, expected that with type: kafka only\n"},
    {CLUSTER "sources: {a: {type: kafka}, b: {type: kafka, topic: a}}",
     "f.yaml:2:29: sources.b: found the topic of source a, expected each topic once\n"},
    {CLUSTER "sources: {a: {type: kafka}}\nrejects: {topic: a}",
     "f.yaml:2:11: sources.a: found the topic of rejects, expected another: rejects would be read again\n"},
    {"sources: {a: {path: 'l/*.log'}, b: {path: 'l/*.txt'}}\nrejects: {file: ./l/rejects.log}",
     "f.yaml:2:1: rejects: found a file that the path of source a matches, expected another: rejects would "
     "be "
     "read again\n"},
    {"sources: {a: {path: '/nowhere/{vhost}.log'}}\nrejects: {file: /nowhere/rejects.log}",
     "f.yaml:2:1: rejects: found a file that the path of source a matches, expected another: rejects would "
     "be "
     "read again\n"},
    {CLUSTER "rejects: {topic: a, file: b}",
     "f.yaml:2:1: rejects: found a topic and a file, expected one of them\n"},
    {"rejects: {topic: a}",
     "f.yaml:1:1: rejects: found a topic, expected kafka.brokers to say where the cluster is\n"},
    /* what is most likely meant, and no further problem that follows from it */
    {"kafka: {topic: x}\nrejects: {path: x}\nsources: {a: {glob: x, file: x}}",
     "f.yaml:3:15: sources.a.glob: found an unknown key, expected " KEYS_OF_SOURCE
     " (did you mean \"path\"?)\n"
     "f.yaml:3:24: sources.a.file: found an unknown key, expected " KEYS_OF_SOURCE
     " (did you mean \"path\"?)\n"
     "f.yaml:1:9: kafka.topic: found an unknown key, expected brokers, group, instance, revoke_timeout, "
     "threads, queue_size or properties (did you mean \"sources.NAME.topic\"?)\n"
     "f.yaml:2:11: rejects.path: found an unknown key, expected topic or file (did you mean \"file\"?)\n"},
    {"reports: {r: {keep: {minute: 2 days, hour: 60d}}}",
     "f.yaml:1:30: reports.r.keep.minute: found \"2 days\", expected how long each minute is kept: from 1m "
     "to "
     "100000d, such as 36h, or forever\n"},
    {"reports: {r: {where: [status=5xx, path==/x]}}",
     "f.yaml:1:23: reports.r.where: found \"5xx\" after =, expected digits, with * for any, or - for absent "
     "(did you mean \"5*\"?)\n"
     "f.yaml:1:35: reports.r.where: found ==, expected = and a text, in which * stands for any part\n"},
    /* values */
    {CLUSTER "sources: {a: {type: kafka, topic: a/b}}",
     "f.yaml:2:35: sources.a.topic: found \"a/b\", expected a-z, A-Z, 0-9, ., _ and -, at most 249\n"},
    {CLUSTER "sources: {a: {type: kafka, topic: ..}}",
     "f.yaml:2:35: sources.a.topic: found \"..\", expected a-z, A-Z, 0-9, ., _ and -, at most 249\n"},
    {CLUSTER "sources: {a: {type: kafka, start: earlist}}",
     "f.yaml:2:35: sources.a.start: found \"earlist\", expected earliest, latest or a time such as "
     "2026-11-21T10:00:00Z (did you mean \"earliest\"?)\n"},
    {CLUSTER "sources: {a: {type: kafka, start: -1h}}",
     "f.yaml:2:35: sources.a.start: found \"-1h\", expected earliest, latest or a time such as "
     "2026-11-21T10:00:00Z\n"},
    {CLUSTER "sources: {a: {type: kafka, start: now}}",
     "f.yaml:2:35: sources.a.start: found \"now\", expected earliest, latest or a time such as "
     "2026-11-21T10:00:00Z\n"},
    {"kafka: {brokers: \"a,,b\"}", "f.yaml:1:18: kafka.brokers: found \"a,,b\", expected HOST:PORT, such as "
                                   "127.0.0.1:9092, several with commas between them\n"},
    {"kafka: {brokers: \"a:\"}", "f.yaml:1:18: kafka.brokers: found \"a:\", expected HOST:PORT, such as "
                                 "127.0.0.1:9092, several with commas between them\n"},
    {"kafka: {brokers: \"\"}\nsources: {a: {type: kafka}}",
     "f.yaml:1:18: kafka.brokers: found \"\", expected HOST:PORT, such as 127.0.0.1:9092, several with "
     "commas "
     "between them\n"},
    {"kafka: {group: \"\"}", "f.yaml:1:16: kafka.group: found \"\", expected a text of one line\n"},
    /* decoding: more in test_decode.c */
    {"sources: {a: {decode: [combied]}}",
     "f.yaml:1:24: sources.a.decode: found \"combied\", expected auto, "
     "common, combined, vhost_combined, syslog, cri, msgpack, avro, avro:FILE, protobuf, protobuf:FILE, "
     "json:/POINTER, json, metric, logfmt, influx, statsd, otlp, otlp:totals, remote_write, "
     "remote_write:deltas, remote_write:totals, csv:COLUMNS, tsv:COLUMNS, "
     "regex:EXPRESSION, w3c, w3c:NAMES, apache:FORMAT, nginx:FORMAT, "
     "alb, caddy, elb, haproxy, s3, traefik or traefik_json "
     "(did you mean \"combined\"?)\n"},
    {"sources: {a: {decode: [json:/m, otlp]}}",
     "f.yaml:1:11: sources.a: found otlp behind another step, expected it first\n"},
    {"sources: {a: {decode: logfmt, fields: {b: 'tag:service.name'}}}",
     "f.yaml:1:11: sources.a: found tag:service.name, expected it only where decode ends in metric or "
     "remote_write, or begins with otlp\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: [json:/m, remote_write]}}",
     "f.yaml:2:11: sources.a: found remote_write behind another step, expected it alone\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: [remote_write, json]}}",
     "f.yaml:2:51: sources.a.decode: found \"json\", expected nothing behind the step that makes events\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: [{remote_write: total}]}}",
     "f.yaml:2:52: sources.a.decode: found \"total\", expected [remote_write], "
     "[{remote_write: deltas}] or [{remote_write: totals}]\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: [{otlp: deltas}]}}",
     "f.yaml:2:44: sources.a.decode: found \"deltas\", expected [otlp], or [{otlp: totals}]\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: [{otlp: totals}, combined]}}",
     "f.yaml:2:53: sources.a.decode: found \"combined\", expected nothing behind the step that makes "
     "events\n"},
    {"sources: {a: {decode: remote_write}}",
     "f.yaml:1:11: sources.a: found remote_write, expected that with type: kafka only: its values are no "
     "lines\n"},
    {CLUSTER "sources: {a: {type: kafka, decode: w3c}}",
     "f.yaml:2:11: sources.a: found w3c without names, expected them with type: kafka, since the #Fields: of "
     "another message is not found again after a restart: {w3c: date time c-ip}\n"},
    {"sources: {a: {decode: [{csv: [time, Path]}]}}",
     "f.yaml:1:30: sources.a.decode: csv: column 2: found \"Path\", expected a name of small letters, digits "
     "and _\n"},
    {"sources: {a: {decode: [{csv: [time, {}]}]}}",
     "f.yaml:1:37: sources.a.decode.csv: found a mapping, expected a text\n"},
    {"sources: {a: {decode: [{csv: {}}]}}",
     "f.yaml:1:30: sources.a.decode.csv: found a mapping, expected a text, or a list of texts\n"},
    {"sources: {a: {decode: [{}]}}",
     "f.yaml:1:24: sources.a.decode: found nothing, expected a step of decoding\n"},
    {"sources: {a: {decode: [{csv: time, tsv: time}]}}",
     "f.yaml:1:36: sources.a.decode: found one more, expected a step of decoding\n"},
    {"sources: {a: {decode: [{csv: host}]}}", "f.yaml:1:11: sources.a: found no time in csv, expected a "
                                              "time: name it, or say time: /NAME or broker\n"},
    {"sources:\n  a:\n    decode:\n    - syslog",
     "f.yaml:2:3: sources.a: found [syslog], expected a last step that makes events, as combined\n"},
    {"sources: {a: {decode: [{apache: combind}]}}",
     "f.yaml:1:33: sources.a.decode: apache: found \"combind\", expected a format as LogFormat has it, or "
     "its "
     "name (did you mean \"combined\"?)\n"},
    {"sources: {a: {decode: [{nginx: '$msec $http_referer $status'}]}}",
     "f.yaml:1:32: sources.a.decode: nginx: found \" \" in column 20, which may stand in \"$http_referer\" "
     "before "
     "it, expected double quotes around that\n"},
    {"sources: {a: {decode: [{nginx: '$status'}]}}", "f.yaml:1:11: sources.a: found a format without a time, "
                                                     "expected one such as %t or $time_local, or time: "
                                                     "broker\n"},
    {"sources: {a: {decode: [{nginx: combined, apache: combined}]}}",
     "f.yaml:1:42: sources.a.decode: found one more, expected a step of decoding\n"},
    {"sources: {a: {decode: [{}]}}",
     "f.yaml:1:24: sources.a.decode: found nothing, expected a step of decoding\n"},
    {"sources: {a: {decode: {a: b}}}", "f.yaml:1:23: sources.a.decode: found a mapping, expected a list of "
                                       "steps, such as [json:/message, combined] or [{csv: [time, host]}]\n"},
    {"sources: {a: {decode: \"${HOME}\"}}",
     "f.yaml:1:23: sources.a.decode: found \"${HOME}\", expected a text without ${: what is counted must not "
     "change with the environment\n"},
    {"sources: {a: {fields: [x]}}", "f.yaml:1:23: sources.a.fields: found a list, expected names and "
                                    "origins, such as {userid: tag:userid, dc: "
                                    "header:dc, path: /request/uri}\n"},
    {"sources: {a: {decode: json, fields: {x: }}}",
     "f.yaml:1:41: sources.a.fields.x: found nothing, expected where the field comes from, such as /path or "
     "key\n"},
    {"sources: {a: {decode: json, fields: {x: kye}}}",
     "f.yaml:1:41: sources.a.fields.x: found \"kye\", expected a JSON pointer as /request/uri, tag:NAME, "
     "header:NAME, key, topic, partition or timestamp (did you mean \"key\"?)\n"},
    {"sources: {a: {decode: json, time: ts}}",
     "f.yaml:1:35: sources.a.time: found \"ts\", expected broker, or a JSON pointer as /@timestamp\n"},
    /* librdkafka's properties */
    {"kafka:\n  properties:\n    securty.protocol: ssl\n",
     "f.yaml:3:23: kafka.properties.\"securty.protocol\": found \"securty.protocol\", expected a property of "
     "librdkafka (did you mean \"security.protocol\"?)\n"},
    {"kafka: {properties: {ssl.ca.locaton: x}}",
     "f.yaml:1:38: kafka.properties.\"ssl.ca.locaton\": found \"ssl.ca.locaton\", expected a property of "
     "librdkafka (did you mean \"ssl.ca.location\"?)\n"},
    {"kafka: {properties: {security.protocol: tls}}",
     "f.yaml:1:41: kafka.properties.\"security.protocol\": found a value that librdkafka does not take: "
     "Invalid "
     "value \"tls\" for configuration property \"security.protocol\"\n"},
    {"kafka: {properties: {fetch.min.bytes: 0}}",
     "f.yaml:1:39: kafka.properties.\"fetch.min.bytes\": found a value that librdkafka does not take: "
     "Configuration property \"fetch.min.bytes\" value 0 is outside allowed range 1..100000000\n"},
    {"kafka: {properties: {security.protocol: \"${TALLYD_SECRET}\"}}",
     "f.yaml:1:41: kafka.properties.\"security.protocol\": found a value that librdkafka does not take\n"},
    {"kafka: {properties: {sasl.password: \"file:${TALLYD_SECRET}/x\"}}",
     "f.yaml:1:37: kafka.properties.\"sasl.password\": found \"file:${TALLYD_SECRET}/x\", expected a file "
     "that "
     "can be read: No such file or directory\n"},
    {"kafka: {properties: {client.id: \"a\\0\"}}", "f.yaml:1:33: kafka.properties.\"client.id\": found a "
                                                   "value that is no text, expected UTF-8 without NUL\n"},
    {"kafka: {properties: {client.id: [a]}}",
     "f.yaml:1:33: kafka.properties.\"client.id\": found a list, expected a value in one text\n"},
    {"kafka: {properties: {topic.auto.offset.reset: earliest}}",
     "f.yaml:1:47: kafka.properties.\"topic.auto.offset.reset\": found a property that tallyd sets itself, "
     "expected it left out: partitions begin where the store stands, and offsets that are lost must be "
     "noticed "
     "(sources.NAME.start is for a topic that is new to the store)\n"},
    {"kafka: {properties: {isolation.level: read_uncommitted}}",
     "f.yaml:1:39: kafka.properties.\"isolation.level\": found a property that tallyd sets itself, expected "
     "it "
     "left out: messages of aborted transactions must not be counted\n"},
};

static void test_config_says_what_is_wrong_with_sources(void **state)
{
    (void)state;
    setenv("TALLYD_SECRET", "hunter2", 1);
    expect_all_problems(bad_files, COUNT_OF(bad_files));
}

static void test_config_keeps_what_tallyd_sets_itself(void **state)
{
    (void)state;
    static const char *const names[] = {
        "enable.auto.commit", "enable.auto.offset.store",   "auto.offset.reset",
        "bootstrap.servers",  "metadata.broker.list",       "group.id",
        "isolation.level",    "queued.max.messages.kbytes", "enable.partition.eof"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct text problems = {0};
        char yaml[128];
        snprintf(yaml, sizeof yaml, "kafka: {properties: {%s: \"1\"}}", names[i]);
        assert_null(config_parse(slice_text(yaml), "f.yaml", &problems));
        if (strstr(problems.ptr, "found a property that tallyd sets itself") == NULL)
            fail_msg("%s: %s", names[i], problems.ptr);
        text_fini(&problems);
    }
    config_free(fixture_config("kafka: {properties: {isolation.level: read_committed}}"));
}

/* As other programs call them, or as many expect them. */
static void test_config_knows_what_a_field_is_meant_to_be(void **state)
{
    (void)state;
    static const struct bad_config wrong[] = {
        {"reports: {r: {by: [ip, url]}}",
         "f.yaml:1:20: reports.r.by: found \"ip\", expected a dimension (did you mean \"host\"?)\n"
         "f.yaml:1:24: reports.r.by: found \"url\", expected a dimension (did you mean \"path\", or "
         "\"target\" with its query?)\n"},
        {"reports: {r: {by: [time], measures: {n: sum(time)}}}",
         "f.yaml:1:20: reports.r.by: found \"time\", expected a dimension: every report counts by time, and "
         "a query has its --step\n"
         "f.yaml:1:41: reports.r.measures.n: found \"time\", expected a field: one of vhost, port, host, "
         "logname, user, request, method, target, path, protocol, status, bytes, referrer, agent, name, "
         "value\n"},
        {"reports: {r: {by: [hour], where: [user_agent=a*], measures: {n: histogram(duration)}}}",
         "f.yaml:1:20: reports.r.by: found \"hour\", expected a dimension (did you mean \"hour_of_day\"?)\n"
         "f.yaml:1:35: reports.r.where: found \"user_agent\", expected a field (did you mean \"agent\"?)\n"
         "f.yaml:1:65: reports.r.measures.n: found \"duration\", expected a field: no source has a duration, "
         "as auto skips it. Give one the server's format: decode: [{nginx: '… $request_time'}] or [{apache: "
         "'… %D'}]\n"},
        {"sources: {a: {path: a, decode: [{apache: '%h %t %D'}]}}\n"
         "reports: {r: {where: [duratoin>1], measures: {n: sum(request_time)}}}",
         "f.yaml:2:23: reports.r.where: found \"duratoin\", expected a field (did you mean \"duration\"?)\n"
         "f.yaml:2:50: reports.r.measures.n: found \"request_time\", expected a field (did you mean "
         "\"duration\"?)\n"},
    };
    expect_all_problems(wrong, COUNT_OF(wrong));
}

/* A field that another configuration of this process knows is none of this one's. */
static void test_config_reports_are_about_fields_of_sources(void **state)
{
    (void)state;
    static const char closed[] = CLUSTER "sources: {a: {type: kafka, fields: {device: key}}}\n";
    struct text yaml = {0};
    config_free(fixture_config("sources: {a: {decode: metric}}\nreports: {r: {by: [userid, rack]}}"));
    for (int round = 0; round < 2; round++) {
        expect_problems(
            "reports: {r: {by: [userid], where: [rack=1]}}",
            "f.yaml:1:20: reports.r.by: found \"userid\", expected a dimension (did you mean "
            "\"user\"?)\n"
            "f.yaml:1:37: reports.r.where: found \"rack\", expected a field: one of vhost, port, host, "
            "logname, user, request, method, target, path, protocol, status, bytes, referrer, agent, "
            "name, value\n");
        text_clear(&yaml);
        text_printf(&yaml,
                    "%sreports: {r: {by: [devce], where: [\"dvice = 1\"], measures: {m: sum( devic )}}}",
                    closed);
        expect_problems(yaml.ptr,
                        "f.yaml:3:20: reports.r.by: found \"devce\", expected a dimension (did you mean "
                        "\"device\"?)\n"
                        "f.yaml:3:36: reports.r.where: found \"dvice\", expected a field (did you mean "
                        "\"device\"?)\n"
                        "f.yaml:3:64: reports.r.measures.m: found \"devic\", expected a field (did you mean "
                        "\"device\"?)\n");
        text_clear(&yaml);
        text_printf(&yaml, "%sreports: {r: {by: [device, rack]}}", closed);
        expect_problems(
            yaml.ptr,
            "f.yaml:3:28: reports.r.by: found \"rack\", expected a dimension: one of path, path:N, target, "
            "host, status, status_class, method, vhost, port, user, referrer, referrer_host, agent, "
            "protocol, request, logname, name, bytes, value, device\n");
        text_clear(&yaml);
        text_printf(&yaml, "%sreports: {r: {by: [device, status_class], where: [device!=-]}}", closed);
        config_free(fixture_config(yaml.ptr));
    }
    text_fini(&yaml);
}

/* Sources may stand anywhere and be wrong in any way: no report is blamed for fields that nobody can know. */
static void test_config_reads_sources_before_reports(void **state)
{
    (void)state;
    config_free(
        fixture_config("reports: {r: {by: [colour]}}\nsources: {a: {decode: json, fields: {colour: /c}}}"));
    expect_problems("reports: {r: {by: [colour, colour_of_it, pth]}}\nsources: {a: {decode: jsn}}",
                    "f.yaml:2:23: sources.a.decode: found \"jsn\", expected auto, common, combined, "
                    "vhost_combined, syslog, cri, msgpack, avro, avro:FILE, protobuf, protobuf:FILE, "
                    "json:/POINTER, json, metric, logfmt, "
                    "influx, statsd, otlp, otlp:totals, remote_write, remote_write:deltas, "
                    "remote_write:totals, "
                    "csv:COLUMNS, tsv:COLUMNS, "
                    "regex:EXPRESSION, w3c, w3c:NAMES, apache:FORMAT, nginx:FORMAT, alb, caddy, elb, "
                    "haproxy, s3, traefik or "
                    "traefik_json (did you mean \"json\"?)\n");
}

/* "Did you mean" knows a step's name only if the list has it. */
static void test_config_names_every_preset(void **state)
{
    (void)state;
    for (const struct preset *p = presets; p->name != NULL; p++) {
        size_t i = 0;
        while (decode_step_names[i] != NULL && strcmp(decode_step_names[i], p->name) != 0)
            i++;
        assert_non_null(decode_step_names[i]);
        struct text yaml = {0};
        text_printf(&yaml, "sources: {a: {decode: %s}}", p->name);
        config_free(fixture_config(yaml.ptr));
        text_fini(&yaml);
    }
}

static void test_config_bounds_the_fields(void **state)
{
    (void)state;
    struct text yaml = {0}, problems = {0};
    text_puts(&yaml, "sources: {a: {decode: metric}}\nreports:\n");
    for (int i = 0; i < FIELD_OWN_MAX + 2; i++)
        text_printf(&yaml, "  r%d: {by: [field_%d]}\n", i, i);
    assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
    assert_non_null(strstr(problems.ptr,
                           ": reports.r49.by: found one more field \"field_49\", expected at most 48 "
                           "of your own, shorter than 32\n"));
    text_fini(&yaml);
    text_fini(&problems);
}

static void test_config_properties_from_elsewhere_are_never_printed(void **state)
{
    (void)state;
    char path[] = "/tmp/tallyd-test-XXXXXX", yaml[512];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "geheim$${x}\n", 12), 12);
    close(fd);
    setenv("TALLYD_TMP", "/tmp", 1);
    setenv("TALLYD_USER", "rick", 1);
    snprintf(
        yaml, sizeof yaml,
        "kafka: {properties: {sasl.password: \"file:${TALLYD_TMP}/%s\", sasl.username: \"${TALLYD_USER}\",\n"
        "  client.id: \"a$${b\\nc\"}}",
        path + sizeof "/tmp/" - 1);
    struct config *c = fixture_config(yaml);
    assert_string_equal(c->kafka.properties[0].value, "geheim$${x}");
    assert_string_equal(c->kafka.properties[1].value, "rick");
    assert_string_equal(c->kafka.properties[2].value, "a${b\nc");
    char *printed = config_printed(c);
    assert_null(strstr(printed, "geheim"));
    assert_null(strstr(printed, "rick"));
    assert_non_null(strstr(printed, "\"file:${TALLYD_TMP}/tallyd-test-"));
    assert_non_null(
        strstr(printed, "\"sasl.username\": \"${TALLYD_USER}\", \"client.id\": \"a$${b\\u000ac\""));
    free(printed);
    expect_round_trip(c);
    config_free(c);
    unlink(path);
}

static void test_config_odd_pointers_read_back(void **state)
{
    (void)state;
    struct config *c = fixture_config(
        CLUSTER "sources: {a: {type: kafka, decode: [\"json:/a b,]#: \\u0085\\u2028\\x7f\\\"\", json],\n"
                "  fields: {x: \"/a: b,}\\x01\", y: \"header:x\\ty\"}, time: \"/\\u0085t$${\"}}");
    assert_string_equal(c->sources[0].decode.time_pointer, "/\xc2\x85t${");
    expect_round_trip(c);
    config_free(c);
}

/* The example is what people start from. */
static void test_config_example_of_kafka_is_good(void **state)
{
    (void)state;
    struct text problems = {0};
    int code = 0;
    struct config *c = config_load("docs/examples/kafka.yaml", &problems, &code);
    if (c == NULL)
        fail_msg("%s", problems.ptr);
    struct config *built_in = config_default();
    assert_string_equal(c->kafka.group, built_in->kafka.group);
    assert_int_equal(c->kafka.threads, built_in->kafka.threads);
    assert_int_equal(c->kafka.queue_bytes, built_in->kafka.queue_bytes);
    assert_int_equal(c->http.lag_max, built_in->http.lag_max);
    assert_int_equal(c->run.stop_timeout_ms, built_in->run.stop_timeout_ms);
    expect_round_trip(c);
    config_free(built_in);
    config_free(c);
}

static void test_config_example_of_monitoring_is_good(void **state)
{
    (void)state;
    struct text problems = {0};
    int code = 0;
    struct config *c = config_load("docs/examples/monitoring.yaml", &problems, &code);
    if (c == NULL)
        fail_msg("%s", problems.ptr);
    for (size_t i = 0; i < c->report_count; i++) {
        assert_int_equal(c->reports[i].keep_ms[SPAN_MINUTE], 48 * (int64_t)HOUR_MS);
        assert_int_equal(c->reports[i].keep_ms[SPAN_HOUR], 62 * (int64_t)DAY_MS);
        assert_int_equal(c->reports[i].keep_ms[SPAN_DAY], 0);
    }
    expect_round_trip(c);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_reads_a_topic),
        cmocka_unit_test(test_config_says_what_is_wrong_with_sources),
        cmocka_unit_test(test_config_keeps_what_tallyd_sets_itself),
        cmocka_unit_test(test_config_knows_what_a_field_is_meant_to_be),
        cmocka_unit_test(test_config_reports_are_about_fields_of_sources),
        cmocka_unit_test(test_config_reads_sources_before_reports),
        cmocka_unit_test(test_config_properties_from_elsewhere_are_never_printed),
        cmocka_unit_test(test_config_odd_pointers_read_back),
        cmocka_unit_test(test_config_example_of_kafka_is_good),
        cmocka_unit_test(test_config_example_of_monitoring_is_good),
        cmocka_unit_test(test_config_names_every_preset),
        cmocka_unit_test(test_config_bounds_the_fields), /* last: it leaves no room for more */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
