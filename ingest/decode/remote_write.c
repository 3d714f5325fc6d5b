#include "ingest/decode/remote_write.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "base/snappy.h"
#include "base/text.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/remote_histogram.h"
#include "ingest/decode/remote_series.h"
#include "ingest/float_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_SERIES = 1, MESSAGE_METADATA = 3, MESSAGE_SYMBOLS = 4, MESSAGE_SERIES_2 = 5 };
enum { SAMPLE_VALUE = 1, SAMPLE_TIME = 2 };

#define STALE_BITS   0x7ff0000000000002 /* Prometheus' NaN for a series that has ended */
#define NAMES_GROWTH 8                  /* names of parts take at most so many times a message's bytes */

static const struct remote_layout layout_1 = {.samples = 2, .histograms = 4};
static const struct remote_layout layout_2 = {.samples = 2, .histograms = 3, .has_refs = true};

/* The second event of a histogram. */
struct part {
    struct slice name, value; /* name.ptr NULL: there is none */
    struct slice bytes;
    int64_t at_ms;
};

struct remote_write {
    struct arena *memory;
    size_t line_max;
    bool are_deltas, keeps_totals;
    bool needs_no_time; /* the time is the broker's */
    bool has_begun;
    struct remote_labels labels;
    const struct remote_layout *layout;
    struct remote_symbols symbols;
    uint32_t count;                       /* of events and rejects of the message */
    size_t names_left;                    /* bytes that names of parts may still take */
    struct slice rest;                    /* what is left of the message */
    struct slice whole;                   /* the series */
    struct slice values;                  /* what is left of it */
    bool skips_samples, skips_histograms; /* of this series */
    struct remote_series series;
    struct slice part_names[2]; /* of this series; ptr NULL: not made yet */
    struct part next;
    struct text scratch;
};

struct remote_write *remote_write_new(const struct decode *d, size_t line_max, struct arena *memory)
{
    struct remote_write *w = xcalloc(1, sizeof *w);
    w->memory = memory;
    w->line_max = line_max;
    w->are_deltas = slice_is(slice_text(d->parts), DECODE_DELTAS);
    w->keeps_totals = decode_keeps_totals(d);
    w->needs_no_time = d->time_is_brokers;
    w->labels.fields = decode_tag_fields(d);
    w->labels.type = decode_own_field(d, "type");
    w->labels.unit = decode_own_field(d, "unit");
    return w;
}

void remote_write_free(struct remote_write *w)
{
    if (w != NULL)
        text_fini(&w->scratch);
    free(w);
}

size_t remote_write_add_tag(struct remote_write *w, const char *name)
{
    ASSERT(w->labels.tag_count < DECODE_FIELDS_MAX);
    w->labels.tags[w->labels.tag_count].name = slice_text(name);
    return w->labels.tag_count++;
}

bool remote_write_tag(const struct remote_write *w, size_t tag, struct slice *text)
{
    *text = w->labels.tags[tag].text;
    return text->ptr != NULL;
}

void remote_write_reset(struct remote_write *w)
{
    w->has_begun = false;
    w->rest = w->values = w->next.name = slice_of(NULL, 0);
}

bool remote_write_has_begun(const struct remote_write *w)
{
    return w->has_begun;
}

/* ---- a message */

/* Unpacks a Snappy block; other bytes stay as they are. Returns the reason why not; REJECT_COUNT: *bytes is
 * the message. */
static enum reject_reason unpack(struct remote_write *w, struct slice *bytes)
{
    size_t len;
    if (!snappy_claims(*bytes, &len) || len / SNAPPY_GROWTH > bytes->len)
        return REJECT_COUNT;
    if (len > REMOTE_WRITE_UNPACKED_LINES * w->line_max)
        return REJECT_TOO_LONG;
    char *out = arena_add(w->memory, len);
    if (snappy_unpack_to(*bytes, out, len))
        *bytes = slice_of(out, len);
    return REJECT_COUNT;
}

struct fields_found {
    size_t series, others, symbols, series_2;
};

