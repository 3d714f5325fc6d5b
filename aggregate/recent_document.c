#include "aggregate/recent_document.h"

#include "aggregate/dimension.h"
#include "aggregate/raw_document.h"
#include "base/mem.h"
#include "ingest/distribution.h"
#include "ingest/record.h"

#include <endian.h>
#include <stdio.h>

#define BIT(f)           ((uint64_t)1 << (f))
#define NAME_BYTES       16 /* of a built-in field, with its NUL: they are copied as a whole */
#define PLACE_DIGITS     19
#define ELEMENT_DIGITS   6
#define OTHER_NAME_BYTES (FIELD_NAME_BYTES + 2)

/* https://bsonspec.org */
enum { OF_TEXT = 0x02, OF_BOOL = 0x08, OF_DATE = 0x09, OF_INT = 0x10, OF_LONG = 0x12 };

struct short_name {
    char bytes[NAME_BYTES];
    unsigned char len; /* with its NUL */
};

#define NAME(text)            \
    {                         \
        text, sizeof(text "") \
    }
static const struct short_name names[FIELD_COUNT] = {
    [FIELD_VHOST] = NAME("vhost"),       [FIELD_PORT] = NAME("port"),
    [FIELD_HOST] = NAME("host"),         [FIELD_LOGNAME] = NAME("logname"),
    [FIELD_USER] = NAME("user"),         [FIELD_REQUEST] = NAME("request"),
    [FIELD_METHOD] = NAME("method"),     [FIELD_TARGET] = NAME("target"),
    [FIELD_PATH] = NAME("path"),         [FIELD_PROTOCOL] = NAME("protocol"),
    [FIELD_STATUS] = NAME("status"),     [FIELD_BYTES] = NAME("response_size"),
    [FIELD_REFERRER] = NAME("referrer"), [FIELD_AGENT] = NAME("user_agent"),
    [FIELD_NAME] = NAME("name"),         [FIELD_VALUE] = NAME("value"),
};

void recent_room_fini(struct recent_room *room)
{
    text_fini(&room->odd);
}

static inline char *put_int(char *p, uint32_t value)
{
    value = htole32(value);
    memcpy(p, &value, sizeof value);
    return p + sizeof value;
}

static inline char *put_long(char *p, uint64_t value)
{
    value = htole64(value);
    memcpy(p, &value, sizeof value);
    return p + sizeof value;
}

