#include "aggregate/recent.h"

#include "aggregate/bson_text.h"
#include "base/order.h"
#include "base/varint.h"

#include <endian.h>

#define FIRST_CAPACITY 4
#define ROOM_MIN       256

/* A document begins with its length, a date "time" and a text "at" (https://bsonspec.org). */
#define TIME_NAME    "\x09time"
#define PLACE_NAME   "\x02"
#define LENGTH_AT    (sizeof(uint32_t) + sizeof TIME_NAME + sizeof(int64_t) + 1 + sizeof "at")
#define PLACE_AT     (LENGTH_AT + sizeof(uint32_t))
#define DOCUMENT_MIN (PLACE_AT + 2)

static uint32_t int_at(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return le32toh(value);
}

static int64_t time_of(const char *document)
{
    uint64_t value;
    memcpy(&value, document + sizeof(uint32_t) + sizeof TIME_NAME, sizeof value);
    return (int64_t)le64toh(value);
}

/* Pre: recent_key() took the document. */
static struct slice place_of(const char *document)
{
    return slice_of(document + PLACE_AT, int_at(document + LENGTH_AT) - 1);
}

bool recent_key(struct slice document, int64_t *at_ms, struct slice *place)
{
    const char *p = document.ptr;
    if (document.len < DOCUMENT_MIN || int_at(p) != document.len || document.len > RECENT_EVENT_BYTES ||
        memcmp(p + sizeof(uint32_t), TIME_NAME, sizeof TIME_NAME) != 0 ||
        memcmp(p + LENGTH_AT - sizeof "at" - 1, PLACE_NAME "at", sizeof PLACE_NAME "at") != 0)
        return false;
    const uint32_t len = int_at(p + LENGTH_AT);
    if (len == 0 || len > document.len - PLACE_AT - 1)
        return false;
    *at_ms = time_of(p);
    *place = slice_of(p + PLACE_AT, len - 1);
    return true;
}

static int compare(const char *a, const char *b)
{
    const int order = order_int64(time_of(a), time_of(b));
    return order != 0 ? order : slice_compare(place_of(a), place_of(b));
}

int recent_compare(struct slice a, struct slice b)
{
    return compare(a.ptr, b.ptr);
}

/* The i-th event, from the oldest on. */
static inline struct recent_event *event_at(const struct recent *n, uint32_t i)
{
    const uint32_t at = n->first + i;
    return &n->events[at < n->capacity ? at : at - n->capacity];
}

/* Makes room for one more event, up to the limit. The events are in order from the first place on then. */
static void grow(struct recent *n, struct arena *arena)
{
    uint32_t capacity = n->capacity > 0 ? 2 * n->capacity : FIRST_CAPACITY;
    capacity = capacity < n->limit ? capacity : n->limit;
    struct recent_event *events = arena_add(arena, capacity * sizeof *events);
    for (uint32_t i = 0; i < n->count; i++)
        events[i] = *event_at(n, i);
    memset(events + n->count, 0, (capacity - n->count) * sizeof *events);
    n->events = events;
    n->capacity = capacity;
    n->first = 0;
}

/* Copies the document into the event's room, or into a larger one. */
static void put_document(struct recent_event *event, struct arena *arena, struct slice document)
{
    if (event->room < document.len) {
        event->room = ROOM_MIN;
        while (event->room < document.len)
            event->room *= 2;
        event->document = arena_add(arena, event->room);
    }
    event->len = (uint32_t)document.len;
    event->at_ms = time_of(document.ptr);
    memcpy(event->document, document.ptr, document.len);
}

/* The number of events that are older than the document. They come in order mostly, so it looks from the
 * newest on. *is_there: one of them is the same event. */
static uint32_t older_than(const struct recent *n, const char *document, bool *is_there)
{
    uint32_t i = n->count;
    int order = -1;
    while (i > 0 && (order = compare(event_at(n, i - 1)->document, document)) > 0)
        i--;
    *is_there = i > 0 && order == 0;
    return i;
}

void recent_add(struct recent *n, struct arena *arena, uint32_t limit, struct slice document)
{
    bool is_there;
    n->limit = limit > n->limit ? limit : n->limit;
    uint32_t at = older_than(n, document.ptr, &is_there);
    if (is_there || (at == 0 && n->count == n->limit))
        return;
    if (n->count == n->capacity && n->count < n->limit)
        grow(n, arena);
    struct recent_event added = n->count < n->limit ? *event_at(n, n->count) : *event_at(n, 0);
    put_document(&added, arena, document);
    if (n->count < n->limit) {
        n->count++;
    } else { /* the oldest falls out, and its place becomes that of the newest */
        n->first = n->first + 1 < n->capacity ? n->first + 1 : 0;
        at--;
    }
    for (uint32_t i = n->count - 1; i > at; i--)
        *event_at(n, i) = *event_at(n, i - 1);
    *event_at(n, at) = added;
}

void recent_add_all(struct recent *n, struct arena *arena, const struct recent *from)
{
    for (uint32_t i = from->count; i > 0; i--) /* the newest first: what is too old then is known at once */
        recent_add(n, arena, from->limit,
                   slice_of(event_at(from, i - 1)->document, event_at(from, i - 1)->len));
}

void recent_pack(const struct recent *n, struct text *out)
{
    uint8_t limit[VARINT_BYTES_MAX];
    if (n->count == 0)
        return;
    text_add(out, (const char *)limit, (size_t)(varint_put(limit, n->limit) - limit));
    for (uint32_t i = n->count; i > 0; i--)
        text_add(out, event_at(n, i - 1)->document, event_at(n, i - 1)->len);
}

uint32_t recent_begin(struct slice *packed)
{
    uint64_t limit;
    const uint8_t *begin = (const uint8_t *)packed->ptr, *p = varint_get(begin, begin + packed->len, &limit);
    if (p == NULL || limit == 0 || limit > RECENT_MAX)
        return 0;
    *packed = slice_of((const char *)p, packed->len - (size_t)(p - begin));
    return (uint32_t)limit;
}

bool recent_next(struct slice *packed, struct slice *document)
{
    int64_t at_ms;
    struct slice place;
    const uint32_t len = packed->len > sizeof(uint32_t) ? int_at(packed->ptr) : 0;
    if (len == 0 || len > packed->len || !recent_key(slice_of(packed->ptr, len), &at_ms, &place))
        return false;
    *document = slice_of(packed->ptr, len);
    *packed = slice_of(packed->ptr + len, packed->len - len);
    return true;
}

bool recent_merge(struct recent *to, struct arena *arena, struct slice packed)
{
    struct slice document, before = {NULL, 0};
    const uint32_t limit = packed.len > 0 ? recent_begin(&packed) : 0;
    uint32_t count = 0;
    while (recent_next(&packed, &document)) {
        if (++count > limit || (before.ptr != NULL && recent_compare(document, before) >= 0))
            return false;
        recent_add(to, arena, limit, document);
        before = document;
    }
    return packed.len == 0;
}

bool recent_is_whole(struct slice packed)
{
    struct slice document, before = {NULL, 0};
    const uint32_t limit = recent_begin(&packed);
    uint32_t count = 0;
    for (; recent_next(&packed, &document); before = document) {
        if (++count > limit || !bson_is_whole(document) ||
            (before.ptr != NULL && recent_compare(document, before) >= 0))
            return false;
    }
    return count > 0 && packed.len == 0;
}