/* Counts the fields of a message. False: it is broken at *at. */
static bool count_fields(struct slice message, struct fields_found *found, const char **at)
{
    struct protobuf_field f;
    *found = (struct fields_found){0};
    while (message.len > 0) {
        *at = message.ptr;
        if (!protobuf_take(&message, &f))
            return false;
        size_t *count = f.number == MESSAGE_SERIES     ? &found->series
                        : f.number == MESSAGE_METADATA ? &found->others
                        : f.number == MESSAGE_SYMBOLS  ? &found->symbols
                        : f.number == MESSAGE_SERIES_2 ? &found->series_2
                                                       : NULL;
        if (count != NULL && f.wire != PROTOBUF_BYTES)
            return false;
        if (count != NULL)
            ++*count;
    }
    return true;
}

/* Notes where the symbols are. */
static void index_symbols(struct remote_write *w, struct slice message, size_t count)
{
    uint32_t *at = arena_add(w->memory, count * sizeof *at);
    struct slice rest = message;
    struct protobuf_field f;
    w->symbols = (struct remote_symbols){.message = message, .at = at, .count = count};
    while (rest.len > 0) {
        const char *tag = rest.ptr;
        bool good = protobuf_take(&rest, &f);
        ASSERT(good);
        uint64_t number;
        const uint8_t *length = varint_get((const uint8_t *)tag, (const uint8_t *)rest.ptr, &number);
        if (f.number == MESSAGE_SYMBOLS)
            *at++ = (uint32_t)((const char *)length - message.ptr);
    }
}

bool remote_write_begin(struct remote_write *w, struct slice *bytes, struct reject *why)
{
    struct fields_found found;
    const char *at = bytes->ptr;
    remote_write_reset(w);
    const bool is_long = bytes->len > w->line_max;
    *why = (struct reject){REJECT_TOO_LONG, is_long ? w->line_max + 1 : 1};
    if (is_long || unpack(w, bytes) != REJECT_COUNT)
        return false;
    *why = (struct reject){REJECT_REMOTE_WRITE, 1};
    if (!count_fields(*bytes, &found, &at)) {
        why->column = (size_t)(at - bytes->ptr) + 1;
        return false;
    }
    const size_t of_1 = found.series + found.others, of_2 = found.symbols + found.series_2;
    if ((of_1 > 0) == (of_2 > 0))
        return false;
    w->layout = of_2 > 0 ? &layout_2 : &layout_1;
    index_symbols(w, *bytes, found.symbols);
    w->names_left = NAMES_GROWTH * bytes->len;
    w->count = 0;
    w->rest = *bytes;
    w->has_begun = true;
    return true;
}

static enum remote_result refuse(enum reject_reason reason, struct slice bytes, const char *at,
                                 struct reject *why)
{
    *why = (struct reject){reason, (size_t)(at - bytes.ptr) + 1};
    return REMOTE_REJECT;
}

/* ---- events */

/* Makes an event but for its distribution. Returns the reason why not; REJECT_COUNT: it is made. */
static enum reject_reason put_event(const struct remote_write *w, int64_t at_ms, struct slice value,
                                    struct event *ev)
{
    if (at_ms == 0 && !w->needs_no_time)
        return REJECT_MEMBER;
    if (!w->needs_no_time && (at_ms < 0 || at_ms >= CIVIL_END_MS))
        return REJECT_TIME_RANGE;
    remote_series_put(&w->series, ev);
    ev->at_ms = at_ms;
    return chain_field_put(ev, FIELD_VALUE, value, true);
}

static enum remote_result read_sample(struct remote_write *w, struct slice bytes, struct event *ev,
                                      struct reject *why)
{
    struct slice rest = bytes;
    struct protobuf_field f;
    uint64_t value = 0, at_ms = 0;
    while (rest.len > 0) {
        const char *at = rest.ptr;
        bool good = protobuf_take(&rest, &f) && (f.number != SAMPLE_VALUE || f.wire == PROTOBUF_64_BITS) &&
                    (f.number != SAMPLE_TIME || f.wire == PROTOBUF_VARINT);
        if (!good)
            return refuse(REJECT_REMOTE_WRITE, bytes, at, why);
        if (f.number == SAMPLE_VALUE)
            value = protobuf_fixed(&f);
        if (f.number == SAMPLE_TIME)
            at_ms = f.varint;
    }
    enum reject_reason reason = value == STALE_BITS
                                    ? REJECT_STALE
                                    : put_event(w, (int64_t)at_ms, float_text_of(w->memory, value), ev);
    return reason == REJECT_COUNT ? REMOTE_EVENT : refuse(reason, bytes, bytes.ptr, why);
}

