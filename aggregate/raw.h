/* raw.h - what of a source's events is also kept as they are, each as a document of its own: `raw` of its
 * configuration.
 *
 *   raw: all                                what the source's events have, under the names of raw_document.h
 *   raw: [host, time, path, user_agent]     these, null where an event has none
 *   raw_w: majority                         the write concern of these documents, apart from that of counts
 *   raw_growth: collection per day keep 30  how they are let go
 *
 * Growth  : `forever`; `ttl 7d`, by the server; `capped 1GiB`, the oldest in order of arrival; a collection
 *           or a database for each period of the events' own time, of which the last so many are kept, and
 *           older ones dropped whole. Weeks begin on Mondays, days and months are those of UTC.
 * Threads : read-only once finished; shared by all.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/decode/decode.h"

#define RAW_SOURCES_MAX 64
#define RAW_FIELDS_MAX  32
#define RAW_TIME        FIELD_MAX /* the event's time, among its fields */
#define RAW_W_MAJORITY  (-1)
#define RAW_W_MAX       50 /* the most members of a replica set */

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
    uint32_t number;    /* among all sources */
    enum raw_kind kind;
    bool is_of_lines;  /* RAW_ALL: the fields of a log line are there in any case */
    uint64_t provided; /* RAW_ALL: bits of the built-in fields that events may have */
    struct raw_field fields[RAW_FIELDS_MAX];
    size_t field_count; /* of RAW_LIST */
    int64_t w;          /* members that must have it, 0: none is asked; or RAW_W_MAJORITY */
    bool j;             /* … in their journals; means nothing with w: 0 */
    enum raw_growth growth;
    int64_t limit; /* of RAW_TTL in ms, of RAW_CAPPED in bytes; else how many periods are kept, 0: all */
};

/* What became of events, of one source. */
struct raw_figures {
    const char *source;
    int64_t stored;  /* there, by this handle or before */
    int64_t refused; /* by the server, for good */
    int64_t expired; /* of a period that is dropped */
};

/* One piece at a time; EX_CONFIG, "found …, expected …". */
bool raw_add_field(struct raw *r, struct slice name, struct err *e) MUST_CHECK;
/* "off" or "all". */
bool raw_set_kind(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
bool raw_set_w(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
bool raw_set_growth(struct raw *r, struct slice text, struct err *e) MUST_CHECK;
/* After the last piece: are these fields that the decoding provides, and does all go together? */
bool raw_finish(struct raw *r, const struct decode *d, struct err *e) MUST_CHECK;

/* As they are taken. */
void raw_print_kind(const struct raw *r, struct text *out);
void raw_print_w(const struct raw *r, struct text *out);
void raw_print_growth(const struct raw *r, struct text *out);
/* What raw_set_w() and raw_set_growth() take, in words. */
#define RAW_W_EXPECTED "0 to 50, or majority"
#define RAW_GROWTH_EXPECTED                                                                                 \
    "forever, ttl 7d, capped 1GiB, collection per day, week or month, or database per month, both with or " \
    "without keep 30"

/* May documents have this one, a built-in field or RAW_TIME? */
bool raw_has_field(const struct raw *r, int id);
static inline bool raw_has_periods(const struct raw *r)
{
    return r->growth >= RAW_COLLECTION_PER_DAY;
}
/* Start of the period that an instant is in; 0 where there are none. */
int64_t raw_period(const struct raw *r, int64_t at_ms);
/* The start of the first of those that are kept when `newest_ms` is the start of the newest. */
int64_t raw_first_kept(const struct raw *r, int64_t newest_ms);
