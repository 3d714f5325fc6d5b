#include "ingest/decode/chain.h"

#include "base/civil.h"
#include "base/mem.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/chain_internal.h"
#include "ingest/decode/record_text.h"
#include "ingest/derive/hide.h"

#include <stdlib.h>

#define MEMORY_CHUNK_BYTES 65536

static bool is_of_json(enum origin_kind kind)
{
    return kind == ORIGIN_POINTER || kind == ORIGIN_TAG;
}

/* Is it an attribute of the record that the first step reads? */
static bool is_of_otlp(const struct chain *c, const struct origin *o)
{
    return o->kind == ORIGIN_TAG && c->otlp != NULL && c->kinds[c->decode->step_count - 1] != STEP_METRIC;
}

/* Is it a label? */
static bool is_of_remote(const struct chain *c, const struct origin *o)
{
    return o->kind == ORIGIN_TAG && c->remote != NULL;
}

/* Adds fields in the order of enum field, so that explicit fields override derived ones
 * (chain_field_put()). */
static void add_additions(struct chain *c, struct json_step *innermost)
{
    for (int f = 0; f < FIELD_MAX; f++) {
        for (size_t i = 0; i < c->decode->origin_count; i++) {
            const struct origin *o = &c->decode->origins[i];
            if ((int)o->field != f)
                continue;
            struct addition *a = &c->additions[c->addition_count++];
            a->origin = *o;
            if (is_of_otlp(c, o))
                a->path = otlp_add_tag(c->otlp, o->text);
            else if (is_of_remote(c, o))
                a->path = remote_write_add_tag(c->remote, o->text);
            else if (is_of_json(o->kind))
                a->path = json_step_add(innermost, c->decode, o);
        }
    }
}

static inline void put_more(struct chain *c, struct event *ev)
{
    if (UNLIKELY(c->constants != NULL))
        constants_put(c->constants, ev);
    if (c->derived != NULL)
        derived_put(c->derived, ev);
}

/* The fast path's decoder of a line if there are constants or derived fields. */
static bool decode_with_more(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    struct chain *c = (struct chain *)(void *)d;
    if (!decoder_decode(c->line, line, ev, why))
        return false;
    put_more(c, ev);
    return true;
}

static void init_line(struct chain *c, const struct decode_step *last)
{
    clf_init(&c->clf, last->format);
    c->line = &c->clf.decoder;
    if (!last->is_compiled || c->decode->format.is_builtin)
        return;
    format_run_init(&c->format, &c->decode->format, &c->memory);
    c->line = &c->format.decoder;
}

struct chain *chain_new(const struct decode *d, size_t line_max)
{
    ASSERT(d->step_count > 0);
    struct chain *c = xcalloc(1, sizeof *c);
    struct json_step *innermost = NULL;
    c->with_more.decode = decode_with_more;
    c->decode = d;
    c->line_max = line_max;
    c->levels[0].is_done = true;
    arena_init(&c->memory, MEMORY_CHUNK_BYTES);
    init_line(c, &d->steps[d->step_count - 1]);
    for (size_t i = 0; i < d->step_count; i++) {
        c->kinds[i] = d->steps[i].kind;
        if (decode_step_has_parts(d->steps[i].kind))
            c->text = text_step_new(d);
        if (decode_step_has_values(d->steps[i].kind))
            c->values = metric_line_new(d);
        if (decode_step_reads_json(d->steps[i].kind))
            innermost = c->json[i] = json_step_new(d, i, CHAIN_DEPTH_MAX);
    }
    if (decode_needs_schema(d))
        c->schema = schema_step_new(d, line_max);
    if (c->kinds[0] == STEP_OTLP) {
        c->otlp = otlp_new(d, line_max, &c->memory);
        c->json[0] = json_step_new(d, 0, CHAIN_DEPTH_MAX);
    }
    if (c->kinds[0] == STEP_REMOTE_WRITE)
        c->remote = remote_write_new(d, line_max, &c->memory);
    add_additions(c, innermost);
    c->innermost = innermost;
    c->derived = derived_new(d->derive, decode_fields(d), &c->memory);
    chain_set_constants(c, NULL);
    return c;
}

