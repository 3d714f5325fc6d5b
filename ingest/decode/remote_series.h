/* remote_series.h - a series of Prometheus' remote write: its labels and its type. remote_write.c calls it.
 *
 * Threads : one at a time.
 */
#pragma once

#include "ingest/decode/decode.h"
#include "ingest/event.h"
#include "ingest/reject.h"

/* A longer name or text of a label makes its series a reject: many series of 2.0 may have the same text, and
 * each looks at all of it. */
#define REMOTE_TEXT_MAX 2048

/* The numbers are those of metadata. */
enum remote_type {
    REMOTE_UNKNOWN,
    REMOTE_COUNTER,
    REMOTE_GAUGE,
    REMOTE_HISTOGRAM,
    REMOTE_GAUGE_HISTOGRAM,
    REMOTE_SUMMARY,
    REMOTE_INFO,
    REMOTE_STATESET,
    REMOTE_TYPES
};

enum remote_temporality { REMOTE_UNSAID, REMOTE_DELTA, REMOTE_CUMULATIVE };

/* The numbers of a series' fields. */
struct remote_layout {
    uint64_t samples, histograms;
    bool has_refs; /* labels are numbers of symbols */
};

struct remote_tag {
    struct slice name, text; /* text.ptr NULL: the series has no such label */
};

/* How labels become fields; set once. */
struct remote_labels {
    uint64_t fields;       /* bit per enum field that a label fills */
    enum field type, unit; /* own fields; FIELD_MAX: not known */
    struct remote_tag tags[DECODE_FIELDS_MAX];
    size_t tag_count;
};

/* The symbols of a message of 2.0: where in it the length of each begins. */
struct remote_symbols {
    struct slice message;
    const uint32_t *at;
    size_t count;
};

struct remote_series {
    struct slice name;
    struct slice unit;
    struct slice type_text; /* of a label; else the name of `type` */
    enum remote_type type;
    enum remote_temporality temporality;
    struct event fields; /* those of the labels */
};

/* Reads the labels and metadata of a series. Returns the reason why not, and *at, where; REJECT_COUNT: they
 * are read. The tags are those of this series then. */
enum reject_reason remote_series_read(struct remote_labels *labels, const struct remote_layout *layout,
                                      const struct remote_symbols *symbols, struct slice bytes,
                                      struct remote_series *s, const char **at);
/* Are its samples totals since a start? `are_deltas`: those without a type are not. */
bool remote_series_is_total(const struct remote_series *s, bool are_deltas);
/* Makes an event with its fields and its name. */
void remote_series_put(const struct remote_series *s, struct event *ev);
