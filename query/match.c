#include "query/match.h"

#include "aggregate/dimension.h"
#include "base/mem.h"

#include <stdlib.h>

struct search {
    struct match *match;
    const struct series_wanted *wanted;
    size_t dimension_count, words;
};

static bool matches(const struct search *s, struct slice key)
{
    struct slice texts[REPORT_DIMENSIONS_MAX];
    const struct series_wanted *w = s->wanted;
    for (size_t d = 0; d < s->dimension_count; d++) {
        texts[d] = slice_is(key, STORE_OTHER_KEY) ? key : dimension_next(&key);
        if (w->values[d].ptr != NULL && !slice_equal(texts[d], w->values[d]))
            return false;
    }
    for (size_t i = 0; i < w->where_count; i++) {
        if (!where_holds(&w->where[i], texts[w->where[i].dimension]))
            return false;
    }
    return true;
}

static bool look_at(void *context, uint32_t series, struct slice key)
{
    struct search *s = context;
    if (!matches(s, key))
        return true;
    size_t known = s->words, word = series / 64;
    s->match->bits = xgrow(s->match->bits, &s->words, word + 1, sizeof *s->match->bits);
    memset(s->match->bits + known, 0, (s->words - known) * sizeof *s->match->bits);
    s->match->bits[word] |= (uint64_t)1 << series % 64;
    s->match->set.one = series;
    s->match->count++;
    return true;
}

static bool match_some(struct match *m, struct store *st, size_t report, const struct series_wanted *wanted,
                       struct err *e)
{
    struct search s = {m, wanted, st->reports[report].dimension_count, 0};
    look_at(&s, STORE_SERIES_OTHER, slice_text(STORE_OTHER_KEY));
    if (!store_series_like(st, report, wanted->values, look_at, &s, e))
        return false;
    m->set.kind = m->count == 1 ? SERIES_ONE : SERIES_SET;
    m->set.bits = m->bits;
    m->set.bits_max = (uint32_t)s.words * 64;
    return true;
}

static bool match_one(struct match *m, struct store *st, size_t report, const struct slice *values,
                      struct err *e)
{
    struct text key = {0};
    bool found;
    for (size_t d = 0; d < st->reports[report].dimension_count; d++) {
        if (d > 0)
            text_putc(&key, DIMENSION_SEPARATOR);
        text_add(&key, values[d].ptr, values[d].len);
    }
    bool good = store_series_find(st, report, text_slice(&key), &m->set.one, &found, e);
    text_fini(&key);
    m->set.kind = SERIES_ONE;
    m->count = good && found;
    return good;
}

/* Are all values that are given those of the series `other`? No event has such a value: dimension.h
 * escapes it. */
static bool is_other(const struct slice *values, size_t dimensions)
{
    size_t d = 0;
    while (d < dimensions && (values[d].ptr == NULL || slice_is(values[d], STORE_OTHER_KEY)))
        d++;
    return d == dimensions;
}

bool match_series(struct match *m, struct store *st, size_t report, const struct series_wanted *wanted,
                  struct err *e)
{
    size_t given = 0, dimensions = st->reports[report].dimension_count;
    for (size_t d = 0; d < dimensions; d++)
        given += wanted->values[d].ptr != NULL;
    *m = (struct match){.set = {.kind = SERIES_ALL}};
    if (wanted->where_count > 0)
        return match_some(m, st, report, wanted, e);
    if (given == 0)
        return true;
    if (is_other(wanted->values, dimensions)) {
        m->set = (struct series_set){.kind = SERIES_ONE, .one = STORE_SERIES_OTHER};
        m->count = 1;
        return true;
    }
    return given == dimensions ? match_one(m, st, report, wanted->values, e)
                               : match_some(m, st, report, wanted, e);
}

void match_fini(struct match *m)
{
    free(m->bits);
    *m = (struct match){0};
}