void chain_set_constants(struct chain *c, const struct constants *constants)
{
    c->constants = constants != NULL && constants->count > 0 ? constants : NULL;
    c->needs_finish =
        c->decode->time_is_brokers || c->addition_count > 0 || c->constants != NULL || c->derived != NULL;
}

void chain_free(struct chain *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < DECODE_STEPS_MAX; i++)
        json_step_free(c->json[i]);
    schema_step_free(c->schema);
    text_step_free(c->text);
    metric_line_free(c->values);
    otlp_free(c->otlp);
    remote_write_free(c->remote);
    derived_free(c->derived);
    arena_fini(&c->memory);
    free(c);
}

struct decoder *chain_decoder(struct chain *c)
{
    const struct decode *d = c->decode;
    bool is_plain = d->step_count == 1 && d->steps[0].kind == STEP_LINE && d->origin_count == 0;
    if (!is_plain || d->time_is_brokers)
        return NULL;
    return c->constants != NULL || c->derived != NULL ? &c->with_more : c->line;
}

void chain_set_directive(struct chain *c, struct slice fields)
{
    ASSERT(chain_heeds_directives(c));
    if (fields.len == 0)
        text_step_reset(c->text);
    else
        (void)text_step_heed(c->text, fields, fields.len > c->line_max);
}

bool chain_heeds_directives(const struct chain *c)
{
    return decode_heeds_directives(c->decode);
}

static bool forgets_directives(const struct chain *c) /* at the record's end; those of a file hold on */
{
    return c->text != NULL && (c->record->partition != RECORD_NO_PARTITION || !chain_heeds_directives(c));
}

bool chain_knows_schema(struct chain *c, const struct record *r)
{
    return c->schema == NULL || r->value.len > c->line_max || schema_step_knows(c->schema, r);
}

void chain_start(struct chain *c, const struct record *r)
{
    c->record = r;
    c->is_tombstone = r->value.ptr == NULL;
    c->is_record_known = c->is_record_hidden = false;
    c->depth = 0;
    level_start(&c->levels[0], r->value);
    c->levels[0].is_done = c->is_tombstone;
    if (forgets_directives(c))
        text_step_reset(c->text);
    if (c->values != NULL)
        metric_line_reset(c->values);
    if (c->otlp != NULL)
        otlp_reset(c->otlp);
    if (c->remote != NULL)
        remote_write_reset(c->remote);
}

size_t chain_step(const struct chain *c)
{
    return c->depth;
}

struct slice chain_text(const struct chain *c, size_t step)
{
    ASSERT(step <= c->depth);
    const struct level *l = &c->levels[step];
    return slice_of(l->start, (size_t)(l->end - l->start));
}

struct derived *chain_derived(const struct chain *c)
{
    return c->derived;
}

void chain_hide(struct chain *c, struct record *r, struct slice *bytes, struct reject *why)
{
    if (c->decode->derive == NULL || !c->decode->derive->anonymise)
        return;
    bool is_whole = bytes->ptr == r->value.ptr && bytes->len == r->value.len;
    *bytes = hide_addresses(*bytes, &c->memory, &why->column);
    if (is_whole && r->key.len == 0) {
        r->value = *bytes;
        return;
    }
    if (!c->is_record_hidden) {
        c->hidden_key = hide_addresses(r->key, &c->memory, NULL);
        c->hidden_value = hide_addresses(r->value, &c->memory, NULL);
        c->is_record_hidden = true;
    }
    r->key = c->hidden_key;
    r->value = c->hidden_value;
}

void chain_flush(struct chain *c)
{
    arena_reset(&c->memory);
    c->kept_bytes = arena_bytes(&c->memory);
    if (c->derived != NULL)
        derived_flush(c->derived);
}

bool chain_holds_much(const struct chain *c)
{
    return arena_bytes(&c->memory) - c->kept_bytes > c->line_max;
}

