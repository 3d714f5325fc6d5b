#include "query/values.h"

#include "base/mem.h"
#include "query/match.h"
#include "query/query_internal.h"
#include "query/unknown.h"

#include <stdlib.h>

/* The least values seen so far: sorted, each once, each a copy. */
struct values {
    size_t dimension;
    struct slice prefix;
    struct text *list; /* room for one more than the limit: that one only says that there are more */
    size_t count, room;
};

bool values_set(struct query *q, struct slice name, struct slice value, struct err *e)
{
    static const char *const names[] = {"report", "dimension", "prefix", "limit", NULL};
    struct query_filter *f = &q->filters[0]; /* the dimension, and what its values begin with */
    if (slice_is(name, "report"))
        q->report = value;
    else if (slice_is(name, "dimension"))
        f->dimension = value;
    else if (slice_is(name, "prefix"))
        f->value = value;
    else if (slice_is(name, "limit"))
        return query_set_limit(q, "limit", value, e);
    else
        return unknown_name(e, "parameter", name, names);
    return true;
}

/* The first place whose value is not less; *found: it is the same. */
static size_t place_of(const struct values *v, struct slice value, bool *found)
{
    size_t low = 0, high = v->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(text_slice(&v->list[middle]), value);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

static bool look_at(void *context, uint32_t series, struct slice key)
{
    struct values *v = context;
    struct slice value = match_next(&key);
    bool found;
    (void)series;
    for (size_t d = 0; d < v->dimension; d++)
        value = match_next(&key);
    if (value.len < v->prefix.len || !slice_equal(slice_of(value.ptr, v->prefix.len), v->prefix))
        return true;
    if (v->count == v->room && slice_compare(value, text_slice(&v->list[v->count - 1])) >= 0)
        return true;
    size_t at = place_of(v, value, &found);
    if (found)
        return true;
    /* The greatest makes room, where there is none; its bytes are written over. */
    size_t last = v->count < v->room ? v->count++ : v->count - 1;
    struct text spare = v->list[last];
    memmove(&v->list[at + 1], &v->list[at], (last - at) * sizeof *v->list);
    text_clear(&spare);
    text_add(&spare, value.ptr, value.len);
    v->list[at] = spare;
    return true;
}

static bool find_dimension(const struct report *r, struct slice name, size_t *dimension, struct err *e)
{
    const char *names[REPORT_DIMENSIONS_MAX + 1] = {0};
    int found = name.ptr == NULL && r->dimension_count == 1 ? 0 : report_find_dimension(r, name);
    for (size_t d = 0; d < r->dimension_count; d++)
        names[d] = r->dimensions[d].name;
    *dimension = (size_t)found;
    if (found >= 0)
        return true;
    unknown_name(e, "dimension", name, names);
    return err_prefix(e, "report %s", r->name);
}

static void write_values(const struct values *v, size_t limit, struct text *out)
{
    text_puts(out, "{\"values\":[");
    for (size_t i = 0; i < v->count && i < limit; i++) {
        text_puts(out, i > 0 ? "," : "");
        text_json(out, text_slice(&v->list[i]));
    }
    text_printf(out, "],\"more\":%s}\n", v->count > limit ? "true" : "false");
}

bool values_run(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    struct values v = {.prefix = q->filters[0].value, .room = (size_t)q->top + 1};
    size_t report;
    ASSERT(q->top > 0);
    if (!query_find_report(st, q->report, &report, e) ||
        !find_dimension(&st->reports[report], q->filters[0].dimension, &v.dimension, e))
        return false;
    v.list = xcalloc(v.room, sizeof *v.list);
    size_t before = out->len;
    bool good = store_series_each(st, report, look_at, &v, e);
    if (good) {
        write_values(&v, (size_t)q->top, out);
        good = query_check_bytes(q, out, before, e);
    }
    for (size_t i = 0; i < v.count; i++)
        text_fini(&v.list[i]);
    free(v.list);
    return good;
}
