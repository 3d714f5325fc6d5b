/* reject.h - a reject: a record that could not be decoded, and the reason. Bad data is a result, a counter
 * and a sample, never an error.
 *
 * Only this table lists reasons. Its names are keys of the books, of --rejects files and of metrics, so a
 * name never changes once released.
 */
#pragma once

#include <stddef.h>

#define REJECT_TABLE(X)                                                                                      \
    X(EMPTY, "empty", "the line is empty")                                                                   \
    X(HOST, "host", "expected a host name or address")                                                       \
    X(IDENTITY, "identity", "expected the logname and the user after the host")                              \
    X(TIME, "time", "expected a time as [10/Oct/2000:13:55:36 -0700] or 2000-10-10T20:55:36Z")               \
    X(TIME_RANGE, "time_range", "the time is not a date of the years 1970 to 9999")                          \
    X(REQUEST, "request", "expected the request in double quotes")                                           \
    X(STATUS, "status", "expected a status of three digits, or -")                                           \
    X(BYTES, "bytes", "expected a response size, or -")                                                      \
    X(REFERRER, "referrer", "expected the referrer in double quotes")                                        \
    X(AGENT, "agent", "expected the user agent in double quotes")                                            \
    X(UNTERMINATED, "unterminated", "a double quote is never closed")                                        \
    X(TRAILING, "trailing", "unexpected text after the last field")                                          \
    X(TOO_LONG, "too_long",                                                                                  \
      "the line is longer than limits.line_max, or a packed message than 8 times that, unpacked")            \
    X(FUTURE, "future", "the time is further in the future than limits.future_max")                          \
    X(TOMBSTONE, "tombstone", "the message has no value")                                                    \
    X(SYSLOG, "syslog", "expected a syslog header, as <34>1 2003-10-11T22:14:15Z host app - - - text")       \
    X(CRI, "cri", "expected a line of a container's log, as 2000-10-10T20:55:36.5Z stdout F text")           \
    X(PART, "part", "it is a part of a line that the container's runtime split: parts are not joined")       \
    X(JSON, "json", "expected well-formed JSON")                                                             \
    X(JSON_DEPTH, "json_depth", "the JSON is nested too deeply")                                             \
    X(MEMBER, "member", "a member that is needed is not there")                                              \
    X(NO_TIME, "no_time",                                                                                    \
      "there is no time in /@timestamp, /timestamp, /time or /ts, or where `time` of the source says: set "  \
      "`time`")                                                                                              \
    X(TYPE, "type", "a member is of another type than expected")                                             \
    X(NUMBER, "number", "expected a number from -10^12 to 10^12")                                            \
    X(LOGFMT, "logfmt", "expected keys and values, as time=2000-10-10T20:55:36Z status=200 msg=\"text\"")    \
    X(COLUMNS, "columns", "expected as many columns as there are names, with separators between them")       \
    X(FIELDS, "fields",                                                                                      \
      "no #Fields: with date and time holds here, or a message has another one than the configuration: "     \
      "name the fields, as w3c: date time c-ip")                                                             \
    X(REGEX, "regex", "the line does not match the regular expression of decode as a whole")                 \
    X(INFLUX, "influx", "expected the line protocol, as cpu,host=a usage_idle=97.5 1286720242000000000")     \
    X(STATSD, "statsd", "expected NAME:VALUE|TYPE, as page.hits:1|c|@0.1|#host:a")                           \
    X(MSGPACK, "msgpack", "expected a value of MessagePack, not nested too deeply, with strings as keys")    \
    X(OTLP, "otlp", "expected logs or metrics of OTLP, in protobuf or JSON")                                 \
    X(CUMULATIVE, "cumulative",                                                                              \
      "it is a total since a start: have deltas sent, or keep numbers as totals by decode: "                 \
      "[{otlp: totals}] or [{remote_write: totals}]")                                                        \
    X(REMOTE_WRITE, "remote_write", "expected a request of Prometheus' remote write, 1.0 or 2.0")            \
    X(GAUGE_HISTOGRAM, "gauge_histogram",                                                                    \
      "it is the state of a gauge histogram: states are not added up; if they are deltas, set decode: "      \
      "[{remote_write: deltas}]")                                                                            \
    X(STALE, "stale", "it is a stale marker: its series has ended or was not scraped")                       \
    X(SCHEMA, "schema", "expected a message of a schema registry: a byte 0, and the schema's id in 4 bytes") \
    X(SCHEMA_KIND, "schema_kind", "its schema is of another kind than the step of decode reads")             \
    X(AVRO, "avro", "the bytes do not fit the Avro schema of the message")                                   \
    X(PROTOBUF, "protobuf", "the bytes do not fit the Protobuf schema of the message")                       \
    X(INEXACT, "inexact",                                                                                    \
      "it cannot be counted exactly: it is sampled, relative to an earlier value, or has a part of a count") \
    X(MATCH_LIMIT, "match_limit", "the regular expression of decode takes too many steps for the line")      \
    X(FORMAT, "format", "the line does not fit the format here")

#define REJECT_ENUM(id, name, help) REJECT_##id,
enum reject_reason { REJECT_TABLE(REJECT_ENUM) REJECT_COUNT };
#undef REJECT_ENUM

struct reject {
    enum reject_reason reason;
    size_t column; /* column of the first byte that does not fit, in bytes from 1 */
};

const char *reject_name(enum reject_reason reason);
const char *reject_help(enum reject_reason reason);
