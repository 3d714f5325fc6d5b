/* buckets.h - shared by buckets.c and buckets_recent.c, which compare a report with its recount. */
#pragma once

#include "verify/verify.h"

#define KEPT_MAX 2 /* before and after the report's own times */

/* Times whose counts are of another generation of the report, and are not judged (store/splice.h). */
struct kept_times {
    const char *report; /* its name */
    struct backfill_times list[KEPT_MAX];
    size_t count;
};

/* Does the time bucket have counts of another generation? */
bool kept_has(const struct kept_times *kept, enum span resolution, int64_t bucket_ms);

/* Compare the newest events, if the report keeps some. `number_of`: the numbers of series in the recount, by
 * those in the store. */
bool verify_recent(struct verify *v, size_t report, const struct kept_times *kept, const uint32_t *number_of,
                   uint32_t number_count, struct err *e) MUST_CHECK;
