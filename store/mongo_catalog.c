#include "store/mongo_catalog.h"

#include "base/check.h"
#include "store/mongo_top.h"

#include <stdio.h>

static bool each_of_report(struct mongo_store *m, size_t report, mongo_collection_fn *fn, void *context,
                           struct err *e)
{
    size_t count;
    struct mongo_collection c = {.holds = HOLDS_DOCUMENTS, .report = report};
    const struct mongo_kind *kinds = mongo_kinds(&m->reports[report], &count);
    size_t all = count + (m->with_weeks ? MONGO_TARGETS : MONGO_WEEKS);
    for (size_t i = 0; i < all; i++) {
        c.kind = i < count ? &kinds[i] : mongo_targets[i - count].kind;
        mongo_collection(m, report, span_name(c.kind->span), c.name);
        if (!fn(context, &c, e))
            return false;
    }
    c = (struct mongo_collection){.holds = HOLDS_SERIES, .report = report};
    mongo_collection(m, report, "series", c.name);
    if (!fn(context, &c, e))
        return false;
    c = (struct mongo_collection){.holds = HOLDS_TOP, .report = report};
    mongo_collection(m, report, MONGO_TOP, c.name);
    return !mongo_top_is_kept(&m->reports[report]) || fn(context, &c, e);
}

bool mongo_each_collection(struct mongo_store *m, mongo_collection_fn *fn, void *context, struct err *e)
{
    static const struct mongo_collection others[] = {{HOLDS_BOOKS, 0, NULL, MONGO_BOOKS},
                                                     {HOLDS_BATCHES, 0, NULL, MONGO_BATCHES},
                                                     {HOLDS_LEDGER, 0, NULL, MONGO_LEDGER},
                                                     {HOLDS_JOBS, 0, NULL, MONGO_JOBS},
                                                     {HOLDS_REPORTS, 0, NULL, MONGO_REPORTS}};
    for (size_t r = 0; r < m->store.report_count; r++) {
        if (!each_of_report(m, r, fn, context, e))
            return false;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (!fn(context, &others[i], e))
            return false;
    }
    return true;
}

const char *mongo_index_key(const struct mongo_store *m, const struct mongo_collection *c, bson_t *key)
{
    bson_init(key);
    if (c->holds == HOLDS_TOP) {
        BSON_APPEND_INT32(key, "waiting", 1);
        return MONGO_INDEX_TOP;
    }
    if (c->holds != HOLDS_DOCUMENTS)
        return NULL;
    for (size_t d = 0; d < m->reports[c->report].dimension_count; d++)
        BSON_APPEND_INT32(key, m->more[c->report].dimensions[d], 1);
    BSON_APPEND_INT32(key, "metadata.date", 1);
    return MONGO_INDEX;
}
