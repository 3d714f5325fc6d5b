/* Scans from the documents that hold the buckets. A scan fails if its range has expired meanwhile. */
#include "store/mongo/doc/scan.h"

#include "store/common/watermarks.h"
#include "store/mongo/doc/months.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/doc/watermarks.h"

/* Called after the scan: a deletion meanwhile comes after its watermark has been known for long enough. */
static bool check_watermarks(struct mongo_store *m, const struct scan *scan, struct err *e)
{
    struct watermarks gone;
    return mongo_watermarks(&m->store, scan->report, &gone, e) && store_check_watermark(scan, &gone, e);
}

/* ---- measures without a sketch */

struct longer {
    struct mongo_store *m;
    const struct scan *scan;
    const struct mongo_kind *fine; /* the shortest documents */
    const struct mongo_unrolled_seen *unrolled;
    int64_t fine_from_ms; /* earlier fine documents have expired */
    int64_t read_from_ms; /* begin of the first fine document that was read for longer ones */
    scan_fn *fn;
    void *context;
    struct scan_stats *stats;
    uint64_t rows_before;
    struct err *e;
};

/* Adds a shorter bucket to the one that is asked for. */
static void see_shorter(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    const struct longer *l = context;
    l->fn(l->context, series, span_floor(l->scan->resolution, bucket_ms), values);
}

/* Do longer documents lack anything of it that shorter ones have? */
static bool is_lacking(const struct longer *l, int64_t from_ms, int64_t to_ms)
{
    return to_ms > l->fine_from_ms &&
           mongo_is_unrolled(l->unrolled, l->fine->span,
                             from_ms > l->fine_from_ms ? from_ms : l->fine_from_ms, to_ms);
}

static bool scan_kind(struct longer *l, const struct mongo_kind *kind, enum span resolution, int64_t from_ms,
                      int64_t to_ms)
{
    struct scan part = *l->scan;
    part.resolution = resolution;
    part.from_ms = from_ms;
    part.to_ms = to_ms;
    part.rows_max = l->scan->rows_max - (l->stats->rows - l->rows_before);
    if (kind == mongo_kind_for(&l->m->reports[part.report], SPAN_MONTH) && resolution == SPAN_MONTH &&
        span_next(SPAN_MONTH, from_ms) < to_ms)
        return mongo_scan_months(l->m, &part, see_shorter, l, l->stats, l->e);
    return mongo_scan_from(l->m, (struct mongo_from){.kind = kind}, &part, see_shorter, l, l->stats, l->e);
}

static bool scan_at(struct longer *l, enum span resolution, int64_t from_ms, int64_t to_ms);

/* Scans a run of buckets of which longer documents lack something. */
static bool scan_shorter(struct longer *l, enum span resolution, int64_t from_ms, int64_t to_ms)
{
    if (resolution > l->fine->span)
        return scan_at(l, (enum span)(resolution - 1), from_ms, to_ms);
    l->read_from_ms = from_ms < l->read_from_ms ? from_ms : l->read_from_ms;
    return scan_kind(l, l->fine, resolution, from_ms, to_ms);
}

/* Scans runs of periods of which longer documents lack something, and the runs between them. */
static bool scan_at(struct longer *l, enum span resolution, int64_t from_ms, int64_t to_ms)
{
    const struct mongo_kind *kind = mongo_kind_for(&l->m->reports[l->scan->report], resolution);
    bool good = true;
    if (kind == l->fine || !is_lacking(l, from_ms, to_ms))
        return scan_kind(l, kind, resolution, from_ms, to_ms);
    for (int64_t at = from_ms; good && at < to_ms;) {
        const int64_t run_ms = at;
        const bool lacks = is_lacking(l, at, span_next(resolution, at));
        do
            at = span_next(resolution, at);
        while (at < to_ms && is_lacking(l, at, span_next(resolution, at)) == lacks);
        at = at < to_ms ? at : to_ms;
        good = lacks ? scan_shorter(l, resolution, run_ms, at) : scan_kind(l, kind, resolution, run_ms, at);
    }
    return good;
}

