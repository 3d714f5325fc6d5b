/* decode.h - how the records of a source become events: its configuration, compiled once. The configuration
 * fills it, chains read it.
 *
 *   decode: [combined]                   a line: auto, common, combined, vhost_combined
 *   decode: [syslog, combined]           a line behind a header of RFC 3164 or RFC 5424
 *   decode: [cri, combined]              a line in a container's log of Kubernetes
 *   decode: [json:/message, combined]    a line in an envelope (Filebeat, Fluent Bit, Vector): the string at
 *                                        a JSON pointer (RFC 6901)
 *   decode: [{apache: '%h %l …'}]        a line in a format as Apache's or nginx's configuration has it
 *   decode: [msgpack, json]              MessagePack, as Fluent Bit writes it, made JSON for the next step
 *   decode: [avro, json]                 Avro by the schema registry, made JSON; {avro: FILE}: by a file's
 *                                        schema
 *   decode: [protobuf, json]             the same with Protobuf; {protobuf: FILE}: by a .proto file
 *   decode: [json]                       a log event in JSON, its fields by path
 *   decode: [metric]                     {"name": …, "ts": …, "value": …, "tags": {…}}; one or an array
 *   decode: [logfmt]                     a line of KEY=VALUE pairs, its fields by key
 *   decode: [{csv: [time, -, host]}]     a line of columns with these names; also tsv
 *   decode: [influx]                     the line protocol of Telegraf, or [statsd]: each value is an event
 *   decode: [otlp]                       logs and metrics of OpenTelemetry, in protobuf or JSON;
 *                                        {otlp: totals}
 *   decode: [otlp, combined]             a line that is the body of such a log
 *   decode: [remote_write]               samples and native histograms of Prometheus; {remote_write: deltas},
 *                                        {remote_write: totals}
 *   decode: [w3c]                        a line of columns that #Fields: names; {w3c: NAMES} also without
 *   decode: [{regex: '(?<time>\S+) …'}]  a line that this regular expression matches, its fields by group
 *   decode: [haproxy]                    a line as HAProxy writes it; preset.h has more servers
 *   fields: {userid: tag:userid, dc: header:dc, device: key, part: partition, path: /request/uri}
 *   time: /@timestamp                    or `broker`: the message's timestamp
 *
 * Steps   : steps that unwrap (syslog, cri, json:/pointer, msgpack, avro, protobuf, otlp), if any, then one
 *           that makes events; at most DECODE_STEPS_MAX together; none means [auto]. As the last step, otlp
 *           makes events, too.
 * Fields  : NAME: ORIGIN. NAME is a field of event.h, or becomes an own field. ORIGIN is a JSON pointer (into
 *           the innermost JSON), tag:NAME (of a metric, an attribute of otlp, or a label of remote_write),
 *           header:NAME, key, topic, partition or timestamp. It adds a field to the event of the last step;
 *           if the origin has a text, it replaces the event's field.
 *           `timestamp` is in seconds, "1286721442.000".
 * Constant: a field that is the same in all events of a file (constants.h), such as the `vhost` in its name.
 *           It must be a built-in field that is just a text, or an own field, and have no origin here.
 * Open    : [json], [metric], [otlp], [remote_write], [logfmt] and [w3c] also fill every known own field
 *           without an origin here, from the member /NAME, the tag, the attribute, the label, the key or the
 *           column NAME. So a report with `by: [name, userid]` needs no `fields`.
 *           [metric] and [remote_write] do so, too, for built-in fields that are just texts, as `host`.
 * Time    : for [json], the pointer to the time; by default the first of /@timestamp, /timestamp, /time and
 *           /ts that exists. The time is one of text_time.h, or a number since 1970 (timestamp.h). For
 *           logfmt, csv, tsv, regex and w3c, it is the pointer to one part: /time. Other steps have a time of
 *           their own.
 *           `broker` replaces the time of any step.
 * Errors  : EX_CONFIG, "found …, expected …"; the struct is then unchanged.
 * Threads : read-only once finished; shared by all.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/format.h"
#include "ingest/derive/derive.h"
#include "ingest/event.h"
#include "ingest/schema/registry.h"

#define DECODE_DELTAS       "deltas" /* the text of {remote_write: deltas} */
#define DECODE_TOTALS       "totals" /* the text of {remote_write: totals} and {otlp: totals} */
#define DECODE_STEPS_MAX    4
#define DECODE_FIELDS_MAX   FIELD_MAX
#define DECODE_ORIGIN_BYTES 128  /* bytes of one origin's text, with its NUL */
#define DECODE_PARTS_BYTES  4096 /* bytes of the last step's text, with its NUL */