static inline char *put_bytes(char *p, const char *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

/* Pre: there is room for NAME_BYTES. */
static inline char *put_head(char *p, int type, const struct short_name *name)
{
    *p++ = (char)type;
    memcpy(p, name->bytes, NAME_BYTES);
    return p + name->len;
}

/* Pre: the number has no more digits than these. */
static char *put_digits(char *p, uint64_t number, size_t digits)
{
    memset(p, '0', digits);
    for (char *at = p + digits; number > 0; number /= 10)
        *--at = (char)('0' + number % 10);
    return p + digits;
}

/* Writes time and place. */
static char *put_key(char *p, struct slice place, const struct event *ev)
{
    const uint64_t element = (uint64_t)ev->order & ((1U << RECORD_ELEMENT_BITS) - 1);
    const size_t len = place.len + PLACE_DIGITS + (element > 0 ? 1 + ELEMENT_DIGITS : 0);
    p = put_bytes(p, "\x09time", sizeof "\x09time");
    p = put_long(p, (uint64_t)ev->at_ms);
    *p++ = OF_TEXT;
    p = put_bytes(p, "at", sizeof "at");
    p = put_int(p, (uint32_t)len + 1);
    p = put_bytes(p, place.ptr, place.len);
    p = put_digits(p, (uint64_t)ev->order >> RECORD_ELEMENT_BITS, PLACE_DIGITS);
    if (element > 0) {
        *p++ = '.';
        p = put_digits(p, element, ELEMENT_DIGITS);
    }
    *p++ = '\0';
    return p;
}

/* Settles a text that is long or odd. */
static struct slice settle(const struct event *ev, enum field f, char room[RECENT_TEXT_BYTES])
{
    const bool is_escaped = !((ev->literal >> f) & 1) && event_is_odd(ev, f);
    return slice_of(room, dimension_settle(ev->field[f], is_escaped, RECENT_TEXT_BYTES, room));
}

/* Writes a text, unless there is no room for it: NULL. */
static inline char *put_text(char *p, const char *end, const struct short_name *name, const struct event *ev,
                             enum field f)
{
    char room[RECENT_TEXT_BYTES];
    struct slice s = dimension_is_plain(ev, f, RECENT_TEXT_BYTES) ? ev->field[f] : settle(ev, f, room);
    if (1 + name->len + sizeof(uint32_t) + s.len + 1 > (size_t)(end - p))
        return NULL;
    p = put_head(p, OF_TEXT, name);
    p = put_int(p, (uint32_t)s.len + 1);
    p = put_bytes(p, s.ptr, s.len);
    *p++ = '\0';
    return p;
}

/* Does a histogram have so many counts that it does not fit? A bucket is up to 16 bytes in an event, and 11
 * or more in a document. So its document is never long, nor is the room for it. */
static bool is_wide(const struct event *ev, enum field f)
{
    const struct distribution *d = event_distribution(ev, f);
    return d != NULL &&
           d->sides[DISTRIBUTION_ABOVE_0].counts.len + d->sides[DISTRIBUTION_BELOW_0].counts.len >
               2 * RECENT_FIELD_BYTES;
}

/* Writes a value or an own field, which may be a number, as a raw document has it. */
static char *put_other(char *p, const char *end, struct recent_room *room, const struct event *ev,
                       enum field f)
{
    char name[OTHER_NAME_BYTES], settled[RECENT_TEXT_BYTES];
    if (is_wide(ev, f))
        return NULL;
    raw_document_name(f, name);
    if (strcmp(name, "at") == 0 || strcmp(name, "cut") == 0)
        snprintf(name, sizeof name, "%s_", field_name(f));
    text_clear(&room->odd);
    if (raw_document_is_typed(ev, f) || dimension_is_plain(ev, f, RECENT_TEXT_BYTES))
        raw_document_field(&room->odd, name, ev, f);
    else
        raw_document_text(&room->odd, name, settle(ev, f, settled));
    return room->odd.len <= (size_t)(end - p) ? put_bytes(p, room->odd.ptr, room->odd.len) : NULL;
}

static inline char *put_field(char *p, const char *end, struct recent_room *room, const struct event *ev,
                              enum field f)
{
    if (f >= FIELD_VALUE)
        return put_other(p, end, room, ev, f);
    const struct short_name *name = &names[f];
    if (f != FIELD_STATUS && f != FIELD_BYTES)
        return put_text(p, end, name, ev, f);
    if (1 + name->len + sizeof(uint64_t) > (size_t)(end - p))
        return NULL;
    p = put_head(p, f == FIELD_STATUS ? OF_INT : OF_LONG, name);
    return f == FIELD_STATUS ? put_int(p, (uint32_t)ev->number[f]) : put_long(p, (uint64_t)ev->number[f]);
}

/* The fields that are kept unless a report lists some. */
static inline uint64_t usual_fields(const struct event *ev)
{
    const uint64_t of_request = BIT(FIELD_METHOD) | BIT(FIELD_TARGET) | BIT(FIELD_PROTOCOL) | BIT(FIELD_PATH);
    const uint64_t built_in = BIT(FIELD_COUNT) - 1;
    if (event_has(ev, FIELD_REQUEST))
        return ev->present & built_in & ~of_request;
    return ev->present & (event_has(ev, FIELD_TARGET) ? built_in & ~BIT(FIELD_PATH) : built_in);
}

struct slice recent_document(struct recent_room *room, const enum field *fields, size_t field_count,
                             struct slice place, const struct event *ev)
{
    _Static_assert(sizeof names[0].bytes == NAME_BYTES && FIELD_VALUE + 1 == FIELD_COUNT, "put_field()");
    char *p = put_key(room->bytes + sizeof(uint32_t), place, ev), *next;
    const char *const end = p + RECENT_FIELD_BYTES;
    bool is_cut = false;
    ASSERT(end + NAME_BYTES < room->bytes + sizeof room->bytes);
    for (uint64_t usual = field_count == 0 ? usual_fields(ev) : 0; usual != 0; usual &= usual - 1) {
        next = put_field(p, end, room, ev, (enum field)__builtin_ctzll(usual));
        is_cut |= next == NULL;
        p = next != NULL ? next : p;
    }
    for (size_t i = 0; i < field_count; i++) {
        if (!event_has(ev, fields[i]))
            continue;
        next = put_field(p, end, room, ev, fields[i]);
        is_cut |= next == NULL;
        p = next != NULL ? next : p;
    }
    if (is_cut)
        p = put_bytes(p,
                      "\x08"
                      "cut\0\1",
                      sizeof "\x08"
                             "cut\0\1" -
                          1);
    *p++ = '\0';
    (void)put_int(room->bytes, (uint32_t)(p - room->bytes));
    return slice_of(room->bytes, (size_t)(p - room->bytes));
}
