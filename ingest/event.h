/* event.h - an event: an instant and its fields, as slices of text. Decoders fill it, filters, shards and the
 * judge read it.
 *
 * Owner  : nobody. The slices are borrowed: they point into the record or into memory of its chain, and
 *          chain.h says how long they live.
 * Escapes: a field whose `odd` bit is set holds a backslash, a control byte or a byte of 0x7F or above.
 *          Settling a dimension makes it safe (dimension.h). A backslash begins an escape, as in the log; if
 *          the `literal` bit is set, too, it stands for itself (JSON, whose escapes were undone).
 * Absent : a built-in field that is "" or "-", or one that is not in this format, has its `present` bit
 *          clear; its slice must then not be read.
 * Own    : users name further fields: a metric's tags, a path into JSON, a header of the message. These own
 *          fields get numbers in order of first sight, for the life of the process.
 * Numbers: number[] holds the value of status, bytes and value if present, and of an own field if its
 *          `numeric` bit is set; in units of 1/field_scale().
 * Unfit  : a log that names its fields may have a status of its own, "ok". Such a field is absent, its
 *          `unfit` bit is set, and its slice is the text.
 * Many   : a metric's value may stand for many numbers (distribution.h). Then it is their sum, and its
 *          `numeric` bit is set.
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

struct distribution;

enum field {
    FIELD_VHOST,    /* server name of vhost_combined */
    FIELD_PORT,     /* its port */
    FIELD_HOST,     /* the client: a name, IPv4 or IPv6 address */
    FIELD_LOGNAME,  /* identd's answer */
    FIELD_USER,     /* may contain spaces */
    FIELD_REQUEST,  /* the request line as logged, HTTP or not */
    FIELD_METHOD,   /* this and the next three: only if the request line is HTTP */
    FIELD_TARGET,   /* path with its query string, as RFC 9112 calls it */
    FIELD_PATH,     /* target up to its first '?', without the server's name of an absolute address */
    FIELD_PROTOCOL, /* "HTTP/1.1"; absent in HTTP/0.9 */
    FIELD_STATUS,   /* three digits; number[] holds its value */
    FIELD_BYTES,    /* response size; number[] holds its value */
    FIELD_REFERRER,
    FIELD_AGENT,
    FIELD_NAME,  /* a metric's name */
    FIELD_VALUE, /* a metric's value; number[] holds it */
    FIELD_COUNT  /* number of built-in fields; own fields are FIELD_COUNT … FIELD_MAX - 1 */
};

#define FIELD_MAX          64
#define FIELD_OWN_MAX      (FIELD_MAX - FIELD_COUNT)
#define FIELD_NAME_BYTES   32       /* with its NUL */
#define FIELD_QUERY_PREFIX "query:" /* of an own field: a parameter of the target (derive/derive.h) */

/* A status or size above this is rejected, so that sums stay within int64 for fewer than 2^17 such events. */
#define EVENT_NUMBER_MAX  ((int64_t)1 << 46)
/* Other numbers are decimal fractions, kept as integers: float sums would depend on their order. Sums of very
 * large ones saturate (measure.h). */
#define EVENT_SCALE       1000000
#define EVENT_DECIMAL_MAX ((int64_t)1000000000000 * EVENT_SCALE) /* largest magnitude; more is rejected */

struct event {
    int64_t at_ms;    /* since 1970-01-01T00:00:00Z, >= 0 */
    int64_t order;    /* record_order(): among events of one instant, the larger is the later */
    uint64_t present; /* bit per enum field: the event has it */
    uint64_t odd;     /* bit per enum field: see Escapes */
    uint64_t literal; /* bit per enum field: see Escapes; valid only if the field is odd */
    uint64_t unfit;   /* bit of status and of bytes: see Unfit */
    uint64_t numeric; /* bit per own field and of the value: see Numbers, Many; valid only if it is present */
    struct slice field[FIELD_MAX];
    int64_t number[FIELD_MAX];
    const struct distribution *distribution; /* valid only if the value stands for many numbers */
};

/* Is the text of a built-in field absent? */
static inline bool event_is_absent(const char *from, const char *to)
{
    return from == to || (to - from == 1 && *from == '-');
}

static inline bool event_has(const struct event *ev, enum field f)
{
    return (ev->present >> f) & 1;
}

/* Has it all fields of a set of bits? */
static inline bool event_has_all(const struct event *ev, uint64_t fields)
{
    return (fields & ~ev->present) == 0;
}

static inline bool event_is_odd(const struct event *ev, enum field f)
{
    return (ev->odd >> f) & 1;
}

/* Is it present, and are its bytes its text? */
static inline bool event_is_plain(const struct event *ev, enum field f)
{
    return ((ev->present & ~ev->odd) >> f) & 1;
}

static inline bool event_has_number(const struct event *ev, enum field f)
{
    return ((f < FIELD_COUNT ? ev->present : ev->present & ev->numeric) >> f) & 1;
}

/* The numbers for which the field's value stands; NULL: it is one number. Pre: event_has_number(). */
static inline const struct distribution *event_distribution(const struct event *ev, enum field f)
{
    return f == FIELD_VALUE && (ev->numeric >> f) & 1 ? ev->distribution : NULL;
}

/* The number of fields known so far, built-in and own. Any thread. */
int field_count(void);
/* "host", "path", …: the names that configuration and queries use. Any field known so far; any thread. The
 * text lives as long as the process. */
const char *field_name(enum field f);
bool field_parse(struct slice name, enum field *f);
/* The length of the longest name of a field at the start of the text: [a-z][a-z0-9_]*, or FIELD_QUERY_PREFIX
 * and letters, digits, - and _; shorter than FIELD_NAME_BYTES. */
size_t field_name_len(struct slice text);
/* As field_parse(), but makes an unknown name an own field. False: it is no name, or there are FIELD_OWN_MAX
 * own fields already. Any thread. */
bool field_intern(struct slice name, enum field *f);
/* Can number[] hold this field's value? For an own field it does if the text is a number. */
bool field_is_number(enum field f);
/* The factor by which number[] is scaled: 1 for status and bytes, EVENT_SCALE for all others. */
int64_t field_scale(enum field f);