/* Does this histogram have the numbers of a time, and not a total or a state? REJECT_COUNT: it does. */
static enum reject_reason judge_histogram(const struct remote_write *w, const struct remote_histogram *h)
{
    const struct remote_series *s = &w->series;
    if (s->temporality == REMOTE_DELTA)
        return REJECT_COUNT;
    if (h->hint != REMOTE_HINT_GAUGE || s->temporality == REMOTE_CUMULATIVE)
        return REJECT_CUMULATIVE;
    return w->are_deltas && s->type != REMOTE_GAUGE_HISTOGRAM ? REJECT_COUNT : REJECT_GAUGE_HISTOGRAM;
}

/* Makes the value, which is the sum, stand for all numbers. */
static enum reject_reason put_distribution(struct remote_write *w, const struct remote_histogram *h,
                                           struct event *ev)
{
    static const struct distribution none;
    struct distribution *d = h->count > 0 ? arena_add(w->memory, sizeof *d) : &(struct distribution){0};
    enum reject_reason reason = remote_histogram_buckets(h, &w->scratch, w->memory, d);
    ev->distribution = h->count > 0 ? d : &none;
    ev->numeric |= (uint64_t)1 << FIELD_VALUE;
    bool is_odd = h->count == 0 && ev->number[FIELD_VALUE] != 0; /* without numbers there is no sum */
    return reason == REJECT_COUNT && is_odd ? REJECT_REMOTE_WRITE : reason;
}

/* Writes the names of the parts of a histogram with bounds of its own, once for a series. False: a message
 * that is so short has too many of them. */
static bool name_parts(struct remote_write *w)
{
    static const char *const suffixes[] = {".count", ".sum"};
    for (size_t i = 0; i < COUNT_OF(suffixes) && w->part_names[i].ptr == NULL; i++) {
        const struct slice name = w->series.name;
        const size_t more = strlen(suffixes[i]);
        if (name.len + more > w->names_left)
            return false;
        w->names_left -= name.len + more;
        w->part_names[i] = arena_join(w->memory, name, "", slice_text(suffixes[i]));
    }
    return true;
}

/* Makes the events NAME.count and NAME.sum of buckets with bounds of their own, as of OTLP. */
static enum reject_reason put_parts(struct remote_write *w, const struct remote_histogram *h,
                                    struct event *ev)
{
    if (!name_parts(w))
        return REJECT_TOO_LONG;
    char count[FLOAT_TEXT_BYTES];
    const int len = snprintf(count, sizeof count, "%" PRIu64, h->count);
    const struct slice text =
        h->count > 0 ? arena_copy(w->memory, slice_of(count, (size_t)len)) : slice_text("0");
    enum reject_reason reason = put_event(w, h->at_ms, text, ev);
    chain_field_put(ev, FIELD_NAME, w->part_names[0], false);
    if (reason == REJECT_COUNT)
        w->next = (struct part){w->part_names[1], float_text_of(w->memory, h->sum_bits), h->bytes, h->at_ms};
    return reason;
}

static enum remote_result next_part(struct remote_write *w, struct event *ev, struct reject *why,
                                    struct slice *bytes)
{
    const struct part part = w->next;
    w->next.name = slice_of(NULL, 0);
    *bytes = part.bytes;
    enum reject_reason reason = put_event(w, part.at_ms, part.value, ev);
    chain_field_put(ev, FIELD_NAME, part.name, false);
    return reason == REJECT_COUNT ? REMOTE_EVENT : refuse(reason, part.bytes, part.bytes.ptr, why);
}

