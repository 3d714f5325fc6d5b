/* metric_line.h - lines that hold metric values: each value is an event. chain.c calls it.
 *
 *   influx   cpu,host=a,cpu=cpu0 usage_idle=97.5,usage_user=2i,state="up" 1286720242000000000
 *   statsd   page.hits:1|c|@0.1|#host:a,region:eu
 *
 * Influx  : the line protocol, as Telegraf writes it. Each field that is a number is an event; its name is
 *           measurement.field. Texts and booleans are none. A line without any number is a reject. The time
 *           is a number of timestamp.h; if there is none, the record's.
 * Statsd  : several values may stand between colons. A counter's value is divided by its sample rate. Tags as
 *           DogStatsD (|#) and InfluxDB (name,tag=text) write them. The time is that behind |T, or the
 *           record's. Own fields: `type` is counter, gauge, timer, histogram, distribution or set; `member` a
 *           set's text. Sampled timers, counters that do not divide exactly, and gauges relative to an
 *           earlier value (+1, -1) are rejects: `inexact`.
 * Tags    : fill the fields that have their names: just texts, as `host`, and known own ones.
 * Owner   : texts are slices of the line, or of the arena.
 * Threads : one at a time.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/record.h"

struct metric_line;

/* For the last step of `d`, which is borrowed: a STEP_INFLUX or STEP_STATSD. */
struct metric_line *metric_line_new(const struct decode *d);
void metric_line_free(struct metric_line *m);
/* Reads a line. False: *why says why it does not fit; it has no event. */
bool metric_line_begin(struct metric_line *m, struct slice line, const struct record *r, struct arena *memory,
                       struct reject *why);
/* Drops the values that are left. */
void metric_line_reset(struct metric_line *m);
/* Is a value left? */
bool metric_line_has_more(const struct metric_line *m);
/* Makes the event of the next value. False: *why says why it makes none; others may be left. */
bool metric_line_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why);
