#include "store/backfill.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one batch */

struct backfill_span backfill_span(const struct batch *batch, const struct range *r)
{
    static const struct build_stretches none = {0};
    ASSERT(r->from < r->to);
    struct backfill_span s = {.from = r->from,
                              .to = r->to,
                              .since = -1,
                              .until = -1,
                              .gap_from = -1,
                              .gap_to = -1,
                              .only = {batch->only_from_ms, batch->only_to_ms},
                              .filled_from = -1};
    for (int k = 0; k < BUILD_COUNT; k++)
        (void)builds_after(&none, r, (enum build_kind)k, &s.builds[k]);
    return s;
}

/* Read an entry of offsets of which events of some times were counted. */
static bool scan_filled(const char *entry, int64_t *from, struct backfill_times *times, bool *is_kept)
{
    *is_kept = strncmp(entry, "kept.", strlen("kept.")) == 0;
    return sscanf(entry,
                  *is_kept ? "kept.%" SCNd64 ".%" SCNd64 ".%" SCNd64
                           : "filled.%" SCNd64 ".%" SCNd64 ".%" SCNd64,
                  from, &times->from_ms, &times->to_ms) == 3;
}

/* Events of the same times were counted of [from, to). */
static void read_filled(struct backfill_span *s, int64_t from, int64_t to, bool is_kept)
{
    if (to == s->from && !is_kept)
        s->filled_from = from;
    s->is_filled = s->is_filled || (from < s->to && s->from < to);
}

void backfill_read(struct backfill_span *s, const char *entry, int64_t value)
{
    int64_t from;
    struct backfill_times times;
    struct build_stretch built;
    bool is_kept;
    if (build_read(entry, value, &built)) {
        struct build_stretch *now = &s->builds[built.kind];
        now->from = built.build == now->build && built.to == s->from ? built.from : now->from;
    } else if (scan_filled(entry, &from, &times, &is_kept) && times.from_ms == s->only.from_ms &&
               times.to_ms == s->only.to_ms)
        read_filled(s, from, value, is_kept);
    else if (strcmp(entry, "since") == 0)
        s->since = value;
    else if (strcmp(entry, "until") == 0)
        s->until = value;
    else if (sscanf(entry, "gap.%" SCNd64, &from) == 1 && from <= s->from && s->to <= value) {
        s->gap_from = from;
        s->gap_to = value;
    }
}

static void put(struct backfill_entry *entries, size_t *count, const char *name, int64_t value)
{
    struct backfill_entry *put = &entries[(*count)++];
    ASSERT(*count <= BACKFILL_ENTRIES_MAX);
    snprintf(put->name, sizeof put->name, "%s", name);
    put->value = value;
}

static bool refuse_counted(const struct backfill_span *s, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "the report has counted some of offsets %" PRId64 " to %" PRId64
                   " before: nothing applied",
                   s->from, s->to);
}

/* The events of some times are counted: the offsets still lack others. */
static bool fill_times(const struct backfill_span *s, struct backfill_entry *entries, size_t *count,
                       struct err *e)
{
    char name[STORE_ENTRY_BYTES];
    bool is_open = s->since < 0 || s->gap_from >= 0 || s->to <= s->since || s->from >= s->until;
    if (!is_open || s->is_filled)
        return refuse_counted(s, e);
    snprintf(name, sizeof name, "filled.%" PRId64 ".%" PRId64 ".%" PRId64,
             s->filled_from >= 0 ? s->filled_from : s->from, s->only.from_ms, s->only.to_ms);
    put(entries, count, name, s->to);
    return true;
}

/* The events of any time are counted. */
static bool fill_all(const struct backfill_span *s, struct backfill_entry *entries, size_t *count,
                     struct err *e)
{
    char name[STORE_ENTRY_BYTES];
    if (s->since < 0) {
        put(entries, count, "since", s->from);
        put(entries, count, "until", s->to);
    } else if (s->gap_from >= 0) {
        put(entries, count, store_gap_entry(s->gap_from, name), s->from > s->gap_from ? s->from : -1);
        if (s->to < s->gap_to)
            put(entries, count, store_gap_entry(s->to, name), s->gap_to);
    } else if (s->to <= s->since) {
        put(entries, count, "since", s->from);
        if (s->to < s->since)
            put(entries, count, store_gap_entry(s->to, name), s->since);
    } else if (s->from >= s->until) {
        if (s->from > s->until)
            put(entries, count, store_gap_entry(s->until, name), s->from);
        put(entries, count, "until", s->to);
    } else {
        return refuse_counted(s, e);
    }
    return true;
}

