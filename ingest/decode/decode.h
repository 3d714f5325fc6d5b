/* decode.h - how the records of a source become events: what its configuration says, compiled once.
 *
 *   decode: [combined]                   a line: auto, common, combined, vhost_combined
 *   decode: [syslog, combined]           RFC 3164 or RFC 5424 around it: what follows its header
 *   decode: [json:/message, combined]    an envelope (Filebeat, Fluent Bit, Vector): the string at a JSON
 *                                        pointer (RFC 6901)
 *   decode: [json]                       a log event in JSON, its fields by path
 *   decode: [metric]                     {"name": …, "ts": …, "value": …, "tags": {…}}; one or an array
 *   fields: {userid: tag:userid, dc: header:dc, device: key, part: partition, path: /request/uri}
 *   time: /@timestamp                    or `broker`: the message's timestamp
 *
 * Steps   : any number of unwrapping ones (syslog, json:/pointer), then one that makes events; at most
 *           DECODE_STEPS_MAX; none means [auto].
 * Fields  : NAME: ORIGIN, where NAME is a field of event.h or an own one (which it becomes), and ORIGIN is
 *           a JSON pointer (of the innermost JSON), tag:NAME, header:NAME, key, topic, partition or
 *           timestamp. It adds to what the last step finds, and overrides it where it finds something
 *           itself. `timestamp` is in seconds, "1286721442.000".
 * Open    : [json] and [metric] also fill every known own field that has no origin here from the member
 *           /NAME or the tag NAME: a report that says `by: [name, userid]` needs no `fields`.
 * Time    : of [json]: where to find it, by default /@timestamp, /timestamp, /time or /ts, whichever comes
 *           first; RFC 3339, or a number of seconds or (above 10^11) milliseconds since 1970. Other steps
 *           have their own, but `broker` replaces any.
 * Errors  : EX_CONFIG, "found …, expected …"; the struct is then unchanged.
 * Threads : read-only once finished; shared by all.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/decode/clf.h"
#include "ingest/event.h"

#define DECODE_STEPS_MAX    4
#define DECODE_FIELDS_MAX   FIELD_MAX
#define DECODE_ORIGIN_BYTES 128 /* of one origin's text, with its NUL */

enum decode_step_kind { STEP_SYSLOG, STEP_JSON_STRING, STEP_LINE, STEP_JSON, STEP_METRIC };

struct decode_step {
    enum decode_step_kind kind;
    enum clf_format format;            /* of STEP_LINE */
    char pointer[DECODE_ORIGIN_BYTES]; /* of STEP_JSON_STRING */
};

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
    bool time_is_brokers;
    char time_pointer[DECODE_ORIGIN_BYTES];             /* "": the usual ones */
    char metric[METRIC_MEMBER_COUNT][FIELD_NAME_BYTES]; /* "name", "ts", "value", "tags" */
};

void decode_init(struct decode *d);
/* One piece at a time, so that a configuration can name the line of the piece that is wrong. */
bool decode_add_step(struct decode *d, struct slice text, struct err *e) MUST_CHECK;
bool decode_add_field(struct decode *d, struct slice name, struct slice origin, struct err *e) MUST_CHECK;
bool decode_set_time(struct decode *d, struct slice text, struct err *e) MUST_CHECK;
bool decode_set_metric(struct decode *d, enum metric_member member, struct slice text,
                       struct err *e) MUST_CHECK;
/* After the last piece: checks the whole, and is [auto] where no step was added. */
bool decode_finish(struct decode *d, struct err *e) MUST_CHECK;

/* May events have this field? For built-in ones that the last step knows, those of `fields`, and any own one
 * where the decoding is open. */
bool decode_provides(const struct decode *d, enum field f);
bool decode_is_open(const struct decode *d);
/* "json:/message": as decode_add_step() takes it. */
void decode_print_step(const struct decode_step *step, struct text *out);
/* "[json:/message, combined]", as YAML. */
void decode_print_steps(const struct decode *d, struct text *out);
/* "tag:userid": as decode_add_field() takes it. */
void decode_print_origin(const struct origin *o, struct text *out);
/* What decode_add_step() takes, for help texts and "did you mean"; NULL at the end. */
extern const char *const decode_step_names[];
