#include "daemon/count/worker.h"

#include "base/check.h"

#include <stdio.h>

/* Bytes of a rejected line that go to the rejects file, at most. */
#define REJECT_LINE_BYTES 8192

void worker_init(struct worker *w, uint32_t number, const struct report *reports, size_t report_count,
                 const struct worker_options *options)
{
    *w = (struct worker){.options = *options};
    worker_set_decode(w, options->decode);
    w->shard = shard_new(number, reports, report_count, &options->shard);
    block_init(&w->block, options->line_max);
}

void worker_fini(struct worker *w)
{
    chain_free(w->chain);
    shard_free(w->shard);
    block_fini(&w->block);
    text_fini(&w->open.rejects);
    text_fini(&w->sealed.rejects);
}

void worker_set_decode(struct worker *w, const struct decode *d)
{
    ASSERT(w->event_count == 0);
    chain_free(w->chain);
    w->chain = chain_new(d, w->options.line_max);
    w->decoder = chain_decoder(w->chain);
}

static void reject(struct worker *w, struct slice line, int64_t offset, struct reject why)
{
    shard_reject(w->shard, why.reason);
    samples_add(&w->open.samples, line, offset, why);
    if (!w->options.keeps_rejects)
        return;
    text_printf(&w->open.rejects, "%lld\t%s\t%zu\t", (long long)offset, reject_name(why.reason), why.column);
    text_add(&w->open.rejects, line.ptr, line.len < REJECT_LINE_BYTES ? line.len : REJECT_LINE_BYTES);
    text_putc(&w->open.rejects, '\n');
}

static void add_events(struct worker *w)
{
    shard_add(w->shard, w->events, w->event_count);
    w->event_count = 0;
}

/* Take the event just decoded from `bytes`, the line's element number `element`. */
static void take_event(struct worker *w, struct slice bytes, int64_t offset, uint32_t element,
                       int64_t latest_ms)
{
    struct event *ev = &w->events[w->event_count];
    if (UNLIKELY(ev->at_ms > latest_ms)) {
        reject(w, bytes, offset, (struct reject){REJECT_FUTURE, 1});
        return;
    }
    ev->order = record_order(offset, element);
    if (++w->event_count == SHARD_EVENTS_MAX)
        add_events(w);
}

/* Count a line that must be unwrapped, or holds several events. The chain's memory can be reused once no
 * event needs it and the chain has nothing more to say of the record. */
static void count_record(struct worker *w, struct slice line, int64_t offset, int64_t latest_ms)
{
    struct record r = {.value = line, .offset = offset, .timestamp_ms = -1};
    struct reject why;
    struct slice bytes;
    uint32_t count = 0;
    chain_start(w->chain, &r);
    for (enum chain_result what;
         (what = chain_next(w->chain, &w->events[w->event_count], &why, &bytes)) != CHAIN_END; count++) {
        if (what == CHAIN_EVENT)
            take_event(w, bytes, offset, count, latest_ms);
        else
            reject(w, bytes, offset, why);
    }
    if (count > 1)
        add_events(w);
    if (w->event_count == 0)
        chain_flush(w->chain);
}

static void count_line(struct worker *w, struct slice line, int64_t latest_ms)
{
    int64_t offset = w->block.from + (line.ptr - w->block.data);
    struct reject why = {REJECT_TOO_LONG, w->options.line_max + 1};
    if (UNLIKELY(w->decoder == NULL) && line.len <= w->options.line_max)
        count_record(w, line, offset, latest_ms);
    else if (UNLIKELY(line.len > w->options.line_max ||
                      !decoder_decode(w->decoder, line, &w->events[w->event_count], &why)))
        reject(w, line, offset, why);
    else
        take_event(w, line, offset, 0, latest_ms);
}

void worker_count(struct worker *w, int64_t latest_ms)
{
    const char *p = w->block.data, *end = p + w->block.len;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        ASSERT(newline != NULL);
        count_line(w, slice_of(p, (size_t)(newline - p)), latest_ms);
        p = newline + 1;
    }
    add_events(w); /* their slices point into the block */
    chain_flush(w->chain);
    w->bytes = (int64_t)shard_bytes(w->shard);
}

void worker_hand_over(struct worker *w, struct part *part)
{
    ASSERT(w->sealed.part == NULL);
    struct text used = w->sealed.rejects;
    w->sealed = w->open;
    w->sealed.part = part;
    w->sealed.stripe = w->stripe;
    w->sealed.applied = false;
    text_clear(&used);
    memset(&w->open, 0, sizeof w->open);
    w->open.rejects = used;
}
