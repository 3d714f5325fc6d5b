#include "ingest/decode/remote_series.h"

#include "base/check.h"
#include "base/protobuf.h"
#include "ingest/decode/chain_field.h"

#include <strings.h>

enum { SERIES_LABELS = 1, SERIES_METADATA = 5, SERIES_KNOWN_LAST = 5 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { METADATA_TYPE = 1, METADATA_UNIT = 4 };

static const char *const type_names[REMOTE_TYPES] = {[REMOTE_UNKNOWN] = "unknown",
                                                     [REMOTE_COUNTER] = "counter",
                                                     [REMOTE_GAUGE] = "gauge",
                                                     [REMOTE_HISTOGRAM] = "histogram",
                                                     [REMOTE_GAUGE_HISTOGRAM] = "gaugehistogram",
                                                     [REMOTE_SUMMARY] = "summary",
                                                     [REMOTE_INFO] = "info",
                                                     [REMOTE_STATESET] = "stateset"};

/* A series while it is read. */
struct reading {
    struct remote_labels *labels;
    const struct remote_symbols *symbols;
    struct remote_series *series;
    uint64_t metadata_type;
    struct slice metadata_unit;
    struct slice name; /* of a label whose value is next; ptr NULL: none */
};

static bool is_text(struct slice text, const char *name)
{
    return text.len == strlen(name) && strncasecmp(text.ptr, name, text.len) == 0;
}

/* Notes a label that says what the series is. False: it is another one. */
static bool note_reserved(struct remote_series *s, struct slice name, struct slice text)
{
    if (slice_is(name, "__name__")) {
        s->name = text;
    } else if (slice_is(name, "__unit__")) {
        s->unit = text;
    } else if (slice_is(name, "__type__")) {
        s->type_text = text;
    } else if (slice_is(name, "__temporality__")) {
        s->temporality = is_text(text, "delta")        ? REMOTE_DELTA
                         : is_text(text, "cumulative") ? REMOTE_CUMULATIVE
                                                       : REMOTE_UNSAID;
    } else {
        return false;
    }
    return true;
}

/* An empty label is none. */
static enum reject_reason note_label(struct reading *r, struct slice name, struct slice text)
{
    enum field f;
    if (name.len > REMOTE_TEXT_MAX || text.len > REMOTE_TEXT_MAX)
        return REJECT_TOO_LONG;
    if (text.len == 0)
        return REJECT_COUNT;
    for (size_t i = 0; i < r->labels->tag_count; i++) {
        if (slice_equal(r->labels->tags[i].name, name))
            r->labels->tags[i].text = text;
    }
    if (!note_reserved(r->series, name, text) && field_parse(name, &f) && (r->labels->fields >> f & 1) != 0)
        chain_field_put(&r->series->fields, f, text, false);
    return REJECT_COUNT;
}

static enum reject_reason read_label(struct reading *r, struct slice bytes)
{
    struct slice name = {"", 0}, text = {"", 0};
    struct protobuf_field f;
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f) || (f.number <= LABEL_VALUE && f.wire != PROTOBUF_BYTES))
            return REJECT_REMOTE_WRITE;
        if (f.number == LABEL_NAME)
            name = f.bytes;
        if (f.number == LABEL_VALUE)
            text = f.bytes;
    }
    return note_label(r, name, text);
}

/* Finds a symbol. False: there is none of this number. */
static bool find_symbol(const struct remote_symbols *symbols, uint64_t number, struct slice *text)
{
    struct protobuf_field f = {.wire = PROTOBUF_BYTES};
    if (number >= symbols->count)
        return false;
    const size_t at = symbols->at[number];
    struct slice rest = slice_of(symbols->message.ptr + at, symbols->message.len - at);
    bool good = protobuf_take_value(&rest, &f);
    ASSERT(good); /* it was read before */
    *text = f.bytes;
    return true;
}

/* Takes the number of a symbol, which is a label's name or the value behind it. */
static enum reject_reason note_ref(struct reading *r, uint64_t number)
{
    struct slice text, name = r->name;
    if (!find_symbol(r->symbols, number, &text))
        return REJECT_REMOTE_WRITE;
    r->name = name.ptr == NULL ? text : slice_of(NULL, 0);
    return name.ptr == NULL ? REJECT_COUNT : note_label(r, name, text);
}

static enum reject_reason read_refs(struct reading *r, const struct protobuf_field *f)
{
    struct protobuf_field ref = {.wire = PROTOBUF_VARINT};
    struct slice packed = f->bytes;
    enum reject_reason reason = REJECT_COUNT;
    if (f->wire == PROTOBUF_VARINT)
        return note_ref(r, f->varint);
    while (packed.len > 0 && reason == REJECT_COUNT)
        reason = protobuf_take_value(&packed, &ref) ? note_ref(r, ref.varint) : REJECT_REMOTE_WRITE;
    return reason;
}

