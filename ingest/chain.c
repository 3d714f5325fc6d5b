#include "ingest/chain.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/mem.h"
#include "ingest/chain_field.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMORY_CHUNK_BYTES 65536
#define INT_TEXT_BYTES     32

/* What is left of a text that one step takes apart: the record is the first step's, what that unwraps is
 * the next one's. */
struct level {
    const char *p, *end;
    bool is_done;
};

struct chain {
    const struct decode *decode;
    size_t line_max;
    struct clf clf;
    struct level levels[DECODE_STEPS_MAX];
    size_t depth; /* of the level that goes on */
    const struct record *record;
    bool is_tombstone;
    struct origin of_record[DECODE_FIELDS_MAX]; /* those of the decode that the record itself has, … */
    struct slice of_record_text[DECODE_FIELDS_MAX];
    size_t of_record_count; /* … in the order of fields */
    bool is_record_known;   /* are the texts those of this record? */
    struct arena memory;
};

static bool is_of_record(enum origin_kind kind)
{
    return kind != ORIGIN_POINTER && kind != ORIGIN_TAG;
}

/* Fields in their order, so that chain_field_put() has the more explicit win. */
static void collect_origins(struct chain *c)
{
    for (int f = 0; f < FIELD_MAX; f++) {
        for (size_t i = 0; i < c->decode->origin_count; i++) {
            const struct origin *o = &c->decode->origins[i];
            if ((int)o->field == f && is_of_record(o->kind))
                c->of_record[c->of_record_count++] = *o;
        }
    }
}

struct chain *chain_new(const struct decode *d, size_t line_max)
{
    ASSERT(d->step_count > 0);
    struct chain *c = xcalloc(1, sizeof *c);
    c->decode = d;
    c->line_max = line_max;
    c->levels[0].is_done = true;
    arena_init(&c->memory, MEMORY_CHUNK_BYTES);
    clf_init(&c->clf, d->steps[d->step_count - 1].format);
    collect_origins(c);
    return c;
}

void chain_free(struct chain *c)
{
    if (c == NULL)
        return;
    arena_fini(&c->memory);
    free(c);
}

struct decoder *chain_decoder(struct chain *c)
{
    const struct decode *d = c->decode;
    bool is_plain = d->step_count == 1 && d->steps[0].kind == STEP_LINE && d->origin_count == 0;
    return is_plain && !d->time_is_brokers ? &c->clf.decoder : NULL;
}

static void start_level(struct level *l, struct slice text)
{
    *l = (struct level){.p = text.ptr, .end = slice_end(text)};
}

void chain_start(struct chain *c, const struct record *r)
{
    c->record = r;
    c->is_tombstone = r->value.ptr == NULL;
    c->is_record_known = false;
    c->depth = 0;
    start_level(&c->levels[0], r->value);
    c->levels[0].is_done = c->is_tombstone;
}

void chain_flush(struct chain *c)
{
    arena_reset(&c->memory);
}

static enum chain_result refuse(struct reject *why, enum reject_reason reason, size_t column)
{
    *why = (struct reject){reason, column};
    return CHAIN_REJECT;
}

/* The line feed that ends a message begins no further line. */
static struct slice take_line(struct level *l)
{
    const char *from = l->p, *feed = from < l->end ? memchr(from, '\n', (size_t)(l->end - from)) : NULL;
    if (feed == NULL) {
        l->is_done = true;
        return slice_of(from, (size_t)(l->end - from));
    }
    l->p = feed + 1;
    l->is_done = l->p == l->end;
    return slice_of(from, (size_t)(feed - from));
}

static struct slice print_partition(struct chain *c)
{
    char *buf = arena_add(&c->memory, INT_TEXT_BYTES);
    return slice_of(buf, (size_t)snprintf(buf, INT_TEXT_BYTES, "%" PRId32, c->record->partition));
}

/* In seconds, as other times that are numbers. */
static struct slice print_timestamp(struct chain *c)
{
    int64_t ms = c->record->timestamp_ms;
    char *buf = arena_add(&c->memory, INT_TEXT_BYTES);
    int len = snprintf(buf, INT_TEXT_BYTES, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    return slice_of(buf, (size_t)len);
}

/* What the record has for an origin; ptr NULL where nothing. */
static struct slice record_text(struct chain *c, const struct origin *o)
{
    const struct record *r = c->record;
    struct slice found = {NULL, 0};
    switch (o->kind) {
    case ORIGIN_KEY:
        return r->key;
    case ORIGIN_TOPIC:
        return r->topic;
    case ORIGIN_PARTITION:
        return print_partition(c);
    case ORIGIN_TIMESTAMP:
        return r->timestamp_ms >= 0 ? print_timestamp(c) : found;
    default:
        ASSERT(o->kind == ORIGIN_HEADER);
        return r->header != NULL && r->header(r, o->text, &found) ? found : (struct slice){NULL, 0};
    }
}

/* The same for all events of a record: asked once. */
static void know_record(struct chain *c)
{
    for (size_t i = 0; i < c->of_record_count; i++)
        c->of_record_text[i] = record_text(c, &c->of_record[i]);
    c->is_record_known = true;
}

static enum chain_result add_record_fields(struct chain *c, struct event *ev, struct reject *why)
{
    if (!c->is_record_known)
        know_record(c);
    for (size_t i = 0; i < c->of_record_count; i++) {
        struct slice text = c->of_record_text[i];
        enum reject_reason reason =
            text.ptr == NULL ? REJECT_COUNT : chain_field_put(ev, c->of_record[i].field, text);
        if (reason != REJECT_COUNT)
            return refuse(why, reason, 1);
    }
    return CHAIN_EVENT;
}

/* An event of the last step, with what the configuration adds to it. */
static enum chain_result finish_event(struct chain *c, struct event *ev, struct reject *why)
{
    if (c->decode->time_is_brokers) {
        if (c->record->timestamp_ms < 0)
            return refuse(why, REJECT_MEMBER, 1);
        if (c->record->timestamp_ms >= CIVIL_END_MS)
            return refuse(why, REJECT_TIME_RANGE, 1);
        ev->at_ms = c->record->timestamp_ms;
    }
    return c->of_record_count > 0 ? add_record_fields(c, ev, why) : CHAIN_EVENT;
}

static enum chain_result next_line(struct chain *c, struct level *l, struct event *ev, struct reject *why,
                                   struct slice *bytes)
{
    struct slice line = *bytes = take_line(l);
    if (UNLIKELY(line.len > c->line_max))
        return refuse(why, REJECT_TOO_LONG, c->line_max + 1);
    if (!decoder_decode(&c->clf.decoder, line, ev, why))
        return CHAIN_REJECT;
    ev->literal = ev->numeric = 0;
    return finish_event(c, ev, why);
}

enum chain_result chain_next(struct chain *c, struct event *ev, struct reject *why, struct slice *bytes)
{
    if (UNLIKELY(c->is_tombstone)) {
        c->is_tombstone = false;
        *bytes = slice_of("", 0);
        return refuse(why, REJECT_TOMBSTONE, 1);
    }
    for (;;) {
        struct level *l = &c->levels[c->depth];
        if (l->is_done) {
            if (c->depth == 0)
                return CHAIN_END;
            c->depth--;
            continue;
        }
        switch (c->decode->steps[c->depth].kind) {
        case STEP_LINE:
            return next_line(c, l, ev, why, bytes);
        default:
            *bytes = slice_of(l->p, (size_t)(l->end - l->p));
            l->is_done = true;
            return refuse(why, REJECT_JSON, 1);
        }
    }
}