/* A series of totals or states is one reject: that of its first histogram. */
static enum remote_result read_histogram(struct remote_write *w, struct slice *bytes, struct event *ev,
                                         struct reject *why)
{
    struct remote_histogram h;
    enum reject_reason reason = remote_histogram_read(*bytes, &h), judged = judge_histogram(w, &h);
    if (reason == REJECT_REMOTE_WRITE)
        return refuse(reason, *bytes, bytes->ptr, why);
    if (h.sum_bits == STALE_BITS)
        return refuse(REJECT_STALE, *bytes, bytes->ptr, why);
    if (judged != REJECT_COUNT && !w->are_deltas) { /* those behind it are judged alike */
        w->skips_histograms = true;
        *bytes = w->whole;
    }
    if (judged != REJECT_COUNT)
        return refuse(judged, *bytes, bytes->ptr, why);
    if (reason == REJECT_COUNT && h.schema == REMOTE_SCHEMA_CUSTOM)
        reason = put_parts(w, &h, ev);
    else if (reason == REJECT_COUNT)
        reason = put_event(w, h.at_ms, float_text_of(w->memory, h.sum_bits), ev);
    if (reason == REJECT_COUNT && h.schema != REMOTE_SCHEMA_CUSTOM)
        reason = put_distribution(w, &h, ev);
    return reason == REJECT_COUNT ? REMOTE_EVENT : refuse(reason, *bytes, bytes->ptr, why);
}

/* ---- steps of a message */

static enum remote_result enter_series(struct remote_write *w, struct slice bytes, struct reject *why)
{
    const char *at;
    w->whole = bytes;
    w->skips_samples = w->skips_histograms = false;
    w->part_names[0] = w->part_names[1] = slice_of(NULL, 0);
    enum reject_reason reason =
        remote_series_read(&w->labels, w->layout, &w->symbols, bytes, &w->series, &at);
    w->values = reason == REJECT_COUNT ? bytes : slice_of(NULL, 0);
    return reason == REJECT_COUNT ? REMOTE_END : refuse(reason, bytes, at, why);
}

/* Takes the next field of the series. REMOTE_END: it makes neither an event nor a reject. */
static enum remote_result next_value(struct remote_write *w, struct event *ev, struct reject *why,
                                     struct slice *bytes)
{
    struct protobuf_field f;
    bool good = protobuf_take(&w->values, &f);
    ASSERT(good); /* remote_series_read() went through it */
    *bytes = f.bytes;
    if (f.number == w->layout->histograms && !w->skips_histograms)
        return read_histogram(w, bytes, ev, why);
    if (f.number != w->layout->samples || w->skips_samples)
        return REMOTE_END;
    if (w->keeps_totals || !remote_series_is_total(&w->series, w->are_deltas))
        return read_sample(w, *bytes, ev, why);
    w->skips_samples = true;
    *bytes = w->whole;
    return refuse(REJECT_CUMULATIVE, *bytes, bytes->ptr, why);
}

static enum remote_result next_result(struct remote_write *w, struct event *ev, struct reject *why,
                                      struct slice *bytes)
{
    enum remote_result result = REMOTE_END;
    struct protobuf_field f;
    ASSERT(w->has_begun);
    while (result == REMOTE_END) {
        if (w->next.name.ptr != NULL) {
            result = next_part(w, ev, why, bytes);
        } else if (w->values.len > 0) {
            result = next_value(w, ev, why, bytes);
        } else if (w->rest.len > 0) {
            bool good = protobuf_take(&w->rest, &f);
            ASSERT(good); /* count_fields() went through it */
            *bytes = f.bytes;
            if (f.number == (w->layout->has_refs ? MESSAGE_SERIES_2 : MESSAGE_SERIES))
                result = enter_series(w, f.bytes, why);
        } else {
            w->has_begun = false;
            break;
        }
    }
    return result;
}

enum remote_result remote_write_next(struct remote_write *w, struct event *ev, struct reject *why,
                                     struct slice *bytes)
{
    const enum remote_result result = next_result(w, ev, why, bytes);
    if (result == REMOTE_END || ++w->count <= REMOTE_WRITE_VALUES_MAX)
        return result;
    w->rest = w->values = w->next.name = slice_of(NULL, 0);
    return refuse(REJECT_TOO_LONG, *bytes, bytes->ptr, why);
}