/* The origin's column in the text of the event; 1 if the text is not the JSON that has the origin. */
static size_t column_of_addition(const struct chain *c, const struct addition *a)
{
    bool is_here = is_of_json(a->origin.kind) && c->innermost != NULL && c->innermost == c->json[c->depth];
    return is_here ? json_step_column(c->innermost, a->path) : 1;
}

/* Gets the texts of origins in the record, once for all its events. */
static void know_record(struct chain *c)
{
    for (size_t i = 0; i < c->addition_count; i++) {
        struct addition *a = &c->additions[i];
        if (!is_of_json(a->origin.kind))
            a->text = record_text(c->record, &a->origin, &c->memory);
    }
    c->is_record_known = true;
}

static enum chain_result add_fields(struct chain *c, struct event *ev, struct reject *why)
{
    if (!c->is_record_known)
        know_record(c);
    for (size_t i = 0; i < c->addition_count; i++) {
        const struct addition *a = &c->additions[i];
        struct slice text = a->text;
        bool of_json = is_of_json(a->origin.kind), is_plain = false;
        if (is_of_otlp(c, &a->origin)     ? !otlp_tag(c->otlp, a->path, &text)
            : is_of_remote(c, &a->origin) ? !remote_write_tag(c->remote, a->path, &text)
            : of_json ? !json_step_text(c->innermost, a->path, &c->memory, &text, &is_plain)
                      : text.ptr == NULL)
            continue;
        enum reject_reason reason = chain_field_put(ev, a->origin.field, text, is_plain);
        if (reason != REJECT_COUNT)
            return chain_refuse(why, reason, column_of_addition(c, a));
    }
    return CHAIN_EVENT;
}

/* Adds the broker's time, the configured fields, the constants and the derived fields to an event of the last
 * step. */
static __attribute__((noinline)) enum chain_result finish_event(struct chain *c, struct event *ev,
                                                                struct reject *why)
{
    if (c->decode->time_is_brokers) {
        if (c->record->timestamp_ms < 0)
            return chain_refuse(why, REJECT_MEMBER, 1);
        if (c->record->timestamp_ms >= CIVIL_END_MS)
            return chain_refuse(why, REJECT_TIME_RANGE, 1);
        ev->at_ms = c->record->timestamp_ms;
    }
    if (c->addition_count > 0 && add_fields(c, ev, why) != CHAIN_EVENT)
        return CHAIN_REJECT;
    put_more(c, ev);
    return CHAIN_EVENT;
}

static inline enum chain_result next_event_line(struct chain *c, struct level *l, struct event *ev,
                                                struct reject *why, struct slice *bytes)
{
    struct slice line = *bytes = level_take_line(l);
    if (UNLIKELY(line.len > c->line_max))
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    ev->literal = ev->numeric = ev->unfit = 0;
    if (!decoder_decode(c->line, line, ev, why))
        return CHAIN_REJECT;
    return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
}

static enum chain_result next_event_parts(struct chain *c, struct level *l, struct event *ev,
                                          struct reject *why, struct slice *bytes)
{
    struct slice line = *bytes = level_take_line(l);
    bool too_long = line.len > c->line_max;
    bool is_directive = c->kinds[c->depth] == STEP_W3C && text_step_heed(c->text, line, too_long);
    if (too_long)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (is_directive && l->is_done && forgets_directives(c) && text_step_has_idle_names(c->text))
        return chain_refuse(why, REJECT_FIELDS, 1); /* the next records would be read by the wrong names */
    if (is_directive)
        return CHAIN_DIRECTIVE;
    if (!text_step_event(c->text, line, &c->memory, ev, why))
        return CHAIN_REJECT;
    return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
}

