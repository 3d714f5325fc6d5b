/* Scans from the documents that hold the buckets. A scan fails if its range has expired meanwhile. */
#include "store/mongo/doc/scan.h"

#include "store/common/watermarks.h"
#include "store/mongo/doc/months.h"
#include "store/mongo/doc/read.h"
#include "store/mongo/doc/watermarks.h"

/* Called after the scan: a deletion meanwhile comes after its watermark has been known for long enough. */
static bool check_watermarks(struct mongo_store *m, const struct scan *scan, struct err *e)
{
    struct watermarks gone;
    return mongo_watermarks(&m->store, scan->report, &gone, e) && store_check_watermark(scan, &gone, e);
}

bool mongo_scan_keys(struct mongo_store *m, const struct scan *scan, mongo_key_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e)
{
    const struct mongo_kind *kind = mongo_kind_for(&m->reports[scan->report], scan->resolution);
    return mongo_read_keys(m, kind, scan, fn, context, stats, e) && check_watermarks(m, scan, e);
}

bool mongo_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const struct mongo_kind *kind = mongo_kind_for(&m->reports[scan->report], scan->resolution);
    bool of_months = scan->resolution == SPAN_MONTH && span_next(SPAN_MONTH, scan->from_ms) < scan->to_ms;
    bool good = of_months ? mongo_scan_months(m, scan, fn, context, stats, e)
                          : mongo_scan_kind(m, kind, scan, fn, context, stats, e);
    return good && check_watermarks(m, scan, e);
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
    const struct mongo_kind *kind = mongo_copy_kind(&m->reports[scan->report], scan->resolution, n);
    return mongo_scan_kind(m, kind, scan, fn, context, stats, e) && check_watermarks(m, scan, e);
}
