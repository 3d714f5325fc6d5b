/* dimension.h - settles (normalizes) the values of a series' dimensions, identically for all stores.
 *
 * Settled : escapes are undone; then bytes that are not valid UTF-8, and control bytes, become %XX; text
 *           over `max_bytes` is cut and ends in `~` and 16 hex digits of the whole text's XXH3 hash.
 *           The value "(other)" becomes "%28other)", since "(other)" names the overflow series.
 *           An absent dimension is "-". Settled text never holds DIMENSION_SEPARATOR.
 * Cost    : the fast path (one dimension, nothing odd, not too long) returns the slice itself: no copy.
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"
#include "ingest/event.h"

#include <string.h>

#define DIMENSION_SEPARATOR            '\t'
#define DIMENSION_OTHER                "(other)"
#define DIMENSION_OTHER_BYTES          (sizeof DIMENSION_OTHER - 1)
#define DIMENSION_BYTES_MIN            32
#define DIMENSION_BYTES_MAX            4096
#define REPORT_DIMENSIONS_MAX          8
#define REPORT_SEGMENTS_MAX            9
/* Room for one key: every dimension settled at its longest, and separators. */
#define DIMENSION_KEY_BYTES(max_bytes) (REPORT_DIMENSIONS_MAX * ((size_t)(max_bytes) + 1))

enum dimension_kind {
    DIMENSION_FIELD,         /* the field itself: path, target, host, user, method, status, … */
    DIMENSION_PATH_SEGMENTS, /* "path:2", the first two segments: /a/b for /a/b/c.html */
    DIMENSION_STATUS_CLASS,  /* "status_class": 2xx */
    DIMENSION_REFERRER_HOST  /* "referrer_host": example.com for http://example.com/x */
};

struct dimension {
    enum dimension_kind kind;
    enum field field;
    int segments;
    char name[32]; /* as written; also its name in queries and documents */
};

/* Reads "path:2", "host", …; *d is changed only on true. */
bool dimension_parse(struct dimension *d, struct slice text);

/* Is it DIMENSION_OTHER? */
static inline bool dimension_is_other(struct slice s)
{
    return s.len == DIMENSION_OTHER_BYTES && memcmp(s.ptr, DIMENSION_OTHER, DIMENSION_OTHER_BYTES) == 0;
}

/* The key of the event's series, by the dimensions of a report. It points into the event or into `scratch`,
 * which has DIMENSION_KEY_BYTES(max_bytes) bytes. */
struct slice dimension_key(const struct dimension *dimensions, size_t count, const struct event *ev,
                           size_t max_bytes, char *scratch);

/* Is a field of the event surely settled as it is? Cheaper than dimension_key(), which knows it of more. */
static inline bool dimension_is_plain(const struct event *ev, enum field f, size_t max_bytes)
{
    return LIKELY(event_is_plain(ev, f)) &&
           LIKELY(ev->field[f].len <= max_bytes && ev->field[f].len != DIMENSION_OTHER_BYTES);
}

/* Settles `raw` into `out` (max_bytes bytes of room); `escaped`: undoes log escapes first. Returns the length
 * of the settled text. */
size_t dimension_settle(struct slice raw, bool escaped, size_t max_bytes, char *out);

/* Takes the text of the next dimension off a key. */
struct slice dimension_next(struct slice *key);
