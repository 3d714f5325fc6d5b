#include "prom/list.h"

#include "aggregate/dimension.h"
#include "base/mem.h"
#include "prom/fold.h"
#include "prom/parse.h"
#include "prom/slide.h"
#include "prom/write.h"

#include <stdio.h>
#include <stdlib.h>

#define ARENA_CHUNK_BYTES ((size_t)16 << 10)
#define LISTED_BOUND      "+Inf" /* of a histogram; what other bounds there are depends on the range */

/* A list under way: entries are found first, then sorted and written. */
struct listing {
    struct store *store;
    const struct list_ask *ask;
    struct budget budget;
    struct slice label; /* the label whose values are listed */
    struct arena arena;
    struct labels *found; /* the entries; a text is one label without a name */
    size_t count, capacity;
    bool is_cut, is_spent; /* there are more entries; the budget is spent */
    struct err *e;
};

/* One metric that a selector matches, and the series of it that match. */
struct place {
    struct listing *listing;
    const struct report *report;
    size_t index;
    struct metric *kind;
    bool is_first; /* the first metric of its report */
    const struct names *names;
    struct series_set set;
    struct slice metric;
    struct fold fold;
};

typedef bool place_fn(struct place *p);

static void add_labels(struct listing *l, struct labels labels)
{
    l->found = xgrow(l->found, &l->capacity, l->count + 1, sizeof *l->found);
    l->found[l->count++] = labels;
}

static void add_text(struct listing *l, struct slice text)
{
    struct label *label = arena_add(&l->arena, sizeof *label);
    *label = (struct label){slice_of("", 0), arena_copy(&l->arena, text)};
    add_labels(l, (struct labels){label, 1});
}

/* Writes the entries sorted, each once. */
static void write_found(struct listing *l, bool as_text, struct text *out)
{
    struct groups g;
    groups_init(&g, l->found, l->count);
    l->is_cut |= g.count > l->ask->max;
    text_putc(out, '[');
    for (size_t i = 0; i < g.count && i < l->ask->max; i++) {
        text_puts(out, i > 0 ? "," : "");
        if (as_text)
            text_json(out, g.labels[i].list[0].value);
        else
            write_labels(&g.labels[i], out);
    }
    text_putc(out, ']');
    groups_fini(&g);
}

static bool visit_metric(struct listing *l, struct select *select, struct place p, place_fn *fn)
{
    bool matches = true;
    if (select != NULL && !select_metric(select, p.report, p.kind, &matches, l->e))
        return false;
    if (p.kind->kind == METRIC_BUCKET && matches && select != NULL &&
        !select_label(select, BUCKET_LABEL, slice_text(LISTED_BOUND), &matches, l->e))
        return false;
    if (!matches)
        return true;
    if (select != NULL) {
        const struct match *match =
            select_series(select, l->store, p.index, p.kind->kind == METRIC_BUCKET, l->e);
        if (match == NULL)
            return false;
        if (match->set.kind != SERIES_ALL && match->count == 0)
            return true;
        p.set = match->set;
    }
    struct names *names = arena_add(&l->arena, sizeof *names);
    names_of(p.report, names);
    p.names = names;
    p.metric = arena_copy(&l->arena, slice_text(p.kind->name));
    return fn(&p);
}

/* Calls `fn` for every metric that `select` matches; NULL: for every metric. */
static bool visit_metrics(struct listing *l, struct select *select, place_fn *fn)
{
    for (size_t i = 0; i < l->store->report_count; i++) {
        const struct report *r = &l->store->reports[i];
        struct metric metric;
        for (size_t m = 0; names_metric(r, m, &metric); m++) {
            const struct place p = {
                .listing = l, .report = r, .index = i, .kind = &metric, .is_first = m == 0};
            if (!visit_metric(l, select, p, fn))
                return false;
        }
    }
    return true;
}

static bool visit_selected(struct listing *l, place_fn *fn)
{
    bool good = true;
    if (l->ask->selector_count == 0)
        return visit_metrics(l, NULL, fn);
    for (size_t i = 0; good && i < l->ask->selector_count; i++) {
        struct select select;
        struct node *n = parse_selector(l->ask->selectors[i], &l->arena, l->e);
        if (n == NULL)
            return false;
        good = select_init(&select, &n->selector, &l->budget, l->e) && visit_metrics(l, &select, fn);
        select_fini(&select);
    }
    return good;
}

/* Writes the entries that `fn` finds. */
static bool list(struct listing *l, bool as_text, place_fn *fn, struct text *out, bool *is_cut)
{
    arena_init(&l->arena, ARENA_CHUNK_BYTES);
    budget_init(&l->budget, l->ask->rows_max, l->store, &l->arena);
    bool good = visit_selected(l, fn);
    if (good)
        write_found(l, as_text, out);
    *is_cut = l->is_cut;
    free(l->found);
    arena_fini(&l->arena);
    return good;
}

/* Takes one name from the budget, for a series_fn. True: the walk may go on. */
static bool look_at_one(struct listing *l)
{
    l->is_spent = !budget_take(&l->budget, BUDGET_NAMES, 1, l->e);
    return !l->is_spent;
}

