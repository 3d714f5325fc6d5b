/* otlp.h - reads the logs and metrics of OpenTelemetry (OTLP). One message holds many records, each is an
 * event or a reject of its own. chain.c calls it, and finds the JSON if it is that.
 *
 *   ExportLogsServiceRequest, LogsData         a record of a log: an event
 *   ExportMetricsServiceRequest, MetricsData   a data point: an event; one of a histogram: up to five
 *
 * Kinds   : both have the same outer fields. So each record shows what it is: a log's time, severity and
 *           flags are numbers where a metric's name is a text. A record with none of them is a reject
 *           (`member`). A span is a reject (`otlp`).
 * Logs    : the time is timeUnixNano, else observedTimeUnixNano. Own fields, if they are known: body,
 *           severity ("INFO"), severity_number, event_name, trace_id, span_id, and scope, its name. They come
 *           before attributes of these names. A body of keys and values has its members as attributes.
 * Metrics : as other metrics have them, a name, a value and a time; own fields: type, unit, scope. A point of
 *           a histogram has the events NAME.count, NAME.sum, NAME.min and NAME.max; an exponential one also
 *           NAME, whose value stands for all numbers of the point (distribution.h). `type` is gauge, sum,
 *           histogram or exponential_histogram.
 * Totals  : a sum or histogram since a start (cumulative), or of unknown temporality, is a reject
 *           (`cumulative`): a total must not be added to the next. A sum that may fall, as a level of memory,
 *           is a gauge then. All summaries are totals. Such a metric is one reject, whatever points it has.
 *           If the step is {otlp: totals}, cumulative sums and histograms with bounds of their own are
 *           events, as levels are.
 * Broken  : a record that is broken is a reject (`otlp`), others of its message are not. The rest of a broken
 *           part that holds records is one reject.
 * Bodies  : if another step follows, it gets each body that is a text. Any other record is then a reject
 *           (`member`).
 * Owner   : texts are slices of the message, or of the arena.
 * Cost    : one pass over each record, and one over the heads of the records of each scope.
 * Threads : one at a time.
 * Source  : https://github.com/open-telemetry/opentelemetry-proto, and the data model of metrics
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/otlp_result.h"
#include "ingest/record.h"

struct otlp;

/* Both are borrowed. */
struct otlp *otlp_new(const struct decode *d, size_t line_max, struct arena *memory);
void otlp_free(struct otlp *o);
/* Makes it also find the attribute of this name, which is borrowed; returns its number. */
size_t otlp_add_tag(struct otlp *o, const char *name);
/* The attribute of the last event or text; false: it has none. */
bool otlp_tag(const struct otlp *o, size_t tag, struct slice *text);

/* Does a message of JSON begin here? One of protobuf begins with a line feed. */
bool otlp_is_json(struct slice bytes);
/* Begins a message. False: *why says why it is none. */
bool otlp_begin(struct otlp *o, struct slice bytes, const struct record *r, struct reject *why);
/* As otlp_begin(), of a well-formed JSON object that is not deeper than CHAIN_DEPTH_MAX. */
bool otlp_begin_json(struct otlp *o, struct slice json, const struct record *r, struct reject *why);
/* Drops the records that are left. */
void otlp_reset(struct otlp *o);
/* Has a message begun whose OTLP_END has not come? */
bool otlp_has_begun(const struct otlp *o);
/* Gets the next event, or the text of the next body for the step behind, or *why the next record is neither.
 * *bytes is the record, or the data point; in JSON if the message is that. */
enum otlp_result otlp_next(struct otlp *o, struct event *ev, struct slice *text, struct reject *why,
                           struct slice *bytes);