bool backfill_change(const struct backfill_span *s, struct backfill_entry entries[BACKFILL_ENTRIES_MAX],
                     size_t *count, struct err *e)
{
    char name[STORE_ENTRY_BYTES];
    *count = 0;
    bool good =
        backfill_has_all(&s->only) ? fill_all(s, entries, count, e) : fill_times(s, entries, count, e);
    for (int k = 0; good && k < BUILD_COUNT; k++) {
        if (s->builds[k].build != 0)
            put(entries, count, build_entry(&s->builds[k], name), s->to);
    }
    return good;
}

bool backfill_ahead(const struct range *r, struct err *e)
{
    return err_set(e, EX_DATAERR, "%s was not counted up to %" PRId64 ": nothing is there to backfill",
                   r->label, r->to);
}

/* ---- the plan */

/* A report's entries, or those of the source itself, for a position. */
struct noted {
    size_t position;
    int64_t from, to, latest_ms;
    enum { NOTED_SINCE, NOTED_UNTIL, NOTED_GAP, NOTED_LATEST, NOTED_BEGUN, NOTED_OTHER, NOTED_FILLED } kind;
    struct backfill_times times; /* NOTED_FILLED */
};

struct planning {
    struct backfill_plan *plan;
    const char *report;
    struct noted *noted;         /* of all positions */
    const struct noted *present; /* those of the position that is planned */
    size_t present_count, time_count, time_capacity;
    int64_t begun;     /* of the position that is planned: the first offset counted at all */
    int64_t newest_ms; /* the latest_ms of the position that was counted last */
    bool counts_some;
    size_t count, capacity, position_capacity, stretch_capacity;
};

static bool take_position(void *context, const struct position *p)
{
    struct planning *g = context;
    struct backfill_plan *plan = g->plan;
    plan->positions =
        xgrow(plan->positions, &g->position_capacity, plan->position_count + 1, sizeof *plan->positions);
    plan->positions[plan->position_count++] = *p;
    return true;
}

static int compare_positions(const void *a, const void *b)
{
    const struct position *x = a, *y = b;
    int order = strcmp(x->range.source, y->range.source);
    return order != 0 ? order : strcmp(x->range.partition, y->range.partition);
}

/* Read an entry of the source itself. False: it says nothing of offsets. */
static bool read_source_entry(const char *entry, struct noted *n)
{
    n->kind = strcmp(entry, "since") == 0 ? NOTED_BEGUN : NOTED_LATEST;
    return n->kind == NOTED_BEGUN ||
           sscanf(entry, "latest.%" SCNd64 ".%" SCNd64, &n->from, &n->latest_ms) == 2;
}

/* Read an entry of a report, which is the one that is planned unless `is_other`. */
static bool read_report_entry(bool is_other, const char *entry, struct noted *n)
{
    bool is_kept;
    if (is_other) {
        n->kind = NOTED_OTHER;
        return strcmp(entry, "since") == 0;
    }
    n->kind = NOTED_FILLED;
    if (scan_filled(entry, &n->from, &n->times, &is_kept))
        return true;
    n->kind = strcmp(entry, "since") == 0   ? NOTED_SINCE
              : strcmp(entry, "until") == 0 ? NOTED_UNTIL
                                            : NOTED_GAP;
    return n->kind != NOTED_GAP || sscanf(entry, "gap.%" SCNd64, &n->from) == 1;
}

static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct planning *g = context;
    struct backfill_plan *plan = g->plan;
    struct position key;
    struct noted n = {.to = value};
    if (source[0] == '\0' && strcmp(report, g->report) == 0 && strcmp(entry, "other") == 0)
        plan->others = value;
    if (!(report[0] == '\0' ? read_source_entry(entry, &n)
                            : read_report_entry(strcmp(report, g->report) != 0, entry, &n)))
        return true;
    snprintf(key.range.source, sizeof key.range.source, "%s", source);
    snprintf(key.range.partition, sizeof key.range.partition, "%s", partition);
    const struct position *p =
        plan->position_count == 0
            ? NULL
            : bsearch(&key, plan->positions, plan->position_count, sizeof key, compare_positions);
    if (p == NULL)
        return true;
    n.position = (size_t)(p - plan->positions);
    g->noted = xgrow(g->noted, &g->capacity, g->count + 1, sizeof *g->noted);
    g->noted[g->count++] = n;
    return true;
}