/* A level is not done before the last value of its last line. */
static enum chain_result next_event_values(struct chain *c, struct level *l, struct event *ev,
                                           struct reject *why, struct slice *bytes)
{
    if (!metric_line_has_more(c->values)) {
        *bytes = c->values_line = level_take_line(l);
        c->is_last_line = l->is_done;
        if (bytes->len > c->line_max)
            return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
        if (!metric_line_begin(c->values, *bytes, c->record, &c->memory, why))
            return CHAIN_REJECT;
    }
    *bytes = c->values_line;
    bool good = metric_line_next(c->values, &c->memory, ev, why);
    l->is_done = c->is_last_line && !metric_line_has_more(c->values);
    if (!good)
        return CHAIN_REJECT;
    return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
}

static enum chain_result refuse_json(struct level *l, const char *start, const char *at,
                                     enum json_result result, struct reject *why, struct slice *bytes)
{
    *bytes = slice_of(start, (size_t)(level_skip_broken(l, at) - start));
    return chain_refuse(why, result == JSON_DEEP ? REJECT_JSON_DEPTH : REJECT_JSON, (size_t)(at - start) + 1);
}

/* Takes the next value of JSON. CHAIN_EVENT: *bytes is it; CHAIN_END: there is none, go on. */
static inline enum chain_result take_value(struct chain *c, struct level *l, struct reject *why,
                                           struct slice *bytes)
{
    bool broken;
    struct json_step *js = c->json[c->depth];
    const char *start = l->p, *at;
    if (!level_find_value(l, &broken)) {
        if (broken)
            return refuse_json(l, start, l->p, JSON_BAD, why, bytes);
        *bytes = slice_of(start, (size_t)(l->end - start));
        return l->is_done && !l->has_begun ? chain_refuse(why, REJECT_EMPTY, 1) : CHAIN_END;
    }
    start = l->p;
    enum json_result result = json_step_read(js, slice_of(start, (size_t)(l->end - start)), &at);
    if (result != JSON_OK)
        return refuse_json(l, start, at, result, why, bytes);
    *bytes = slice_of(start, (size_t)(at - start));
    l->p = at;
    if (!level_take_separator(l))
        return refuse_json(l, start, l->p, JSON_BAD, why, bytes);
    return CHAIN_EVENT;
}

/* CHAIN_END: neither event nor reject yet, go on. */
static enum chain_result next_value(struct chain *c, struct level *l, struct event *ev, struct reject *why,
                                    struct slice *bytes)
{
    struct json_step *js = c->json[c->depth];
    enum chain_result what = take_value(c, l, why, bytes);
    if (UNLIKELY(what != CHAIN_EVENT))
        return what;
    if (bytes->len > c->line_max)
        return chain_refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (js->kind != STEP_JSON_STRING) {
        if (!json_step_event(js, c->record, &c->memory, ev, why))
            return CHAIN_REJECT;
        return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
    }
    struct slice text;
    if (!json_step_unwrap(js, &c->memory, &text, why))
        return CHAIN_REJECT;
    chain_go_inside(c, text);
    return CHAIN_END;
}

/* Takes the next message of OTLP: a value of JSON, or all that is left. CHAIN_EVENT: it has begun. */
static enum chain_result begin_otlp(struct chain *c, struct level *l, struct reject *why, struct slice *bytes)
{
    enum chain_result what = CHAIN_EVENT;
    *bytes = slice_of(l->p, (size_t)(l->end - l->p));
    bool is_json = l->has_begun || otlp_is_json(*bytes);
    if (is_json)
        what = take_value(c, l, why, bytes);
    else
        l->is_done = true;
    c->is_last_line = l->is_done;
    if (what != CHAIN_EVENT)
        return what;
    if (bytes->len == 0)
        return chain_refuse(why, REJECT_EMPTY, 1);
    if (!(is_json ? otlp_begin_json : otlp_begin)(c->otlp, *bytes, c->record, why))
        return CHAIN_REJECT;
    l->is_done = false;
    return CHAIN_EVENT;
}

