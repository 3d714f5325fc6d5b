#include "aggregate/raw_document.h"

#include "aggregate/dimension.h"
#include "base/mem.h"
#include "ingest/distribution.h"
#include "ingest/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BIT(f)          ((uint64_t)1 << (f))
#define OFFSET_BYTES    40
#define SETTLED_TIMES   3 /* settling makes a text at most so many times longer */
#define NAME_ROOM_BYTES (FIELD_NAME_BYTES + 1)
#define PLACES_MAX      6  /* decimal places of an event's number */
#define DOUBLE_DIGITS   15 /* significant digits that a double keeps */
#define INDEX_BYTES     12 /* of an array's element */

/* https://bsonspec.org */
enum bson_type {
    BSON_DOUBLE = 0x01,
    BSON_TEXT = 0x02,
    BSON_DOCUMENT = 0x03,
    BSON_ARRAY = 0x04,
    BSON_DATE = 0x09,
    BSON_NULL = 0x0A,
    BSON_INT = 0x10,
    BSON_LONG = 0x12
};

static const uint64_t of_lines = BIT(FIELD_HOST) | BIT(FIELD_LOGNAME) | BIT(FIELD_USER) | BIT(FIELD_REQUEST) |
                                 BIT(FIELD_PATH) | BIT(FIELD_STATUS) | BIT(FIELD_BYTES) |
                                 BIT(FIELD_REFERRER) | BIT(FIELD_AGENT);
/* Fields that the request contains already. */
static const uint64_t of_request = BIT(FIELD_METHOD) | BIT(FIELD_TARGET) | BIT(FIELD_PROTOCOL);

static void add_name(struct text *out, enum bson_type type, const char *name)
{
    text_putc(out, (char)type);
    text_add(out, name, strlen(name) + 1);
}

/* BSON is little-endian. */
static void add_int(struct text *out, uint32_t value)
{
    uint32_t little = htole32(value);
    text_add(out, (const char *)&little, sizeof little);
}

static void add_long(struct text *out, uint64_t value)
{
    uint64_t little = htole64(value);
    text_add(out, (const char *)&little, sizeof little);
}

void raw_document_text(struct text *out, const char *name, struct slice s)
{
    add_name(out, BSON_TEXT, name);
    add_int(out, (uint32_t)s.len + 1);
    text_add(out, s.ptr, s.len);
    text_putc(out, '\0');
}

static void add_odd_text(struct text *out, const char *name, const struct event *ev, enum field f)
{
    struct slice s = ev->field[f];
    size_t room = SETTLED_TIMES * s.len + DIMENSION_BYTES_MIN;
    char *settled = xmalloc(room);
    bool is_escaped = !((ev->literal >> f) & 1);
    raw_document_text(out, name, slice_of(settled, dimension_settle(s, is_escaped, room, settled)));
    free(settled);
}

/* Adds a whole number as a long, any other as a double. */
static void add_decimal(struct text *out, const char *name, int64_t number)
{
    double fraction = (double)number / EVENT_SCALE;
    uint64_t bits;
    if (number % EVENT_SCALE == 0) {
        add_name(out, BSON_LONG, name);
        add_long(out, (uint64_t)(number / EVENT_SCALE));
        return;
    }
    memcpy(&bits, &fraction, sizeof bits);
    add_name(out, BSON_DOUBLE, name);
    add_long(out, bits);
}

static void add_whole(struct text *out, const char *name, uint64_t value)
{
    add_name(out, BSON_LONG, name);
    add_long(out, value);
}

/* Begins a document or an array. Returns its place in `out`. */
static size_t begin_document(struct text *out, enum bson_type type, const char *name)
{
    add_name(out, type, name);
    add_int(out, 0);
    return out->len - sizeof(uint32_t);
}

static void end_document(struct text *out, size_t begun)
{
    text_putc(out, '\0');
    uint32_t little = htole32((uint32_t)(out->len - begun));
    memcpy(out->ptr + begun, &little, sizeof little);
}