/* Built-in fields that a tag of a metric event may have. Not `name`: it is the event's. */
#define DECODE_TAG_FIELDS (CHAIN_FIELD_TEXTS & ~((uint64_t)1 << FIELD_NAME))

enum decode_step_kind {
    STEP_SYSLOG,
    STEP_CRI,
    STEP_MSGPACK,
    STEP_AVRO,
    STEP_PROTOBUF,
    STEP_JSON_STRING,
    STEP_LINE,
    STEP_JSON,
    STEP_METRIC,
    STEP_LOGFMT,
    STEP_CSV,
    STEP_TSV,
    STEP_REGEX,
    STEP_W3C,
    STEP_INFLUX,
    STEP_STATSD,
    STEP_OTLP,
    STEP_REMOTE_WRITE
};

struct decode_step {
    enum decode_step_kind kind;
    enum clf_format format;            /* a STEP_LINE's format */
    bool is_compiled;                  /* a STEP_LINE's format is the struct decode's */
    char pointer[DECODE_ORIGIN_BYTES]; /* a STEP_JSON_STRING's pointer */
};

static inline bool decode_step_reads_json(enum decode_step_kind kind)
{
    return kind == STEP_JSON_STRING || kind == STEP_JSON || kind == STEP_METRIC;
}

/* Does the step read whole messages, and write them as JSON? */
static inline bool decode_step_is_binary(enum decode_step_kind kind)
{
    return kind == STEP_MSGPACK || kind == STEP_AVRO || kind == STEP_PROTOBUF;
}

/* Does the step read messages by their schema? */
static inline bool decode_step_has_schema(enum decode_step_kind kind)
{
    return kind == STEP_AVRO || kind == STEP_PROTOBUF;
}

/* Are the step's messages no lines, but bytes that it must see whole? */
static inline bool decode_step_reads_bytes(enum decode_step_kind kind)
{
    return decode_step_is_binary(kind) || kind == STEP_REMOTE_WRITE;
}

/* Do its events have tags, attributes or labels, for tag:NAME? */
static inline bool decode_step_has_tags(enum decode_step_kind kind)
{
    return kind == STEP_METRIC || kind == STEP_OTLP || kind == STEP_REMOTE_WRITE;
}

/* Does the step make events of a line's named parts (text_step.h)? */
static inline bool decode_step_has_parts(enum decode_step_kind kind)
{
    return kind == STEP_LOGFMT || kind == STEP_CSV || kind == STEP_TSV || kind == STEP_REGEX ||
           kind == STEP_W3C;
}

/* Does the configuration name these parts? */
static inline bool decode_step_names_parts(enum decode_step_kind kind)
{
    return decode_step_has_parts(kind) && kind != STEP_LOGFMT && kind != STEP_W3C;
}

/* May a line make several events, one for each metric value (metric_line.h)? */
static inline bool decode_step_has_values(enum decode_step_kind kind)
{
    return kind == STEP_INFLUX || kind == STEP_STATSD;
}

enum origin_kind {
    ORIGIN_POINTER,
    ORIGIN_TAG,
    ORIGIN_HEADER,
    ORIGIN_KEY,
    ORIGIN_TOPIC,
    ORIGIN_PARTITION,
    ORIGIN_TIMESTAMP
};

struct origin {
    enum origin_kind kind;
    enum field field;
    char text[DECODE_ORIGIN_BYTES]; /* the pointer, or the tag's or header's name */
};

/* The names of a metric event's members. */
enum metric_member { METRIC_NAME, METRIC_TIME, METRIC_VALUE, METRIC_TAGS, METRIC_MEMBER_COUNT };

