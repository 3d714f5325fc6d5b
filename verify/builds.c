#include "verify/builds.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/show.h"
#include "base/units.h"
#include "store/builds.h"
#include "verify/verify.h"

#include <stdlib.h>

struct found {
    struct build_stretch of;
    size_t partition; /* index in `partitions` */
    char report[REPORT_NAME_BYTES];
};

struct finding {
    struct found *list;
    size_t count, capacity;
    struct range *partitions; /* those that have a position, by name; then those that have none */
    size_t partition_count, partition_capacity, positions;
};

static void add_partition(struct finding *g, const struct range *r)
{
    g->partitions =
        xgrow(g->partitions, &g->partition_capacity, g->partition_count + 1, sizeof *g->partitions);
    g->partitions[g->partition_count++] = *r;
}

static bool take_position(void *context, const struct position *p)
{
    add_partition(context, &p->range);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    return order != 0 ? order : strcmp(x->partition, y->partition);
}

static size_t find_partition(struct finding *g, const char *source, const char *partition)
{
    struct range r = {0};
    snprintf(r.source, sizeof r.source, "%s", source);
    snprintf(r.partition, sizeof r.partition, "%s", partition);
    const struct range *found =
        g->positions > 0 ? bsearch(&r, g->partitions, g->positions, sizeof r, compare_names) : NULL;
    if (found != NULL)
        return (size_t)(found - g->partitions);
    size_t i = g->positions;
    while (i < g->partition_count && compare_names(&g->partitions[i], &r) != 0)
        i++;
    if (i == g->partition_count)
        add_partition(g, &r);
    return i;
}

static bool take_entry(void *context, const char *source, const char *partition, const char *report,
                       const char *entry, int64_t value)
{
    struct finding *g = context;
    struct found f = {0};
    if (!build_read(entry, value, &f.of))
        return true;
    f.partition = find_partition(g, source, partition);
    snprintf(f.report, sizeof f.report, "%s", report);
    g->list = xgrow(g->list, &g->capacity, g->count + 1, sizeof *g->list);
    g->list[g->count++] = f;
    return true;
}

/* Reads the positions, and then the entries of the books. */
static bool find_stretches(struct finding *g, struct store *st, struct err *e)
{
    if (!store_positions(st, take_position, g, e))
        return false;
    g->positions = g->partition_count;
    if (g->positions > 0)
        qsort(g->partitions, g->positions, sizeof *g->partitions, compare_names);
    return store_books(st, take_entry, g, e);
}

static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = order_int64(x->of.kind, y->of.kind);
    order = order != 0 ? order : order_int64(x->of.build, y->of.build);
    order = order != 0 ? order : order_int64((int64_t)x->partition, (int64_t)y->partition);
    order = order != 0 ? order : strcmp(x->report, y->report);
    return order != 0 ? order : order_int64(x->of.from, y->of.from);
}

static bool is_same_build(const struct found *a, const struct found *b)
{
    return a->of.kind == b->of.kind && a->of.build == b->of.build;
}

static void print_stretch(const struct finding *g, const struct found *f, FILE *out)
{
    const struct range *r = &g->partitions[f->partition];
    char label[SHOW_BYTES], from[UNITS_NUMBER_BYTES], to[UNITS_NUMBER_BYTES];
    fprintf(out, "  %s%s%s, offsets %s to %s%s%s\n", show(r->label[0] != '\0' ? r->label : r->source, label),
            r->partition[0] != '\0' ? "/" : "", r->partition, units_number(f->of.from, from),
            units_number(f->of.to, to), f->report[0] != '\0' ? ", backfill of " : "", f->report);
}

/* Prints what the stretches list[0] to list[count - 1] of one build say. */
static void print_build(const struct finding *g, const struct found *list, size_t count,
                        const struct builds *now, bool differs, FILE *out)
{
    struct text build = {0};
    char number[UNITS_NUMBER_BYTES];
    size_t partitions = 1;
    for (size_t i = 1; i < count; i++)
        partitions += list[i].partition != list[i - 1].partition;
    build_print(&list->of, &build);
    fprintf(out, "counted by derive.%s of %s: %s partition%s\n", build_name(list->of.kind), build.ptr,
            units_number((int64_t)partitions, number), partitions == 1 ? "" : "s");
    text_fini(&build);
    if (!differs || now->of[list->of.kind] == list->of.build)
        return;
    for (size_t i = 0; i < count && i < VERIFY_PRINTED_MAX; i++)
        print_stretch(g, &list[i], out);
    if (count > VERIFY_PRINTED_MAX)
        fputs("  … and more\n", out);
}

bool verify_print_builds(struct store *st, const struct builds *now, bool differs, FILE *out, struct err *e)
{
    struct finding g = {0};
    bool good = find_stretches(&g, st, e);
    if (g.count > 0)
        qsort(g.list, g.count, sizeof *g.list, compare);
    for (size_t i = 0, n; good && i < g.count; i += n) {
        for (n = 1; i + n < g.count && is_same_build(&g.list[i], &g.list[i + n]);)
            n++;
        print_build(&g, &g.list[i], n, now, differs, out);
    }
    free(g.list);
    free(g.partitions);
    return good;
}