/* The counts of a side, by index. */
static void add_sparse_counts(struct text *out, const struct distribution_side *side)
{
    struct distribution_walk w = distribution_walk(side);
    char name[INDEX_BYTES];
    int64_t index;
    uint64_t count;
    const size_t counts = begin_document(out, BSON_DOCUMENT, "bucket_counts");
    while (distribution_next(&w, &index, &count)) {
        snprintf(name, sizeof name, "%" PRId32, (int32_t)index);
        add_whole(out, name, count);
    }
    end_document(out, counts);
}

/* The counts of a side, from its offset on. */
static void add_counts(struct text *out, const struct distribution_side *side)
{
    const uint8_t *p = (const uint8_t *)side->counts.ptr, *to = p + side->counts.len;
    char index[INDEX_BYTES];
    uint64_t count;
    add_name(out, BSON_INT, "offset");
    add_int(out, (uint32_t)side->offset);
    const size_t counts = begin_document(out, BSON_ARRAY, "bucket_counts");
    for (int i = 0; p < to && (p = varint_get(p, to, &count)) != NULL; i++) {
        snprintf(index, sizeof index, "%d", i);
        add_whole(out, index, count);
    }
    end_document(out, counts);
}

static void add_side(struct text *out, const char *name, const struct distribution_side *side)
{
    if (side->counts.len == 0)
        return;
    const size_t all = begin_document(out, BSON_DOCUMENT, name);
    (side->has_gaps ? add_sparse_counts : add_counts)(out, side);
    end_document(out, all);
}

static void add_distribution(struct text *out, const char *name, int64_t sum, const struct distribution *d)
{
    const size_t begun = begin_document(out, BSON_DOCUMENT, name);
    add_whole(out, "count", (uint64_t)d->count);
    add_decimal(out, "sum", sum);
    if (d->has_min)
        add_decimal(out, "min", d->min);
    if (d->has_max)
        add_decimal(out, "max", d->max);
    add_name(out, BSON_INT, "scale");
    add_int(out, (uint32_t)d->scale);
    add_whole(out, "zero_count", (uint64_t)d->zeros);
    add_side(out, "positive", &d->sides[DISTRIBUTION_ABOVE_0]);
    add_side(out, "negative", &d->sides[DISTRIBUTION_BELOW_0]);
    end_document(out, begun);
}

static size_t count_digits(const char *p, size_t len)
{
    size_t n = 0;
    while (n < len && p[n] >= '0' && p[n] <= '9')
        n++;
    return n;
}

/* Can a number replace the text? Only if printing the number gives the same text. */
static bool is_number(struct slice s)
{
    size_t sign = s.len > 0 && s.ptr[0] == '-' ? 1 : 0;
    const char *p = s.ptr + sign, *end = s.ptr + s.len;
    size_t whole = count_digits(p, s.len - sign);
    if (whole == 0 || (whole > 1 && p[0] == '0'))
        return false;
    if (p + whole == end)
        return sign == 0 || p[0] != '0';
    size_t places = s.len - sign - whole - 1;
    return p[whole] == '.' && places > 0 && places <= PLACES_MAX && whole + places <= DOUBLE_DIGITS &&
           count_digits(p + whole + 1, places) == places && end[-1] != '0';
}

bool raw_document_is_typed(const struct event *ev, enum field f)
{
    return f == FIELD_STATUS || f == FIELD_BYTES || event_distribution(ev, f) != NULL ||
           (field_is_number(f) && event_has_number(ev, f) && (f == FIELD_VALUE || is_number(ev->field[f])));
}

void raw_document_field(struct text *out, const char *name, const struct event *ev, enum field f)
{
    if (!event_has(ev, f)) {
        add_name(out, BSON_NULL, name);
    } else if (f == FIELD_STATUS) {
        add_name(out, BSON_INT, name);
        add_int(out, (uint32_t)ev->number[f]);
    } else if (f == FIELD_BYTES) {
        add_name(out, BSON_LONG, name);
        add_long(out, (uint64_t)ev->number[f]);
    } else if (event_distribution(ev, f) != NULL) {
        add_distribution(out, name, ev->number[f], event_distribution(ev, f));
    } else if (raw_document_is_typed(ev, f)) {
        add_decimal(out, name, ev->number[f]);
    } else if (event_is_odd(ev, f)) {
        add_odd_text(out, name, ev, f);
    } else {
        raw_document_text(out, name, ev->field[f]);
    }
}