static int compare_noted(const void *a, const void *b)
{
    const struct noted *x = a, *y = b;
    int order = order_int64((int64_t)x->position, (int64_t)y->position);
    return order != 0 ? order : order_int64(x->from, y->from);
}

/* The first offset within (from, to) at which a piece must end: the source begins there, or events of some
 * times were counted from or up to there. `to` if there is none. */
static int64_t piece_end(const struct planning *g, int64_t from, int64_t to)
{
    int64_t end = from < g->begun && g->begun < to ? g->begun : to;
    for (size_t i = 0; i < g->present_count; i++) {
        const struct noted *n = &g->present[i];
        if (n->kind == NOTED_FILLED && from < n->from && n->from < end)
            end = n->from;
        if (n->kind == NOTED_FILLED && from < n->to && n->to < end)
            end = n->to;
    }
    return end;
}

/* Do the times have all of `only` together? */
static bool have_all(const struct backfill_times *times, size_t count, const struct backfill_times *only)
{
    int64_t at_ms = only->from_ms, end_ms = backfill_has_all(only) ? CIVIL_END_MS : only->to_ms;
    for (size_t i = 0; i < count;) {
        if (times[i].from_ms <= at_ms && at_ms < times[i].to_ms) {
            at_ms = times[i].to_ms;
            i = 0;
        } else {
            i++;
        }
    }
    return at_ms >= end_ms;
}

/* Note the times of which all events of [from, to) were counted. False: none are left that are wanted. */
static bool add_times(struct planning *g, struct backfill_stretch *s)
{
    struct backfill_plan *plan = g->plan;
    for (size_t i = 0; i < g->present_count; i++) {
        const struct noted *n = &g->present[i];
        if (n->kind != NOTED_FILLED || n->from > s->from || n->to < s->to)
            continue;
        size_t count = s->without + s->without_count + 1;
        plan->times = xgrow(plan->times, &g->time_capacity, count, sizeof *plan->times);
        plan->times[count - 1] = n->times;
        s->without_count++;
    }
    return s->without_count == 0 || !have_all(&plan->times[s->without], s->without_count, &plan->only);
}

static void add_piece(struct planning *g, size_t position, int64_t from, int64_t to, int64_t latest_ms)
{
    struct backfill_plan *plan = g->plan;
    for (int64_t end; from < to; from = end) {
        end = piece_end(g, from, to);
        struct backfill_stretch s = {.position = position,
                                     .from = from,
                                     .to = end,
                                     .latest_ms = latest_ms,
                                     .begun = end <= g->begun ? g->begun : 0,
                                     .without = g->time_count};
        if (!add_times(g, &s))
            continue;
        g->time_count += s.without_count;
        plan->stretches =
            xgrow(plan->stretches, &g->stretch_capacity, plan->stretch_count + 1, sizeof *plan->stretches);
        plan->stretches[plan->stretch_count++] = s;
    }
}

/* Add uncounted offsets, in a piece for each part of them that has one latest time. */
static void add_stretch(struct planning *g, const struct noted *noted, size_t count, size_t position,
                        int64_t from, int64_t to)
{
    for (size_t i = 0; i < count; i++) {
        const struct noted *n = &noted[i];
        if (n->kind != NOTED_LATEST || n->to <= from || n->from >= to)
            continue;
        int64_t end = n->to < to ? n->to : to;
        add_piece(g, position, from, n->from, INT64_MAX);
        add_piece(g, position, from > n->from ? from : n->from, end, n->latest_ms);
        from = end;
    }
    add_piece(g, position, from, to, INT64_MAX);
}

/* The first offset of a partition that was counted at all. Stores of older versions did not note it; there it
 * is the first that any report counted. A file was counted from its beginning. */
static int64_t first_counted(const struct range *r, const struct noted *noted, size_t count)
{
    int64_t first = r->to;
    if (r->partition[0] == '\0')
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (noted[i].kind == NOTED_BEGUN)
            return noted[i].to;
        if ((noted[i].kind == NOTED_SINCE || noted[i].kind == NOTED_OTHER) && noted[i].to < first)
            first = noted[i].to;
    }
    return first;
}

/* Note whether the report counted the end of the position, if that was counted last. */
static void note_end(struct planning *g, size_t position, int64_t since, int64_t until)
{
    const struct range *r = &g->plan->positions[position].range;
    g->counts_some |= since >= 0;
    if (r->latest_ms < g->newest_ms)
        return;
    /* If one batch counted several, the answer may come from any of them. */
    g->plan->is_behind = until < r->to && (r->latest_ms > g->newest_ms || g->plan->is_behind);
    g->newest_ms = r->latest_ms;
}

