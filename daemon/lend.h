/* lend.h - gives the batches of one report to a daemon's engine as batches of all its reports. A backfill
 * beside a running daemon (daemon/file/desk_backfill.h) applies its batches so.
 *
 * Threads: that of engine_lend().
 */
#pragma once

#include "daemon/engine.h"

struct lend {
    struct engine *engine;
    size_t report;               /* index in the engine's store */
    bool (*may_wait)(void *of);  /* as engine_lend() has it; called with `context` */
    void *context;               /* of may_wait */
    struct part_report *reports; /* a part for the engine's store: empty but for the report */
    struct books books;          /* books for the engine's store: empty but for the report */
};

void lend_init(struct lend *l);
void lend_fini(struct lend *l);
/* Have the engine's writer apply a batch of one range that has the report alone, and wait until it is
 * durable. `context` is the struct lend. */
bool lend_apply(void *context, const struct batch *batch, struct err *e) MUST_CHECK;
