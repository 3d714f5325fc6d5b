#include "store/mongo/catalog/catalog.h"

#include "base/log.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"

static bool each_of_sketches(struct mongo_store *m, size_t report, bool with_weeks, mongo_collection_fn *fn,
                             void *context, struct err *e)
{
    const struct report *r = &m->reports[report];
    struct mongo_collection c = {.holds = HOLDS_DOCUMENTS, .report = report};
    for (c.sketch = 0; c.sketch < mongo_sketch_count(r); c.sketch++) {
        size_t count;
        const struct mongo_kind *kinds = mongo_sketch_kinds(r, c.sketch, &count);
        for (c.kind = kinds; c.kind < kinds + count; c.kind++) {
            mongo_sketch_collection(m, report, c.sketch, span_name(c.kind->span), c.name);
            if (!fn(context, &c, e))
                return false;
        }
        c.kind = &mongo_sketch_week;
        mongo_sketch_collection(m, report, c.sketch, span_name(SPAN_WEEK), c.name);
        if (with_weeks && c.sketch < r->sketch_count && !fn(context, &c, e)) /* not of newest events */
            return false;
    }
    return true;
}

bool mongo_each_kind(struct mongo_store *m, size_t report, bool with_weeks, mongo_collection_fn *fn,
                     void *context, struct err *e)
{
    size_t count;
    struct mongo_collection c = {.holds = HOLDS_DOCUMENTS, .report = report};
    const struct mongo_kind *kinds = mongo_kinds(&m->reports[report], &count);
    size_t all = count + (with_weeks ? MONGO_TARGETS : MONGO_WEEKS);
    for (size_t i = 0; i < all; i++) {
        c.kind = i < count ? &kinds[i] : mongo_targets[i - count].kind;
        mongo_collection(m, report, span_name(c.kind->span), c.name);
        if (!fn(context, &c, e))
            return false;
    }
    return each_of_sketches(m, report, with_weeks, fn, context, e);
}

static bool each_of_report(struct mongo_store *m, size_t report, mongo_collection_fn *fn, void *context,
                           struct err *e)
{
    struct mongo_collection series = {.holds = HOLDS_SERIES, .report = report},
                            top = {.holds = HOLDS_TOP, .report = report};
    mongo_collection(m, report, "series", series.name);
    mongo_collection(m, report, MONGO_TOP, top.name);
    return mongo_each_kind(m, report, m->with_weeks, fn, context, e) && fn(context, &series, e) &&
           (!mongo_top_is_cached(&m->reports[report]) || fn(context, &top, e));
}

static bool each_raw(struct mongo_store *m, mongo_collection_fn *fn, void *context, struct err *e)
{
    for (size_t i = 0; i < m->raw_count; i++) {
        struct mongo_collection c = {.holds = HOLDS_RAW, .raw = m->raws[i].of};
        struct mongo_place place;
        if (c.raw == NULL || raw_has_periods(c.raw))
            continue;
        mongo_raw_place(m, c.raw, 0, &place);
        memcpy(c.name, place.collection, sizeof c.name);
        if (!fn(context, &c, e))
            return false;
    }
    return true;
}

bool mongo_each_collection(struct mongo_store *m, mongo_collection_fn *fn, void *context, struct err *e)
{
    static const struct mongo_collection others[] = {{.holds = HOLDS_BOOKS, .name = MONGO_BOOKS},
                                                     {.holds = HOLDS_BATCHES, .name = MONGO_BATCHES},
                                                     {.holds = HOLDS_LEDGER, .name = MONGO_LEDGER},
                                                     {.holds = HOLDS_JOBS, .name = MONGO_JOBS},
                                                     {.holds = HOLDS_REPORTS, .name = MONGO_REPORTS}};
    for (size_t r = 0; r < m->store.report_count; r++) {
        if (!each_of_report(m, r, fn, context, e))
            return false;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (!fn(context, &others[i], e))
            return false;
    }
    return each_raw(m, fn, context, e);
}

bool mongo_index_at(const struct mongo_store *m, const struct mongo_collection *c, size_t n,
                    struct mongo_index_of *index, bson_t *key)
{
    if (c->holds == HOLDS_RAW)
        return mongo_raw_index(c->raw, n, index, key);
    bson_init(key);
    if (c->holds == HOLDS_TOP) {
        *index = (struct mongo_index_of){.name = MONGO_INDEX_TOP, .why = "periods that wait to be ranked"};
        BSON_APPEND_INT32(key, "waiting", 1);
    } else if (c->holds == HOLDS_DOCUMENTS) {
        *index = (struct mongo_index_of){.name = MONGO_INDEX,
                                         .why = "the history of one series, equality before range"};
        for (size_t d = 0; d < m->reports[c->report].dimension_count; d++)
            BSON_APPEND_INT32(key, m->more[c->report].dimensions[d], 1);
        BSON_APPEND_INT32(key, "metadata.date", 1);
    }
    return n == 0 && !bson_empty(key);
}

/* Those of raw events are made with their collection: mongo/raw/place.h. */
static bool create_index(void *context, const struct mongo_collection *c, struct err *e)
{
    struct mongo_store *m = context;
    char quoted[LOG_QUOTE_BYTES];
    enum mongo_index state = INDEX_IS_THERE;
    struct mongo_index_of index;
    bson_t key;
    bool good = true;
    if (c->holds == HOLDS_RAW)
        return true;
    if (mongo_index_at(m, c, 0, &index, &key)) {
        const struct mongo_index_wanted wanted = {.collection = c->name, .name = index.name, .key = &key};
        good = mongo_create_index(m->client, &wanted, &state, e);
    }
    if (good && state == INDEX_DIFFERS)
        log_warn("index_differs", "collection=%s error=%s next=\"left alone\"", c->name,
                 log_quote(e->text, quoted));
    bson_destroy(&key);
    return good;
}

bool mongo_create_indexes(struct mongo_store *m, struct err *e)
{
    return mongo_each_collection(m, create_index, m, e);
}
