#include "prom/select.h"

#include "aggregate/dimension.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct walk {
    const struct select *select;
    const struct report *report;
    struct names names;
    struct match *match;
    size_t words;
    bool has_le;
    bool good;
    struct err *e;
};

static bool test(const struct select *s, size_t i, struct slice value, bool *matches, struct err *e)
{
    const struct matcher *m = &s->selector->matchers[i];
    bool is_negative = m->kind == MATCHER_NOT_EQUAL || m->kind == MATCHER_NOT_REGEX;
    bool found = slice_equal(value, m->value);
    if (s->regexes[i] != NULL && !regex_matches(s->regexes[i], value, s->budget, &found, e))
        return false;
    *matches = found != is_negative;
    return true;
}

/* Does the matcher tell metrics apart, or buckets of one series? */
static bool is_of_metric(const struct walk *w, const struct matcher *m)
{
    return slice_is(m->name, METRIC_LABEL) || (w->has_le && slice_is(m->name, BUCKET_LABEL));
}

bool select_init(struct select *s, const struct selector *selector, struct budget *b, struct err *e)
{
    bool is_specific = false;
    *s = (struct select){
        .selector = selector, .budget = b, .regexes = xcalloc(selector->matcher_count, sizeof *s->regexes)};
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *m = &selector->matchers[i];
        bool is_regex = m->kind == MATCHER_REGEX || m->kind == MATCHER_NOT_REGEX, takes_empty;
        if (is_regex && (s->regexes[i] = regex_new(m->value, e)) == NULL)
            return false;
        if (!test(s, i, slice_of("", 0), &takes_empty, e))
            return false;
        is_specific |= !takes_empty;
    }
    return is_specific || err_set(e, EX_PROTOCOL,
                                  "a selector needs one matcher that does not take the empty text: name a "
                                  "metric");
}

void select_fini(struct select *s)
{
    for (size_t i = 0; i < s->selector->matcher_count; i++)
        regex_free(s->regexes[i]);
    free(s->regexes);
    match_fini(&s->match);
    *s = (struct select){0};
}

bool select_label(const struct select *s, const char *label, struct slice value, bool *matches, struct err *e)
{
    *matches = true;
    for (size_t i = 0; *matches && i < s->selector->matcher_count; i++) {
        if (slice_is(s->selector->matchers[i].name, label) && !test(s, i, value, matches, e))
            return false;
    }
    return true;
}

/* Is the metric's name given by `=`? */
static bool is_named(const struct select *s, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < s->selector->matcher_count; i++) {
        const struct matcher *m = &s->selector->matchers[i];
        is |= m->kind == MATCHER_EQUAL && slice_is(m->name, METRIC_LABEL) && slice_is(m->value, name);
    }
    return is;
}

bool select_metric(const struct select *s, const struct report *r, struct metric *m, bool *matches,
                   struct err *e)
{
    if (!select_label(s, METRIC_LABEL, slice_text(m->name), matches, e))
        return false;
    if (*matches || !names_has_alias(r) || !is_named(s, r->name))
        return true;
    snprintf(m->name, sizeof m->name, "%s", r->name);
    return select_label(s, METRIC_LABEL, slice_text(m->name), matches, e);
}

static bool test_key(struct walk *w, struct slice key, bool *matches)
{
    struct slice values[REPORT_DIMENSIONS_MAX], other = slice_text(STORE_OTHER_KEY);
    bool is_other = slice_equal(key, other);
    for (size_t d = 0; d < w->report->dimension_count; d++)
        values[d] = is_other ? other : dimension_next(&key);
    *matches = true;
    for (size_t i = 0; *matches && i < w->select->selector->matcher_count; i++) {
        const struct matcher *m = &w->select->selector->matchers[i];
        if (is_of_metric(w, m))
            continue;
        int d = names_find(w->report, &w->names, m->name);
        if (!test(w->select, i, d >= 0 ? values[d] : slice_of("", 0), matches, w->e))
            return false;
    }
    return true;
}

static bool look_at(void *context, uint32_t series, struct slice key)
{
    struct walk *w = context;
    bool matches;
    w->good = budget_take(w->select->budget, BUDGET_NAMES, 1, w->e) && test_key(w, key, &matches);
    if (!w->good || !matches)
        return w->good;
    size_t known = w->words, word = series / 64;
    w->match->bits = xgrow(w->match->bits, &w->words, word + 1, sizeof *w->match->bits);
    memset(w->match->bits + known, 0, (w->words - known) * sizeof *w->match->bits);
    w->match->bits[word] |= (uint64_t)1 << series % 64;
    w->match->count++;
    return true;
}

static bool walk(struct walk *w, struct store *st, size_t report, const struct slice *values)
{
    w->good = true;
    look_at(w, STORE_SERIES_OTHER, slice_text(STORE_OTHER_KEY));
    if (!w->good || !store_series_like(st, report, values, look_at, w, w->e))
        return false;
    w->match->set =
        (struct series_set){.kind = SERIES_SET, .bits = w->match->bits, .bits_max = (uint32_t)w->words * 64};
    return w->good;
}

/* Is every dimension given by `=`, once, or none given at all? Sets `values` of those given by `=` in any
 * case. */
static bool is_simple(const struct walk *w, struct slice *values)
{
    size_t given = 0;
    bool others = false;
    for (size_t i = 0; i < w->select->selector->matcher_count; i++) {
        const struct matcher *m = &w->select->selector->matchers[i];
        const bool takes_all = m->kind == MATCHER_REGEX && slice_is(m->value, ".*");
        if (is_of_metric(w, m) || takes_all)
            continue;
        int d = names_find(w->report, &w->names, m->name);
        if (d < 0 || m->kind != MATCHER_EQUAL || values[d].ptr != NULL || m->value.len == 0 ||
            slice_is(m->value, STORE_OTHER_KEY)) {
            others = true;
            continue;
        }
        values[d] = m->value;
        given++;
    }
    return !others && (given == 0 || given == w->report->dimension_count);
}

const struct match *select_series(struct select *s, struct store *st, size_t report, bool has_le,
                                  struct err *e)
{
    struct series_wanted wanted = {0};
    struct walk w = {
        .select = s, .report = &st->reports[report], .match = &s->match, .has_le = has_le, .e = e};
    if (s->matched == report + 1 && s->has_le == has_le)
        return &s->match;
    match_fini(&s->match);
    s->matched = 0;
    names_of(w.report, &w.names);
    if (!(is_simple(&w, wanted.values) ? match_series(&s->match, st, report, &wanted, e)
                                       : walk(&w, st, report, wanted.values)))
        return NULL;
    s->matched = report + 1;
    s->has_le = has_le;
    return &s->match;
}

struct labels select_labels(const struct report *r, const struct names *names, struct slice metric,
                            struct slice key, struct arena *arena)
{
    struct label *list = arena_add(arena, (r->dimension_count + 1) * sizeof *list);
    bool is_other = slice_is(key, STORE_OTHER_KEY);
    struct slice rest = arena_copy(arena, key);
    size_t count = 0;
    if (metric.len > 0)
        list[count++] = (struct label){slice_text(METRIC_LABEL), metric};
    for (size_t d = 0; d < r->dimension_count; d++)
        list[count++] = (struct label){slice_text(names->labels[d]),
                                       is_other ? slice_text(STORE_OTHER_KEY) : dimension_next(&rest)};
    return labels_sorted(list, count);
}