static bool walk(struct place *p, series_fn *fn)
{
    struct listing *l = p->listing;
    return store_series_each(l->store, p->index, fn, p, l->e) && !l->is_spent;
}

/* ---- labels */

static bool add_names(struct place *p)
{
    add_text(p->listing, slice_text(METRIC_LABEL));
    for (size_t d = 0; d < p->report->dimension_count; d++)
        add_text(p->listing, slice_text(p->names->labels[d]));
    if (p->kind->kind == METRIC_BUCKET)
        add_text(p->listing, slice_text(BUCKET_LABEL));
    return true;
}

bool list_labels(struct store *st, const struct list_ask *ask, struct text *out, bool *is_cut, struct err *e)
{
    struct listing l = {.store = st, .ask = ask, .e = e};
    return list(&l, true, add_names, out, is_cut);
}

/* ---- values */

/* A series_fn: the fold keeps each value once. */
static bool fold_value(void *context, uint32_t series, struct slice key)
{
    struct place *p = context;
    if (!look_at_one(p->listing))
        return false;
    if (series_set_has(&p->set, series))
        fold_add(&p->fold, series, key);
    return p->fold.row_count <= p->listing->ask->max;
}

static bool add_values(struct place *p)
{
    struct listing *l = p->listing;
    const struct grouping by = {.is_given = true, .labels = &l->label, .count = 1};
    if (slice_is(l->label, METRIC_LABEL)) {
        add_text(l, p->metric);
        return true;
    }
    if (p->kind->kind == METRIC_BUCKET && slice_is(l->label, BUCKET_LABEL)) {
        add_text(l, slice_text(LISTED_BOUND));
        return true;
    }
    /* All metrics of a report have the same series. */
    bool is_known = l->ask->selector_count == 0 && !p->is_first;
    if (is_known || names_find(p->report, p->names, l->label) < 0)
        return true;
    fold_init(&p->fold, p->report, p->names, &by, &l->arena);
    bool good = walk(p, fold_value);
    for (size_t row = 0; good && row < p->fold.row_count; row++) {
        struct slice key = p->fold.keys[row];
        add_text(l, dimension_next(&key));
    }
    fold_fini(&p->fold);
    return good;
}

bool list_values(struct store *st, struct slice label, const struct list_ask *ask, struct text *out,
                 bool *is_cut, struct err *e)
{
    struct listing l = {.store = st, .ask = ask, .label = label, .e = e};
    return list(&l, true, add_values, out, is_cut);
}

/* ---- series */

static bool add_one(void *context, uint32_t series, struct slice key)
{
    struct place *p = context;
    struct listing *l = p->listing;
    if (!look_at_one(l))
        return false;
    if (series_set_has(&p->set, series)) {
        struct labels labels = select_labels(p->report, p->names, p->metric, key, &l->arena);
        if (p->kind->kind == METRIC_BUCKET)
            labels = labels_set(&labels, slice_text(BUCKET_LABEL), slice_text(LISTED_BOUND), &l->arena);
        add_labels(l, labels);
    }
    /* Some of the entries may be equal; the list is cut here all the same. */
    l->is_cut |= l->count > l->ask->max;
    return !l->is_cut;
}

static bool add_series(struct place *p)
{
    return walk(p, add_one);
}

bool list_series(struct store *st, const struct list_ask *ask, struct text *out, bool *is_cut, struct err *e)
{
    struct listing l = {.store = st, .ask = ask, .e = e};
    return list(&l, false, add_series, out, is_cut);
}

/* ---- metadata */

static void write_help(const struct report *r, size_t measure, struct text *out)
{
    struct text help = {0};
    text_printf(&help, "report %s", r->name);
    for (size_t d = 0; d < r->dimension_count; d++)
        text_printf(&help, "%s%s", d > 0 ? ", " : " by ", r->dimensions[d].name);
    text_printf(&help, ": %s", r->measures[measure].expression);
    if (r->one_in > 1)
        text_printf(&help, ", estimated from one event in %u", r->one_in);
    text_json(out, text_slice(&help));
    text_fini(&help);
}

/* Parts of a histogram go by its name. */
static const char *type_of(const struct measure *m)
{
    return m->kind == MEASURE_HISTOGRAM ? "histogram" : slide_is_total(m) ? "counter" : "gauge";
}

void list_metadata(const struct store *st, struct slice metric, uint64_t max, struct text *out)
{
    uint64_t count = 0;
    text_putc(out, '{');
    for (size_t i = 0; i < st->report_count; i++) {
        const struct report *r = &st->reports[i];
        for (size_t m = 0; m < r->measure_count; m++) {
            char name[NAMES_METRIC_BYTES];
            snprintf(name, sizeof name, "%s:%s", r->name, r->measures[m].name);
            if (metric.ptr != NULL && names_has_alias(r) && slice_is(metric, r->name))
                snprintf(name, sizeof name, "%s", r->name);
            if (count == max || (metric.ptr != NULL && !slice_is(metric, name)))
                continue;
            text_printf(out, "%s\"%s\":[{\"type\":\"%s\",\"help\":", count++ > 0 ? "," : "", name,
                        type_of(&r->measures[m]));
            write_help(r, m, out);
            text_puts(out, ",\"unit\":\"\"}]");
        }
    }
    text_putc(out, '}');
}