struct decode {
    struct decode_step steps[DECODE_STEPS_MAX];
    size_t step_count;
    struct origin origins[DECODE_FIELDS_MAX];
    size_t origin_count;
    char parts[DECODE_PARTS_BYTES];        /* the last step's columns or expression; "": it has none */
    uint64_t part_fields;                  /* bit per enum field that these fill */
    struct format format;                  /* of a step that is compiled */
    const struct preset *preset;           /* that the last step names; NULL: none */
    uint64_t constants;                    /* bit per enum field that a file's constants may set */
    const struct registry *registry;       /* of schemas of `avro` and `protobuf`, borrowed */
    char schema_path[REGISTRY_PATH_BYTES]; /* file of its schema; "": the registry has it */
    const struct derive *derive;           /* fields that are made of others, borrowed; NULL: none */
    bool time_is_brokers;
    char time_pointer[DECODE_ORIGIN_BYTES];             /* "": the default pointers */
    char metric[METRIC_MEMBER_COUNT][FIELD_NAME_BYTES]; /* "name", "ts", "value", "tags" */
};

void decode_init(struct decode *d);
/* Each takes one piece, so that a configuration can name the line of a wrong piece. */
bool decode_add_step(struct decode *d, struct slice text, struct err *e) MUST_CHECK;
/* May the first of these steps have commas in its text? Then all up to the end of `steps` is that one
 * step. */
bool decode_takes_rest(const char *steps);
bool decode_add_field(struct decode *d, struct slice name, struct slice origin, struct err *e) MUST_CHECK;
/* May come again for the same field. */
bool decode_add_constant(struct decode *d, struct slice name, struct err *e) MUST_CHECK;
bool decode_set_time(struct decode *d, struct slice text, struct err *e) MUST_CHECK;
bool decode_set_metric(struct decode *d, enum metric_member member, struct slice text,
                       struct err *e) MUST_CHECK;
/* Call it after the last piece: checks the whole, and adds [auto] if there is no step. */
bool decode_finish(struct decode *d, struct err *e) MUST_CHECK;

/* For decode_finish() only: do the pieces fit together? decode_check.c has it. */
bool decode_check(const struct decode *d, enum decode_step_kind last, struct err *e) MUST_CHECK;

/* Bits of the fields that the last step finds, fields of `fields`, and constants. */
uint64_t decode_fields(const struct decode *d);
/* May events have this field? True for built-in fields that the last step knows, fields of `fields`,
 * constants, derived fields that are asked for, and any own field if the decoding is open. */
bool decode_provides(const struct decode *d, enum field f);
bool decode_is_open(const struct decode *d);
/* Do lines of a file depend on the last #Fields: before them (w3c.h)? */
bool decode_heeds_directives(const struct decode *d);
/* Does the third quoted text of a line end the line? So does the agent in combined. Lines of auto are mostly
 * combined. */
bool decode_ends_with_agent(const struct decode *d);
/* Does `fields` say where this field comes from? */
bool decode_has_origin(const struct decode *d, enum field f);
/* Does the last step not read the field itself, since `fields` says where it comes from? So it is with an own
 * field, and with a built-in one that comes from another member or tag. */
bool decode_is_replaced(const struct decode *d, enum field f);
/* The known own field of this name, for the last step to fill; FIELD_MAX: there is none, or `fields` says
 * where it comes from. */
enum field decode_own_field(const struct decode *d, const char *name);
/* Bits of the fields that tags or labels of these names fill. */
uint64_t decode_tag_fields(const struct decode *d);
/* "json:/message": as decode_add_step() takes it. */
void decode_print_step(const struct decode *d, size_t i, struct text *out);
/* The name of a step that a configuration writes as `NAME: TEXT`, and its text; NULL: it is written
 * otherwise. */
const char *decode_named_step(const struct decode *d, size_t i, struct slice *text);
/* "[json:/message, combined]", as YAML. */
void decode_print_steps(const struct decode *d, struct text *out);
/* "tag:userid": as decode_add_field() takes it. */
void decode_print_origin(const struct origin *o, struct text *out);
/* Does the last step make events of totals since a start, as of levels? */
bool decode_keeps_totals(const struct decode *d);
/* Does a step need a schema, of the registry or of schema_path? */
bool decode_needs_schema(const struct decode *d);
/* The kind of that schema. Pre: decode_needs_schema(). */
enum schema_kind decode_schema_kind(const struct decode *d);
/* The name of the first step, if its messages are no lines: "msgpack". NULL: they may be. */
const char *decode_binary_name(const struct decode *d);
/* The texts that decode_add_step() takes, for help texts and "did you mean"; NULL at the end. */
extern const char *const decode_step_names[];
