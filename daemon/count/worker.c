#include "daemon/count/worker.h"

#include "base/check.h"

#include <stdio.h>

/* Bytes of a rejected line that go to the rejects file, at most. */
#define REJECT_LINE_BYTES 8192

/* The reject function of a worker's lane. */
static void note_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    struct worker *w = context;
    samples_add(&w->open.samples, bytes, r->offset, why);
    if (!w->options.keeps_rejects)
        return;
    text_printf(&w->open.rejects, "%lld\t%s\t%zu\t", (long long)r->offset, reject_name(why.reason),
                why.column);
    text_add(&w->open.rejects, bytes.ptr, bytes.len < REJECT_LINE_BYTES ? bytes.len : REJECT_LINE_BYTES);
    text_putc(&w->open.rejects, '\n');
}

void worker_init(struct worker *w, uint32_t number, struct lanes *lanes, const struct report *reports,
                 size_t report_count, const struct worker_options *options)
{
    *w = (struct worker){
        .options = *options,
        .lane = {.lanes = lanes, .abandon = options->abandon, .reject = note_reject, .context = w}};
    worker_set_decode(w, options->decode, NULL);
    w->lane.shard = shard_new(number, reports, report_count, &options->shard);
    block_init(&w->block, options->line_max);
}

void worker_fini(struct worker *w)
{
    chain_free(w->chain);
    shard_free(w->lane.shard);
    block_fini(&w->block);
    text_fini(&w->open.rejects);
    text_fini(&w->sealed.rejects);
}

void worker_set_decode(struct worker *w, const struct decode *d, const struct constants *constants)
{
    ASSERT(w->lane.event_count == 0);
    chain_free(w->chain);
    w->chain = chain_new(d, w->options.line_max);
    chain_set_constants(w->chain, constants);
}

void worker_count(struct worker *w, int64_t latest_ms)
{
    w->lane.latest_ms = latest_ms;
    lane_block(&w->lane, w->chain, &w->block, w->options.line_max);
}

void worker_hand_over(struct worker *w, struct part *part)
{
    struct text used = w->sealed.rejects;
    lane_hand_over(&w->lane, part);
    w->sealed = w->open;
    text_clear(&used);
    w->open = (struct outbox){.rejects = used};
}
