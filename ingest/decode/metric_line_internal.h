/* metric_line_internal.h - the state of a line of metric values, for metric_line.c, influx.c and statsd.c. */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/reject.h"

struct metric_tag {
    enum field field;
    struct slice text;
};

struct metric_line {
    enum decode_step_kind kind;
    uint64_t tag_fields; /* bit per field that a tag may fill */
    struct slice line;
    const char *end; /* of the line, without its carriage return */
    const char *p;   /* the next value; NULL: there is none */
    struct slice name;
    struct metric_tag tags[FIELD_MAX];
    size_t tag_count;
    int64_t at_ms;
    /* of statsd */
    const char *values_end;              /* the bar behind the values */
    struct slice type, rate;             /* "c"; rate.ptr NULL: none */
    enum field type_field, member_field; /* FIELD_MAX: no report uses it */
};

/* Notes a tag if a field has its name. Of two tags of one name the last counts. */
void metric_line_tag(struct metric_line *m, struct slice key, struct slice text);
/* Writes the reject, and ends the line. False. */
bool metric_line_refuse(struct metric_line *m, enum reject_reason reason, const char *at, struct reject *why);
/* Undoes backslashes before one of `specials`. */
struct slice metric_line_unescape(struct slice text, const char *specials, struct arena *memory);

bool influx_begin(struct metric_line *m, struct arena *memory, struct reject *why);
bool influx_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why);
bool statsd_begin(struct metric_line *m, struct arena *memory, struct reject *why);
bool statsd_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why);
