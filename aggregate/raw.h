/* raw.h - which events of a source are also stored raw, each as a document of its own: the source's `raw`
 * configuration. The configuration fills it; shards and the MongoDB store read it.
 *
 *   raw: all                                all fields of the events, under the names of raw_document.h
 *   raw: [host, time, path, user_agent]     these fields, null if an event lacks one
 *   raw_w: majority                         the write concern of these documents, apart from that of counts
 *   raw_growth: collection per day keep 30  how they expire
 *
 * Growth  : `forever`; `ttl 7d`: the server deletes them; `capped 1GiB`: the server deletes the oldest in
 *           order of arrival; or a collection or a database for each period of the events' own time: the last
 *           `keep` are kept, and older ones are dropped whole. Weeks begin on Mondays; days and months are
 *           UTC's.
 * Threads : read-only once finished; shared by all.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/decode/decode.h"

#define RAW_SOURCES_MAX 64
#define RAW_FIELDS_MAX  32
#define RAW_TIME        FIELD_MAX /* stands for the event's time in a list of fields */
#define RAW_W_MAJORITY  (-1)
#define RAW_W_MAX       50 /* a replica set has at most so many members */

enum raw_kind { RAW_OFF, RAW_ALL, RAW_LIST };

enum raw_growth {
    RAW_FOREVER,
    RAW_TTL,
    RAW_CAPPED,
    RAW_COLLECTION_PER_DAY,
    RAW_COLLECTION_PER_WEEK,
    RAW_COLLECTION_PER_MONTH,
    RAW_DATABASE_PER_MONTH
};

struct raw_field {
    int id; /* an enum field, or RAW_TIME */
    char name[FIELD_NAME_BYTES];
};

struct raw {
    const char *source; /* its name, borrowed */
    uint32_t number;    /* index among all sources */
    enum raw_kind kind;
    bool is_of_lines;  /* RAW_ALL: documents always have the fields of a log line */
    uint64_t provided; /* RAW_ALL: bits of the built-in fields that events may have */
    struct raw_field fields[RAW_FIELDS_MAX];
    size_t field_count; /* entries of `fields`; 0 unless RAW_LIST */
    int64_t w;          /* members that must acknowledge a write; 0: none; or RAW_W_MAJORITY */
    bool j;             /* they acknowledge once it is in their journals; no meaning with w: 0 */
    enum raw_growth growth;
    int64_t limit; /* ms for RAW_TTL, bytes for RAW_CAPPED; else the number of periods kept, 0: all */
};

/* Numbers of raw events of one source, by outcome. */
struct raw_figures {
    const char *source;
    int64_t stored;  /* events that are in the store, written by this handle or before */
    int64_t refused; /* events that the server refused for good */
    int64_t expired; /* events whose period was dropped */
};

/* Each takes one piece of the configuration. Errors: EX_CONFIG, "found …, expected …". */
bool raw_add_field(struct raw *r, struct slice name, struct err *e) MUST_CHECK;
/* "off" or "all". */
bool raw_set_kind(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
bool raw_set_w(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
bool raw_set_growth(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
/* Call it after the last piece: does the decoding provide these fields, and do the pieces fit together? */
bool raw_finish(struct raw *r, const struct decode *d, struct err *e) MUST_CHECK;

/* Each prints a piece in the form that the configuration takes. */
void raw_print_kind(const struct raw *r, struct text *out);
void raw_print_w(const struct raw *r, struct text *out);
void raw_print_growth(const struct raw *r, struct text *out);
/* The values that raw_set_w() and raw_set_growth() take, in words. */
#define RAW_W_EXPECTED "0 to 50, or majority"
#define RAW_GROWTH_EXPECTED                                                                                 \
    "forever, ttl 7d, capped 1GiB, collection per day, week or month, or database per month, both with or " \
    "without keep 30"

/* May documents have this field, built-in or RAW_TIME? */
bool raw_has_field(const struct raw *r, int id);
static inline bool raw_has_periods(const struct raw *r)
{
    return r->growth >= RAW_COLLECTION_PER_DAY;
}
/* Start of the period that holds an instant; 0 if the growth has no periods. */
int64_t raw_period(const struct raw *r, int64_t at_ms);
/* The start of the first period that is kept if `newest_ms` is the start of the newest; INT64_MIN: all are
 * kept. */
int64_t raw_first_kept(const struct raw *r, int64_t newest_ms);