/* Fine documents may have expired while they were read. */
static bool look_again(const struct longer *l)
{
    struct scan read = *l->scan;
    read.resolution = mongo_longest(&l->m->reports[read.report], l->fine);
    read.from_ms = l->read_from_ms;
    return l->read_from_ms == INT64_MAX || check_watermarks(l->m, &read, l->e);
}

/* Scans the measures without a sketch from the fewest documents that have every done batch: what longer
 * documents lack (mongo/doc/unrolled.h) is read from shorter ones, as long as these have not expired. A
 * bucket may come in parts, which are to be merged. */
static bool scan_plain(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                       struct scan_stats *stats, struct err *e)
{
    const struct report *r = &m->reports[scan->report];
    struct watermarks gone;
    struct longer l = {.m = m,
                       .scan = scan,
                       .fine = mongo_kinds(r, NULL),
                       .fn = fn,
                       .context = context,
                       .stats = stats,
                       .read_from_ms = INT64_MAX,
                       .rows_before = stats->rows,
                       .e = e};
    if (mongo_kind_for(r, scan->resolution) == l.fine)
        return mongo_scan_from(m, (struct mongo_from){.kind = l.fine}, scan, fn, context, stats, e);
    l.unrolled = mongo_see_unrolled(m, e);
    if (l.unrolled == NULL || !mongo_watermarks(&m->store, scan->report, &gone, e))
        return false;
    l.fine_from_ms = gone.before_ms[mongo_longest(r, l.fine)];
    return scan_at(&l, scan->resolution, scan->from_ms, scan->to_ms) && look_again(&l);
}

/* ---- scans */

/* Has a scan measures that the usual documents hold? */
static bool reads_plain(const struct mongo_store *m, const struct scan *scan)
{
    const uint32_t plain = mongo_plain_measures(&m->reports[scan->report]);
    return (scan->measures == 0 ? plain : scan->measures & plain) != 0;
}

/* Scans the documents of each wanted sketch. */
static bool scan_each_sketch(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                             struct scan_stats *stats, uint64_t rows_before, struct err *e)
{
    const struct report *r = &m->reports[scan->report];
    for (size_t i = 0; i < r->sketch_count; i++) {
        struct scan part = *scan;
        part.rows_max = scan->rows_max - (stats->rows - rows_before);
        if ((scan->measures == 0 || (scan->measures >> r->sketched[i] & 1)) &&
            !mongo_scan_from(m, mongo_from_sketch(r, i, scan->resolution), &part, fn, context, stats, e))
            return false;
    }
    return true;
}

bool mongo_scan_keys(struct mongo_store *m, struct mongo_from from, const struct scan *scan, mongo_key_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e)
{
    return mongo_read_keys(m, from, scan, fn, context, stats, e) && check_watermarks(m, scan, e);
}

bool mongo_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const uint64_t rows_before = stats->rows;
    bool good = !reads_plain(m, scan) || scan_plain(m, scan, fn, context, stats, e);
    return good && scan_each_sketch(m, scan, fn, context, stats, rows_before, e) &&
           check_watermarks(m, scan, e);
}

static void see_nothing(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    (void)context, (void)series, (void)bucket_ms, (void)values;
}

bool mongo_recent(struct store *st, const struct scan *scan, void *context, struct scan_stats *stats,
                  struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const struct report *r = &m->reports[scan->report];
    return mongo_scan_from(m, mongo_from_sketch(r, r->sketch_count, scan->resolution), scan, see_nothing,
                           context, stats, e) &&
           check_watermarks(m, scan, e);
}

enum span mongo_copy(const struct store *st, size_t report, enum span resolution, size_t n)
{
    const struct mongo_kind *kind = mongo_copy_kind(&st->reports[report], resolution, n);
    return kind == NULL ? SPAN_COUNT : mongo_longest(&st->reports[report], kind);
}

bool mongo_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const struct mongo_from from = {.kind = mongo_copy_kind(&m->reports[scan->report], scan->resolution, n)};
    return mongo_scan_from(m, from, scan, fn, context, stats, e) && check_watermarks(m, scan, e);
}
