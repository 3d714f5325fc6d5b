#include "daemon/worker.h"

#include "base/check.h"

#include <stdio.h>

/* The part of a rejected line that a rejects file shows. */
#define REJECT_LINE_BYTES 8192

void worker_init(struct worker *w, uint32_t number, const struct report *reports, size_t report_count,
                 const struct pipeline_options *options)
{
    *w = (struct worker){.options = options};
    clf_init(&w->clf, options->format);
    w->shard = shard_new(number, reports, report_count, &options->shard);
    block_init(&w->block, options->line_max);
}

void worker_fini(struct worker *w)
{
    shard_free(w->shard);
    block_fini(&w->block);
    text_fini(&w->open.rejects);
    text_fini(&w->sealed.rejects);
}

static void keep_sample(struct outbox *box, struct slice line, int64_t offset, struct reject why)
{
    if (box->sample_count[why.reason] == SAMPLES_MAX)
        return;
    struct reject_sample *s = &box->samples[why.reason][box->sample_count[why.reason]++];
    size_t n = line.len < SAMPLE_BYTES - 1 ? line.len : SAMPLE_BYTES - 1;
    *s = (struct reject_sample){.why = why, .offset = offset};
    for (size_t i = 0; i < n; i++)
        s->line[i] = line.ptr[i] >= 0x20 && line.ptr[i] < 0x7f ? line.ptr[i] : '?';
}

static void reject(struct worker *w, struct slice line, struct reject why)
{
    int64_t offset = w->block.from + (line.ptr - w->block.data);
    shard_reject(w->shard, why.reason);
    keep_sample(&w->open, line, offset, why);
    if (w->options->rejects_fd < 0)
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

static void count_line(struct worker *w, struct slice line, int64_t latest_ms)
{
    struct event *ev = &w->events[w->event_count];
    struct reject why = {REJECT_TOO_LONG, w->line_max + 1};
    if (UNLIKELY(line.len > w->line_max)) {
        reject(w, line, why);
        return;
    }
    if (UNLIKELY(!decoder_decode(&w->clf.decoder, line, ev, &why))) {
        reject(w, line, why);
        return;
    }
    if (UNLIKELY(ev->at_ms > latest_ms)) {
        reject(w, line, (struct reject){REJECT_FUTURE, 1});
        return;
    }
    if (++w->event_count == SHARD_EVENTS_MAX)
        add_events(w);
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
    add_events(w); /* their slices end with the block */
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