static enum reject_reason read_metadata(struct reading *r, struct slice bytes)
{
    struct protobuf_field f;
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f))
            return REJECT_REMOTE_WRITE;
        bool is_known = f.number == METADATA_TYPE || f.number == METADATA_UNIT;
        if (is_known && f.wire != PROTOBUF_VARINT)
            return REJECT_REMOTE_WRITE;
        if (f.number == METADATA_TYPE)
            r->metadata_type = f.varint;
        if (f.number == METADATA_UNIT && !find_symbol(r->symbols, f.varint, &r->metadata_unit))
            return REJECT_REMOTE_WRITE;
    }
    return REJECT_COUNT;
}

static enum reject_reason read_field(struct reading *r, const struct remote_layout *layout,
                                     const struct protobuf_field *f)
{
    if (f->number == SERIES_LABELS && layout->has_refs &&
        (f->wire == PROTOBUF_VARINT || f->wire == PROTOBUF_BYTES))
        return read_refs(r, f);
    if (f->number > SERIES_KNOWN_LAST)
        return REJECT_COUNT;
    if (f->wire != PROTOBUF_BYTES)
        return REJECT_REMOTE_WRITE;
    if (f->number == SERIES_LABELS)
        return read_label(r, f->bytes);
    return f->number == SERIES_METADATA && layout->has_refs ? read_metadata(r, f->bytes) : REJECT_COUNT;
}

/* Labels say more than metadata, as in Prometheus. An own label that is called `type` or `unit` says what its
 * user wants. */
static void finish(struct reading *r)
{
    const struct remote_labels *labels = r->labels;
    struct remote_series *s = r->series;
    for (int i = 0; i < REMOTE_TYPES && s->type_text.len > 0; i++) {
        if (slice_is(s->type_text, type_names[i]))
            s->type = (enum remote_type)i;
    }
    if (s->type_text.len == 0 && r->metadata_type < REMOTE_TYPES)
        s->type = (enum remote_type)r->metadata_type;
    if (s->type_text.len == 0 && s->type != REMOTE_UNKNOWN)
        s->type_text = slice_text(type_names[s->type]);
    if (s->unit.len == 0)
        s->unit = r->metadata_unit;
    if ((unsigned)labels->type < FIELD_MAX && s->type_text.len > 0 && !event_has(&s->fields, labels->type))
        chain_field_put(&s->fields, labels->type, s->type_text, false);
    if ((unsigned)labels->unit < FIELD_MAX && s->unit.len > 0 && !event_has(&s->fields, labels->unit))
        chain_field_put(&s->fields, labels->unit, s->unit, false);
    if (s->name.len > 0)
        chain_field_put(&s->fields, FIELD_NAME, s->name, false);
}

enum reject_reason remote_series_read(struct remote_labels *labels, const struct remote_layout *layout,
                                      const struct remote_symbols *symbols, struct slice bytes,
                                      struct remote_series *s, const char **at)
{
    struct reading r = {.labels = labels, .symbols = symbols, .series = s, .metadata_unit = {"", 0}};
    struct slice rest = bytes;
    struct protobuf_field f;
    s->name = s->unit = s->type_text = slice_of("", 0);
    s->type = REMOTE_UNKNOWN;
    s->temporality = REMOTE_UNSAID;
    s->fields.present = s->fields.odd = s->fields.literal = s->fields.numeric = s->fields.unfit = 0;
    for (size_t i = 0; i < labels->tag_count; i++)
        labels->tags[i].text = slice_of(NULL, 0);
    while (rest.len > 0) {
        *at = rest.ptr;
        enum reject_reason reason =
            protobuf_take(&rest, &f) ? read_field(&r, layout, &f) : REJECT_REMOTE_WRITE;
        if (reason != REJECT_COUNT)
            return reason;
    }
    *at = bytes.ptr;
    if (r.name.ptr != NULL)
        return REJECT_REMOTE_WRITE; /* a label without a value */
    finish(&r);
    return event_has(&s->fields, FIELD_NAME) ? REJECT_COUNT : REJECT_MEMBER;
}

bool remote_series_is_total(const struct remote_series *s, bool are_deltas)
{
    const bool is_part = slice_ends(s->name, slice_text("_sum")) || slice_ends(s->name, slice_text("_count"));
    if (s->temporality != REMOTE_UNSAID)
        return s->temporality == REMOTE_CUMULATIVE;
    switch (s->type) {
    case REMOTE_COUNTER:
    case REMOTE_HISTOGRAM:
        return true;
    case REMOTE_SUMMARY: /* its quantiles are levels */
        return is_part;
    case REMOTE_UNKNOWN:
        return !are_deltas && (is_part || slice_ends(s->name, slice_text("_total")) ||
                               slice_ends(s->name, slice_text("_bucket")));
    default:
        return false;
    }
}

void remote_series_put(const struct remote_series *s, struct event *ev)
{
    ev->present = s->fields.present;
    ev->odd = s->fields.odd;
    ev->literal = s->fields.literal;
    ev->numeric = s->fields.numeric;
    for (uint64_t left = ev->present; left != 0; left &= left - 1) {
        const int f = __builtin_ctzll(left);
        ev->field[f] = s->fields.field[f];
        ev->number[f] = s->fields.number[f];
    }
}
