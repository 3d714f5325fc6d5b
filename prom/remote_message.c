#include "prom/remote_message.h"

#include "base/protobuf.h"

#include <stdlib.h>
#include <sysexits.h>

enum { REQUEST_QUERIES = 1, REQUEST_ACCEPTED = 2 };
enum { QUERY_START = 1, QUERY_END = 2, QUERY_MATCHERS = 3, QUERY_HINTS = 4 };
enum { MATCHER_TYPE = 1, MATCHER_NAME = 2, MATCHER_VALUE = 3 };
enum { HINTS_FUNC = 2, HINTS_START = 3, HINTS_END = 4 };
enum { RESPONSE_RESULTS = 1, RESULT_SERIES = 1 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2, SERIES_HISTOGRAMS = 4 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { SAMPLE_VALUE = 1, SAMPLE_TIME = 2 };

enum { HISTOGRAM_COUNT = 1, HISTOGRAM_SUM = 3, HISTOGRAM_SCHEMA_NUMBER = 4 };
enum { HISTOGRAM_ZERO_THRESHOLD = 5, HISTOGRAM_ZERO_COUNT = 6 };
enum { HISTOGRAM_NEGATIVE_SPANS = 8, HISTOGRAM_NEGATIVE_DELTAS = 9 };
enum { HISTOGRAM_POSITIVE_SPANS = 11, HISTOGRAM_POSITIVE_DELTAS = 12 };
enum { HISTOGRAM_RESET_HINT = 14, HISTOGRAM_TIME = 15 };
enum { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

#define RESPONSE_SAMPLES 0
#define HINT_GAUGE       3

/* Bytes that are kept for a length which is not known yet: a varint may have leading zeros. */
#define LENGTH_BYTES   5
#define PART_BYTES_MAX INT32_MAX

/* ---- reading */

static bool fail_format(struct err *e)
{
    return err_set(e, EX_PROTOCOL, "the request is no ReadRequest of Prometheus' remote_read");
}

static bool take_field(struct slice *rest, struct protobuf_field *f, struct err *e)
{
    return protobuf_take(rest, f) || fail_format(e);
}

static bool parse_matcher(struct slice bytes, struct remote_request *rq, struct err *e)
{
    struct matcher m = {.kind = MATCHER_EQUAL, .name = slice_of("", 0), .value = slice_of("", 0)};
    struct protobuf_field f;
    if (rq->matcher_count == REMOTE_MATCHERS_MAX)
        return err_set(e, EX_PROTOCOL, "the request has more than %d matchers", REMOTE_MATCHERS_MAX);
    while (bytes.len > 0) {
        if (!take_field(&bytes, &f, e))
            return false;
        if (protobuf_is(&f, MATCHER_NAME, PROTOBUF_BYTES))
            m.name = f.bytes;
        else if (protobuf_is(&f, MATCHER_VALUE, PROTOBUF_BYTES))
            m.value = f.bytes;
        else if (protobuf_is(&f, MATCHER_TYPE, PROTOBUF_VARINT) && f.varint <= MATCHER_NOT_REGEX)
            m.kind = (enum matcher_kind)f.varint; /* the message has the order of the enum */
        else if (f.number <= MATCHER_VALUE)
            return fail_format(e);
    }
    rq->matchers[rq->matcher_count++] = m;
    return true;
}

/* The hints say which part of the query's range the selector needs. */
static bool parse_hints(struct slice bytes, struct remote_query *hinted, struct err *e)
{
    struct protobuf_field f;
    while (bytes.len > 0) {
        if (!take_field(&bytes, &f, e))
            return false;
        if (protobuf_is(&f, HINTS_FUNC, PROTOBUF_BYTES))
            hinted->names_only = slice_is(f.bytes, "series");
        else if (protobuf_is(&f, HINTS_START, PROTOBUF_VARINT))
            hinted->from_ms = (int64_t)f.varint;
        else if (protobuf_is(&f, HINTS_END, PROTOBUF_VARINT))
            hinted->to_ms = (int64_t)f.varint;
    }
    return true;
}

static bool parse_query(struct slice bytes, struct remote_request *rq, struct err *e)
{
    struct remote_query q = {.from_ms = 0}, hinted = {.from_ms = 0};
    struct protobuf_field f;
    size_t first = rq->matcher_count;
    if (rq->query_count == REMOTE_QUERIES_MAX)
        return err_set(e, EX_PROTOCOL, "the request has more than %d queries", REMOTE_QUERIES_MAX);
    while (bytes.len > 0) {
        bool good = take_field(&bytes, &f, e);
        if (!good)
            return false;
        if (protobuf_is(&f, QUERY_START, PROTOBUF_VARINT))
            q.from_ms = (int64_t)f.varint;
        else if (protobuf_is(&f, QUERY_END, PROTOBUF_VARINT))
            q.to_ms = (int64_t)f.varint;
        else if (protobuf_is(&f, QUERY_MATCHERS, PROTOBUF_BYTES))
            good = parse_matcher(f.bytes, rq, e);
        else if (protobuf_is(&f, QUERY_HINTS, PROTOBUF_BYTES))
            good = parse_hints(f.bytes, &hinted, e);
        else if (f.number <= QUERY_HINTS)
            return fail_format(e);
        if (!good)
            return false;
    }
    if (hinted.from_ms > q.from_ms)
        q.from_ms = hinted.from_ms;
    if (hinted.to_ms > 0 && hinted.to_ms < q.to_ms)
        q.to_ms = hinted.to_ms;
    q.names_only = hinted.names_only;
    q.selector.matchers = &rq->matchers[first];
    q.selector.matcher_count = rq->matcher_count - first;
    rq->queries[rq->query_count++] = q;
    return true;
}

/* Response types come one by one, or packed into one field. */
static bool see_accepted(struct protobuf_field *f, bool *is_any, bool *has_samples, struct err *e)
{
    *is_any = true;
    if (f->wire == PROTOBUF_VARINT) {
        *has_samples |= f->varint == RESPONSE_SAMPLES;
        return true;
    }
    const uint8_t *p = (const uint8_t *)f->bytes.ptr, *end = p + f->bytes.len;
    while (p < end) {
        if ((p = varint_get(p, end, &f->varint)) == NULL)
            return fail_format(e);
        *has_samples |= f->varint == RESPONSE_SAMPLES;
    }
    return f->wire == PROTOBUF_BYTES || fail_format(e);
}

bool remote_parse(struct slice bytes, struct remote_request *rq, struct err *e)
{
    bool is_any = false, has_samples = false;
    struct protobuf_field f;
    rq->query_count = rq->matcher_count = 0;
    while (bytes.len > 0) {
        bool good = take_field(&bytes, &f, e);
        if (good && protobuf_is(&f, REQUEST_QUERIES, PROTOBUF_BYTES))
            good = parse_query(f.bytes, rq, e);
        else if (good && f.number == REQUEST_ACCEPTED)
            good = see_accepted(&f, &is_any, &has_samples, e);
        else if (good && f.number == REQUEST_QUERIES)
            good = fail_format(e);
        if (!good)
            return false;
    }
    if (is_any && !has_samples)
        return err_set(e, EX_PROTOCOL,
                       "the request accepts no samples, and there is nothing else: ask for the response type "
                       "SAMPLES");
    return rq->query_count > 0 || fail_format(e);
}

/* ---- writing */

static void add_varint(struct text *out, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    text_add(out, (const char *)bytes, (size_t)(varint_put(bytes, value) - bytes));
}

static void add_tag(struct text *out, unsigned number, enum protobuf_wire wire)
{
    add_varint(out, number << 3 | wire);
}

static void add_bytes(struct text *out, unsigned number, struct slice bytes)
{
    add_tag(out, number, PROTOBUF_BYTES);
    add_varint(out, bytes.len);
    text_add(out, bytes.ptr, bytes.len);
}

static size_t varint_len(uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    return (size_t)(varint_put(bytes, value) - bytes);
}

static size_t begin_part(struct text *out, unsigned number)
{
    static const char room[LENGTH_BYTES];
    add_tag(out, number, PROTOBUF_BYTES);
    text_add(out, room, sizeof room);
    return out->len;
}

size_t remote_begin_result(struct text *out)
{
    return begin_part(out, RESPONSE_RESULTS);
}

size_t remote_begin_series(struct text *out)
{
    return begin_part(out, RESULT_SERIES);
}

bool remote_end(struct text *out, size_t begun)
{
    size_t len = out->len - begun;
    uint8_t *room = (uint8_t *)out->ptr + begun - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        room[i] = (uint8_t)((len >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return len <= PART_BYTES_MAX;
}

void remote_add_label(struct text *out, struct slice name, struct slice value)
{
    add_tag(out, SERIES_LABELS, PROTOBUF_BYTES);
    add_varint(out, 2 + varint_len(name.len) + name.len + varint_len(value.len) + value.len);
    add_bytes(out, LABEL_NAME, name);
    add_bytes(out, LABEL_VALUE, value);
}

static void add_number(struct text *out, unsigned number, double value)
{
    uint64_t bits;
    char little[sizeof bits];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bits; i++)
        little[i] = (char)(bits >> 8 * i);
    add_tag(out, number, PROTOBUF_64_BITS);
    text_add(out, little, sizeof little);
}

static void add_whole(struct text *out, unsigned number, uint64_t value)
{
    add_tag(out, number, PROTOBUF_VARINT);
    add_varint(out, value);
}

void remote_add_sample(struct text *out, double value, int64_t ms)
{
    add_tag(out, SERIES_SAMPLES, PROTOBUF_BYTES);
    add_varint(out, 1 + sizeof value + 1 + varint_len((uint64_t)ms));
    add_number(out, SAMPLE_VALUE, value);
    add_whole(out, SAMPLE_TIME, (uint64_t)ms);
}

/* ---- histograms */

/* The buckets on one side of zero, outwards. */
struct side {
    const struct histogram_bucket *first;
    int step; /* to the next one */
    int schema;
    size_t count;
    unsigned spans, deltas;
};

static const struct histogram_bucket *bucket_of(const struct side *s, size_t i)
{
    return s->first + (ptrdiff_t)i * s->step;
}

/* Buckets whose indexes adjoin are a span; its offset is the number of buckets left out before it. */
static void add_spans(struct text *out, const struct side *s)
{
    int32_t next = 0; /* the index behind the last span */
    for (size_t i = 0, end; i < s->count; i = end) {
        const int32_t index = histogram_index(bucket_of(s, i)->slot, s->schema);
        for (end = i + 1; end < s->count &&
                          histogram_index(bucket_of(s, end)->slot, s->schema) == index + (int32_t)(end - i);)
            end++;
        const uint64_t offset = varint_zigzag(index - next), length = end - i;
        add_tag(out, s->spans, PROTOBUF_BYTES);
        add_varint(out, 1 + varint_len(offset) + 1 + varint_len(length));
        add_whole(out, SPAN_OFFSET, offset);
        add_whole(out, SPAN_LENGTH, length);
        next = index + (int32_t)length;
    }
}

/* The differences of the counts. */
static bool add_deltas(struct text *out, const struct side *s)
{
    const size_t begun = begin_part(out, s->deltas);
    int64_t before = 0;
    for (size_t i = 0; i < s->count; i++) {
        add_varint(out, varint_zigzag(bucket_of(s, i)->count - before));
        before = bucket_of(s, i)->count;
    }
    return remote_end(out, begun);
}

bool remote_add_histogram(struct text *out, const struct remote_histogram *h, int64_t ms)
{
    const size_t begun = begin_part(out, SERIES_HISTOGRAMS);
    uint64_t count = 0, zeros = 0;
    size_t below = 0, above;
    for (size_t i = 0; i < h->bucket_count; i++) {
        count += (uint64_t)h->buckets[i].count;
        below += h->buckets[i].slot < 0;
    }
    above = below;
    if (below < h->bucket_count && h->buckets[below].slot == 0)
        zeros = (uint64_t)h->buckets[above++].count;
    const int schema = h->layout->schema;
    const struct side negative = {
        h->buckets + below - (below > 0), -1, schema, below, HISTOGRAM_NEGATIVE_SPANS,
        HISTOGRAM_NEGATIVE_DELTAS};
    const struct side positive = {
        h->buckets + above,       1, schema, h->bucket_count - above, HISTOGRAM_POSITIVE_SPANS,
        HISTOGRAM_POSITIVE_DELTAS};
    add_whole(out, HISTOGRAM_COUNT, count);
    add_number(out, HISTOGRAM_SUM, h->sum);
    add_whole(out, HISTOGRAM_SCHEMA_NUMBER, varint_zigzag(h->layout->schema));
    if (h->layout->zero > 0)
        add_number(out, HISTOGRAM_ZERO_THRESHOLD, (double)h->layout->zero / (double)h->layout->scale);
    add_whole(out, HISTOGRAM_ZERO_COUNT, zeros);
    add_spans(out, &negative);
    bool good = add_deltas(out, &negative);
    add_spans(out, &positive);
    good = add_deltas(out, &positive) && good;
    if (h->is_gauge)
        add_whole(out, HISTOGRAM_RESET_HINT, HINT_GAUGE);
    add_whole(out, HISTOGRAM_TIME, (uint64_t)ms);
    return remote_end(out, begun) && good;
}