/* A level is not done before the last record of its last message. */
static enum chain_result next_otlp(struct chain *c, struct level *l, struct event *ev, struct reject *why,
                                   struct slice *bytes)
{
    struct slice text;
    if (!otlp_has_begun(c->otlp)) {
        enum chain_result what = begin_otlp(c, l, why, bytes);
        if (what != CHAIN_EVENT)
            return what;
    }
    switch (otlp_next(c->otlp, ev, &text, why, bytes)) {
    case OTLP_EVENT:
        return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
    case OTLP_TEXT:
        chain_go_inside(c, text);
        break;
    case OTLP_REJECT:
        return CHAIN_REJECT;
    case OTLP_END:
        l->is_done = c->is_last_line;
        break;
    }
    return CHAIN_END;
}

/* The text of the level becomes the message, unpacked. */
static enum chain_result next_remote(struct chain *c, struct level *l, struct event *ev, struct reject *why,
                                     struct slice *bytes)
{
    if (!remote_write_has_begun(c->remote)) {
        *bytes = slice_of(l->p, (size_t)(l->end - l->p));
        l->is_done = true;
        if (bytes->len == 0)
            return chain_refuse(why, REJECT_EMPTY, 1);
        bool good = remote_write_begin(c->remote, bytes, why);
        level_start(l, *bytes);
        l->is_done = !good;
        if (!good)
            return CHAIN_REJECT;
    }
    switch (remote_write_next(c->remote, ev, why, bytes)) {
    case REMOTE_EVENT:
        return LIKELY(!c->needs_finish) ? CHAIN_EVENT : finish_event(c, ev, why);
    case REMOTE_REJECT:
        return CHAIN_REJECT;
    case REMOTE_END:
        l->is_done = true;
        break;
    }
    return CHAIN_END;
}

static enum chain_result refuse_tombstone(struct chain *c, struct reject *why, struct slice *bytes)
{
    c->is_tombstone = false;
    *bytes = slice_of("", 0);
    return chain_refuse(why, REJECT_TOMBSTONE, 1);
}

static enum chain_result next_of_any(struct chain *c, struct event *ev, struct reject *why,
                                     struct slice *bytes)
{
    if (UNLIKELY(c->is_tombstone))
        return refuse_tombstone(c, why, bytes);
    for (;;) {
        struct level *l = &c->levels[c->depth];
        enum chain_result what = CHAIN_END;
        if (l->is_done) {
            if (c->depth == 0)
                return CHAIN_END;
            c->depth--;
            continue;
        }
        switch (c->kinds[c->depth]) {
        case STEP_LINE:
            return next_event_line(c, l, ev, why, bytes);
        case STEP_LOGFMT:
        case STEP_CSV:
        case STEP_TSV:
        case STEP_REGEX:
        case STEP_W3C:
            return next_event_parts(c, l, ev, why, bytes);
        case STEP_INFLUX:
        case STEP_STATSD:
            return next_event_values(c, l, ev, why, bytes);
        case STEP_SYSLOG:
            what = chain_unwrap_syslog(c, l, why, bytes);
            break;
        case STEP_CRI:
            what = chain_unwrap_cri(c, l, why, bytes);
            break;
        case STEP_MSGPACK:
            what = chain_unwrap_msgpack(c, l, why, bytes);
            break;
        case STEP_AVRO:
        case STEP_PROTOBUF:
            what = chain_unwrap_schema(c, l, why, bytes);
            break;
        case STEP_OTLP:
            what = next_otlp(c, l, ev, why, bytes);
            break;
        case STEP_REMOTE_WRITE:
            what = next_remote(c, l, ev, why, bytes);
            break;
        case STEP_JSON_STRING:
        case STEP_JSON:
        case STEP_METRIC:
            what = next_value(c, l, ev, why, bytes);
            break;
        }
        if (what != CHAIN_END)
            return what;
    }
}

enum chain_result chain_next(struct chain *c, struct event *ev, struct reject *why, struct slice *bytes)
{
    struct level *l = &c->levels[c->depth];
    if (LIKELY(!l->is_done && c->kinds[c->depth] == STEP_LINE))
        return next_event_line(c, l, ev, why, bytes);
    return next_of_any(c, ev, why, bytes);
}
