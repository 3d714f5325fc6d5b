/* mongo/wire/page.h - some documents of a collection, one `_id` after the other, deleted or changed together.
 *
 * Owner : who finds a page ends it; it may be found anew before that.
 */
#pragma once

#include "base/text.h"
#include "store/mongo/wire/client.h"

struct mongo_range {
    const char *collection, *from, *to; /* before `to` */
    bool behind;                        /* not `from` itself */
    const bson_t *guard;                /* what else a document must have; NULL: nothing */
};

/* `first` and `last` are texts if there is any. */
struct mongo_page {
    struct text first, last;
    size_t count;
};

/* The first `most` of them. */
bool mongo_page_find(struct mongo_client *c, const struct mongo_range *range, int64_t most,
                     struct mongo_page *p, struct err *e);
/* { _id: { $gte: first, $lte: last } } and the guard; the caller destroys it. */
void mongo_page_filter(const struct mongo_page *p, const bson_t *guard, bson_t *filter);
bool mongo_page_delete(struct mongo_client *c, const struct mongo_range *range, const struct mongo_page *p,
                       int64_t *count, struct err *e);
void mongo_page_fini(struct mongo_page *p);
