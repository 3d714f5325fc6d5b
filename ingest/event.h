/* event.h - one parsed record: an instant and its fields, as slices of the line they came from.
 *
 * Owner  : nobody; the slices are borrowed and live as long as the line. Nothing is copied, so escapes
 *          are still in place: a field whose `odd` bit is set holds a backslash escape, a control byte
 *          or a byte above 0x7F, and is made safe where a dimension is settled (dimension.h).
 * Absent : a field written as "-" (or not in this format) has its `present` bit clear; its slice must
 *          then not be read.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum field {
    FIELD_VHOST,    /* server name of vhost_combined */
    FIELD_PORT,     /* its port */
    FIELD_HOST,     /* the client: a name, IPv4 or IPv6 address */
    FIELD_LOGNAME,  /* identd's answer */
    FIELD_USER,     /* may contain spaces */
    FIELD_REQUEST,  /* the request line as logged, HTTP or not */
    FIELD_METHOD,   /* these four only where the request line is HTTP */
    FIELD_TARGET,   /* path with its query string, as RFC 9112 calls it */
    FIELD_PATH,     /* target up to its first '?' */
    FIELD_PROTOCOL, /* "HTTP/1.1"; absent in HTTP/0.9 */
    FIELD_STATUS,   /* three digits; number[] holds its value */
    FIELD_BYTES,    /* response size; number[] holds its value */
    FIELD_REFERRER,
    FIELD_AGENT,
    FIELD_COUNT
};

/* A number above this is rejected, so that sums stay within int64 for 2^17 such events. */
#define EVENT_NUMBER_MAX ((int64_t)1 << 46)

struct event {
    int64_t at_ms;    /* since 1970-01-01T00:00:00Z, >= 0 */
    uint32_t present; /* bit per enum field */
    uint32_t odd;     /* bit per enum field, see above */
    struct slice field[FIELD_COUNT];
    int64_t number[FIELD_COUNT]; /* of FIELD_STATUS and FIELD_BYTES, where present */
};

static inline bool event_has(const struct event *ev, enum field f)
{
    return (ev->present >> f) & 1;
}

static inline bool event_is_odd(const struct event *ev, enum field f)
{
    return (ev->odd >> f) & 1;
}

/* Present, and its bytes are its text. */
static inline bool event_is_plain(const struct event *ev, enum field f)
{
    return ((ev->present & ~ev->odd) >> f) & 1;
}

/* "host", "path", …: the names that configuration and queries use. */
const char *field_name(enum field f);
bool field_parse(struct slice name, enum field *f);