/* Plan a position, of whose entries `noted` has `count`, by offset. */
static void plan_position(struct planning *g, size_t position, const struct noted *noted, size_t count)
{
    const int64_t end = g->plan->positions[position].range.to;
    int64_t since = -1, until = -1;
    g->present = noted;
    g->present_count = count;
    g->begun = first_counted(&g->plan->positions[position].range, noted, count);
    for (size_t i = 0; i < count; i++) {
        if (noted[i].kind == NOTED_SINCE)
            since = noted[i].to;
        if (noted[i].kind == NOTED_UNTIL)
            until = noted[i].to;
    }
    note_end(g, position, since, until);
    add_stretch(g, noted, count, position, 0, since < 0 ? end : since);
    for (size_t i = 0; since >= 0 && i < count; i++) {
        if (noted[i].kind == NOTED_GAP)
            add_stretch(g, noted, count, position, noted[i].from, noted[i].to);
    }
    if (since >= 0)
        add_stretch(g, noted, count, position, until, end);
}

bool backfill_plan(struct backfill_plan *plan, struct store *st, size_t report,
                   const struct backfill_times *only, struct err *e)
{
    struct planning g = {.plan = plan, .report = st->reports[report].name};
    *plan = (struct backfill_plan){0};
    if (only != NULL)
        plan->only = *only;
    if (!store_positions(st, take_position, &g, e))
        return false;
    if (plan->position_count > 0)
        qsort(plan->positions, plan->position_count, sizeof *plan->positions, compare_positions);
    bool good = (st->writer == NULL || store_settle(st, e)) && store_books(st, take_book, &g, e);
    if (g.count > 0)
        qsort(g.noted, g.count, sizeof *g.noted, compare_noted);
    for (size_t p = 0, i = 0; good && p < plan->position_count; p++) {
        size_t first = i;
        while (i < g.count && g.noted[i].position == p)
            i++;
        plan_position(&g, p, g.count > 0 ? g.noted + first : NULL, i - first);
    }
    plan->is_behind = plan->is_behind && g.counts_some;
    free(g.noted);
    return good;
}

bool backfill_lacks(const struct backfill_plan *plan, const struct backfill_plan *old, bool whole,
                    struct backfill_stretch *found)
{
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        int64_t at = s->from;
        /* Both lists are sorted by position and offset. */
        for (size_t k = 0; k < old->stretch_count; k++) {
            const struct backfill_stretch *o = &old->stretches[k];
            if (o->position == s->position && (whole || o->without_count == 0) && o->from <= at && at < o->to)
                at = o->to;
        }
        *found = *s;
        found->from = at;
        if (at < s->to)
            return true;
    }
    return false;
}

bool backfill_refuse(const struct backfill_plan *plan, const struct backfill_stretch *lacking,
                     const char *name, const char *other, const char *hint, struct err *e)
{
    const struct range *range = &plan->positions[lacking->position].range;
    const bool is_topic = range->partition[0] != '\0';
    char from[UNITS_NUMBER_BYTES], to[UNITS_NUMBER_BYTES];
    return err_set(e, EX_NOINPUT, "%s lacks %s%s%s, offsets %s to %s, which %s counted: %s", name,
                   is_topic ? range->source : range->label, is_topic ? "/" : "", range->partition,
                   units_number(lacking->from, from), units_number(lacking->to, to), other, hint);
}

bool backfill_each_only_of(const struct backfill_plan *plan, const struct backfill_plan *old,
                           backfill_kept_fn *fn, void *context)
{
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        int64_t at = s->from;
        for (size_t k = 0; k < old->stretch_count && at < s->to; k++) {
            const struct backfill_stretch *o = &old->stretches[k];
            if (o->position != s->position || o->to <= at || o->from >= s->to)
                continue;
            if (o->without_count > 0)
                return false;
            if (at < o->from)
                fn(context, s->position, at, o->from);
            at = o->to;
        }
        if (at < s->to)
            fn(context, s->position, at, s->to);
    }
    return true;
}

struct backfill_filter backfill_filter(const struct backfill_plan *plan, const struct backfill_stretch *s)
{
    return (struct backfill_filter){plan->only, s->without_count > 0 ? &plan->times[s->without] : NULL,
                                    s->without_count};
}

void backfill_plan_fini(struct backfill_plan *plan)
{
    free(plan->positions);
    free(plan->stretches);
    free(plan->times);
    *plan = (struct backfill_plan){0};
}
