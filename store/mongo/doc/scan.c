/* Scans from the documents that hold the buckets. A scan fails if its range has expired meanwhile. */
#include "store/mongo/doc/scan.h"

#include "store/common/watermarks.h"
#include "store/mongo/doc/longer.h"
#include "store/mongo/doc/read.h"
#include "store/mongo/doc/watermarks.h"

/* Called after the scan: a deletion meanwhile comes after its watermark has been known for long enough. */
static bool check_watermarks(struct mongo_store *m, const struct scan *scan, struct err *e)
{
    struct watermarks gone;
    return mongo_watermarks(&m->store, scan->report, &gone, e) && store_check_watermark(scan, &gone, e);
}

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
    bool good = !reads_plain(m, scan) || mongo_scan_plain(m, scan, fn, context, stats, e);
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
