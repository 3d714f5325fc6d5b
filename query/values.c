#include "query/values.h"

#include "query/bound.h"
#include "query/unknown.h"

/* The answer as it grows. */
struct writing {
    struct text *out;
    size_t limit, count;
    size_t len_max; /* of `out`; 0: no limit */
};

bool values_set(struct query *q, struct slice name, struct slice value, struct err *e)
{
    static const char *const names[] = {"report", "dimension", "prefix", "limit", NULL};
    struct query_filter *f = &q->filters[0]; /* the dimension, and the prefix of its values */
    if (slice_is(name, "report"))
        q->report = value;
    else if (slice_is(name, "dimension"))
        f->dimension = value;
    else if (slice_is(name, "prefix"))
        f->value = value;
    else if (slice_is(name, "limit"))
        return query_set_limit(q, value, e);
    else
        return unknown_name(e, "parameter", name, names);
    return true;
}

static bool find_dimension(const struct report *r, struct slice name, size_t *dimension, struct err *e)
{
    int found = name.ptr == NULL && r->dimension_count == 1 ? 0 : report_find_dimension(r, name);
    *dimension = (size_t)found;
    return found >= 0 || unknown_dimension(e, r, name);
}

static bool write_value(void *context, struct slice value)
{
    struct writing *w = context;
    if (w->count++ == w->limit || (w->len_max > 0 && w->out->len > w->len_max))
        return false; /* there are more, or it is too long already */
    text_puts(w->out, w->count > 1 ? "," : "");
    text_json(w->out, value);
    return true;
}

bool values_run(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    struct writing w = {.out = out, .limit = (size_t)q->top};
    size_t report, dimension, before = out->len;
    ASSERT(q->top > 0);
    if (q->limits.bytes_max > 0)
        w.len_max = before + q->limits.bytes_max;
    if (!bound_find_report(st, q->report, &report, e) ||
        !find_dimension(&st->reports[report], q->filters[0].dimension, &dimension, e))
        return false;
    text_puts(out, "{\"values\":[");
    if (!store_values(st, report, dimension, q->filters[0].value, w.limit + 1, write_value, &w, e)) {
        text_cut(out, before);
        return false;
    }
    text_printf(out, "],\"more\":%s}\n", w.count > w.limit ? "true" : "false");
    return bound_check_bytes(q, out, before, e);
}
