#include "daemon/file/desk_backfill.h"

#include "daemon/lend.h"
#include "daemon/setup.h"

struct lending {
    const struct desk_backfill *desk;
    struct lend lend;
    struct pipeline *pipeline; /* counts the report alone */
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

static bool lend(void *context, const struct batch *batch, struct err *e)
{
    struct lending *l = context;
    return lend_apply(&l->lend, batch, e);
}

static void open_pipeline(struct lending *l)
{
    const struct engine *en = l->desk->engine;
    const struct store *st = en->options.store;
    struct pipeline_options options = setup_pipeline(en->options.config, 1);
    options.decode = setup_decode(en->options.config, NULL, NULL);
    options.stripe_ms = DESK_BACKFILL_MS;
    options.shard = backfill_limits(en->options.config);
    options.shard.late_ms = &en->late_ms[l->lend.report];
    options.backfills = true;
    options.report = l->lend.report;
    options.only = l->desk->only;
    options.apply = lend;
    options.first_shard = (uint32_t)en->options.threads;
    options.stop = &l->stop;
    options.tick = tick;
    options.context = l;
    l->pipeline = pipeline_new(NULL, &st->reports[l->lend.report], 1, &options);
    lend_init(&l->lend);
}

bool desk_find_report(const struct desk_backfill *d, size_t *counted, size_t *stored, struct err *e)
{
    const struct slice name = slice_text(d->report);
    int of_engine = store_find_report(d->engine->options.store, name);
    int of_positions = store_find_report(d->positions, name);
    *counted = (size_t)of_engine;
    *stored = (size_t)of_positions;
    return (of_engine >= 0 && of_positions >= 0) ||
           err_set(e, EX_CONFIG, "the daemon that writes this store has no report \"%s\"", d->report);
}

bool desk_backfill(const struct desk_backfill *d, struct backfilled *done, struct err *e)
{
    struct lending l = {.desk = d};
    struct backfill_plan plan;
    size_t stored;
    l.lend = (struct lend){.engine = d->engine, .may_wait = may_wait, .context = &l};
    if (!desk_find_report(d, &l.lend.report, &stored, e))
        return false;
    bool good = backfill_plan(&plan, d->positions, stored, &d->only, e);
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
        lend_fini(&l.lend);
    }
    backfill_plan_fini(&plan);
    return good;
}
