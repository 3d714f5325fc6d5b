/* Reads months from the fewest documents: rolled-up months from documents of years, the others from their
 * own. Stamps are read first: so R.year already had what they say when it is read. They are read at most
 * once in SEEN_MS, so a late event may be seen that much later. */
#include "store/mongo/doc/months.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/mongo/doc/read.h"
#include "store/mongo/doc/version_stamps.h"

#include <stdlib.h>

#define SEEN_MS 1000

#define WORTH_MIN 2 /* fewer rolled-up months do not save a document */

struct months {
    struct mongo_store *m;
    const struct scan *scan;
    const struct mongo_version_stamps *stamps;
    scan_fn *fn;
    void *context;
    struct scan_stats *stats;
    struct err *e;
};

/* A year may still have an old value of a month that is not rolled up now. */
static void see_rolled(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    const struct months *s = context;
    if (mongo_is_rolled(s->stamps, bucket_ms))
        s->fn(s->context, series, bucket_ms, values);
}

static bool scan_part(struct months *s, const struct mongo_kind *kind, int64_t from_ms, int64_t to_ms,
                      uint64_t rows_max)
{
    struct scan part = *s->scan;
    part.from_ms = from_ms;
    part.to_ms = to_ms;
    part.rows_max = rows_max;
    const bool of_year = kind == &mongo_year;
    return mongo_scan_from(s->m, (struct mongo_from){.kind = kind}, &part, of_year ? see_rolled : s->fn,
                           of_year ? s : s->context, s->stats, s->e);
}

/* Scans each run of months that are not rolled up. */
static bool scan_others(struct months *s, const struct mongo_kind *kind, uint64_t rows_before)
{
    int64_t at = s->scan->from_ms;
    while (at < s->scan->to_ms) {
        int64_t from_ms = at;
        for (; at < s->scan->to_ms && !mongo_is_rolled(s->stamps, at); at = span_next(SPAN_MONTH, at)) {
        }
        uint64_t left = s->scan->rows_max - (s->stats->rows - rows_before);
        if (from_ms < at && !scan_part(s, kind, from_ms, at, left))
            return false;
        for (; at < s->scan->to_ms && mongo_is_rolled(s->stamps, at); at = span_next(SPAN_MONTH, at)) {
        }
    }
    return true;
}

/* Returns NULL if they could not be read. */
static const struct mongo_version_stamps *see_stamps(struct mongo_store *m, size_t report, struct err *e)
{
    struct mongo_version_stamps **seen = &m->more[report].rolled;
    if (*seen != NULL && clock_mono_ms(m->store.clock) - (*seen)->read_ms < SEEN_MS &&
        (*seen)->read_ms >= m->reader.unrolled.read_ms) /* first what is rolled up, then the stamps of that */
        return *seen;
    if (*seen == NULL)
        *seen = xcalloc(1, sizeof **seen);
    free((*seen)->list);
    if (mongo_read_stamps(m, &mongo_targets[MONGO_YEARS], report, *seen, e))
        return *seen;
    (*seen)->read_ms = -SEEN_MS;
    return NULL;
}

bool mongo_scan_months(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                       struct scan_stats *stats, struct err *e)
{
    struct months s = {.m = m, .scan = scan, .fn = fn, .context = context, .stats = stats, .e = e};
    const struct mongo_kind *kind = mongo_kind_for(&m->reports[scan->report], SPAN_MONTH);
    int64_t first_ms = -1, end_ms = -1;
    uint64_t rows_before = stats->rows;
    size_t count = 0;
    s.stamps = see_stamps(m, scan->report, e);
    bool good = s.stamps != NULL;
    for (size_t i = 0; good && i < s.stamps->count; i++) {
        int64_t at = s.stamps->list[i].start_ms;
        if (at < scan->from_ms || at >= scan->to_ms || !mongo_is_rolled(s.stamps, at))
            continue;
        first_ms = count++ == 0 ? at : first_ms;
        end_ms = span_next(SPAN_MONTH, at);
    }
    if (good && count < WORTH_MIN)
        good = scan_part(&s, kind, scan->from_ms, scan->to_ms, scan->rows_max);
    else if (good)
        good = scan_part(&s, &mongo_year, first_ms, end_ms, scan->rows_max) &&
               scan_others(&s, kind, rows_before);
    return good;
}
