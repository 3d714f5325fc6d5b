#include "daemon/file/desk_backfill.h"

#include "base/check.h"
#include "base/mem.h"
#include "daemon/setup.h"

#include <stdlib.h>
#include <string.h>

struct lending {
    const struct desk_backfill *desk;
    size_t report;               /* index in the engine's store */
    struct pipeline *pipeline;   /* counts that report alone */
    struct part_report *reports; /* a part for the engine's store: empty but for the report */
    struct books books;          /* likewise */
    atomic_bool stop;
};

static void tick(void *context, const struct pipeline_progress *progress)
{
    struct lending *l = context;
    if (!l->desk->go_on(l->desk->context, progress))
        atomic_store(&l->stop, true);
}

/* The engine's wait function. */
static bool may_wait(void *context)
{
    struct lending *l = context;
    tick(l, pipeline_progress(l->pipeline));
    return !atomic_load(&l->stop);
}

/* Lend the engine a batch of the pipeline, as one of all reports of its store. */
static bool lend(void *context, const struct batch *batch, struct err *e)
{
    struct lending *l = context;
    struct batch whole = *batch;
    struct part part, *parts = &part;
    ASSERT(batch->part_count <= 1 && batch->range_count == 1);
    for (int i = 0; i < BOOK_REPORT_COUNT; i++)
        *books_report(&l->books, l->report, i) = batch->books->entries[BOOK_SOURCE_COUNT + i];
    whole.books = &l->books;
    if (batch->part_count == 1) {
        part = *batch->parts[0];
        l->reports[l->report] = part.reports[0];
        part.report_count = l->books.report_count;
        part.reports = l->reports;
        whole.parts = &parts;
    }
    return engine_lend(l->desk->engine, &whole, may_wait, l, e);
}

static void open_pipeline(struct lending *l)
{
    const struct engine *en = l->desk->engine;
    const struct store *st = en->options.store;
    struct pipeline_options options = setup_pipeline(en->options.config, 1);
    options.decode = setup_decode(en->options.config, NULL, NULL);
    options.stripe_ms = DESK_BACKFILL_MS;
    options.shard = backfill_limits(en->options.config);
    options.shard.late_ms = &en->late_ms[l->report];
    options.backfills = true;
    options.report = l->report;
    options.apply = lend;
    options.first_shard = (uint32_t)en->options.threads;
    options.stop = &l->stop;
    options.tick = tick;
    options.context = l;
    l->pipeline = pipeline_new(NULL, &st->reports[l->report], 1, &options);
    l->reports = xcalloc(st->report_count, sizeof *l->reports);
    for (size_t i = 0; i < st->report_count; i++)
        l->reports[i].cells.stride = report_cell_bytes(&st->reports[i]);
    books_init(&l->books, st->report_count);
}

bool desk_backfill(const struct desk_backfill *d, struct backfilled *done, struct err *e)
{
    const struct slice name = slice_text(d->report);
    int report = store_find_report(d->engine->options.store, name);
    int stored = store_find_report(d->positions, name);
    struct lending l = {.desk = d, .report = (size_t)report};
    struct backfill_plan plan;
    if (report < 0 || stored < 0)
        return err_set(e, EX_CONFIG, "the daemon that writes this store has no report \"%s\"", d->report);
    bool good = backfill_plan(&plan, d->positions, (size_t)stored, e);
    if (good) {
        open_pipeline(&l);
        struct backfill b = {.config = d->engine->options.config,
                             .store = d->positions,
                             .pipeline = l.pipeline,
                             .plan = &plan,
                             .decode = d->decode,
                             .stop = d->engine->options.service->stop};
        good = backfill_file(&b, d->path, d->fd, done, e);
        if (!good && (atomic_load(&l.stop) || atomic_load(b.stop)))
            err_set_retryable(e, EX_TEMPFAIL,
                              "the daemon has stopped: what was counted stays, run the same command again to "
                              "resume");
        pipeline_free(l.pipeline);
        free(l.reports);
        books_fini(&l.books);
    }
    backfill_plan_fini(&plan);
    return good;
}