static void add_time(struct text *out, const struct event *ev)
{
    add_name(out, BSON_DATE, "time");
    add_long(out, (uint64_t)ev->at_ms);
}

static const char *name_of(enum field f, char buf[NAME_ROOM_BYTES])
{
    static const char *const taken[] = {"time", "response_size", "user_agent", "v"};
    const char *name = field_name(f);
    if (f == FIELD_BYTES || f == FIELD_AGENT)
        return f == FIELD_BYTES ? "response_size" : "user_agent";
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        if (strcmp(name, taken[i]) != 0)
            continue;
        snprintf(buf, NAME_ROOM_BYTES, "%s_", name);
        return buf;
    }
    return name;
}

static void add_all(struct text *out, const struct raw *r, const struct event *ev)
{
    uint64_t wanted = r->is_of_lines ? (ev->present & ~of_request) | of_lines : ev->present;
    bool has_time = false;
    for (; wanted != 0; wanted &= wanted - 1) {
        char buf[NAME_ROOM_BYTES];
        enum field f = (enum field)__builtin_ctzll(wanted);
        if (f >= FIELD_REQUEST && !has_time) {
            add_time(out, ev); /* in the place that it has in a log line */
            has_time = true;
        }
        raw_document_field(out, name_of(f, buf), ev, f);
    }
    if (!has_time)
        add_time(out, ev);
}

/* Adds the place of an event: `_id` or `at`. */
static void add_place(struct text *out, const char *name, struct slice prefix, int64_t order)
{
    char offset[OFFSET_BYTES];
    uint64_t element = (uint64_t)order & ((1U << RECORD_ELEMENT_BITS) - 1);
    int len = snprintf(offset, sizeof offset, "%019" PRIu64, (uint64_t)order >> RECORD_ELEMENT_BITS);
    if (element > 0)
        len += snprintf(offset + len, sizeof offset - (size_t)len, ".%06" PRIu64, element);
    add_name(out, BSON_TEXT, name);
    add_int(out, (uint32_t)(prefix.len + (size_t)len) + 1);
    text_add(out, prefix.ptr, prefix.len);
    text_add(out, offset, (size_t)len + 1);
}

void raw_document_add(struct text *out, const struct raw *r, struct slice prefix, const struct event *ev)
{
    struct raw_head head = {.at_ms = ev->at_ms, .number = r->number};
    size_t begin = out->len, from = begin + sizeof head;
    text_add(out, (const char *)&head, sizeof head);
    add_int(out, 0);
    add_place(out, "_id", prefix, ev->order);
    if (r->kind == RAW_ALL)
        add_all(out, r, ev);
    for (size_t i = 0; i < r->field_count; i++) {
        if (r->fields[i].id == RAW_TIME)
            add_time(out, ev);
        else
            raw_document_field(out, r->fields[i].name, ev, (enum field)r->fields[i].id);
    }
    add_name(out, BSON_INT, "v");
    add_int(out, RAW_SCHEMA);
    text_putc(out, '\0');
    head.len = (uint32_t)(out->len - from);
    uint32_t little = htole32(head.len);
    memcpy(out->ptr + begin, &head, sizeof head);
    memcpy(out->ptr + from, &little, sizeof little);
}

void raw_document_name(enum field f, char *name)
{
    char buf[NAME_ROOM_BYTES];
    const char *found = name_of(f, buf);
    memcpy(name, found, strlen(found) + 1);
}

void raw_document_prefix(struct text *out, const char *source, const char *partition)
{
    text_clear(out);
    text_printf(out, "%s/%s/", source, partition);
}
