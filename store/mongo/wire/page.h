/* mongo/wire/page.h - a page: some documents of a collection, adjacent by `_id`, that are deleted or changed
 * together.
 *
 * Owner : the caller. It begins with zeros, may find one page after another, and ends with mongo_page_fini().
 */
#pragma once

#include "base/text.h"
#include "store/mongo/wire/client.h"

struct mongo_range {
    const char *collection, *from, *to; /* `_id`s in [from, to) */
    bool behind;                        /* in (from, to) */
    const bson_t *guard;                /* further condition on a document; NULL: none */
};

/* `first` and `last` are set if count > 0. */
struct mongo_page {
    struct text first, last;
    size_t count;
};

/* The first `most` documents of the range. */
bool mongo_page_find(struct mongo_client *c, const struct mongo_range *range, int64_t most,
                     struct mongo_page *p, struct err *e) MUST_CHECK;
/* The filter { _id: { $gte: first, $lte: last } } with the guard; the caller destroys it. */
void mongo_page_filter(const struct mongo_page *p, const bson_t *guard, bson_t *filter);
bool mongo_page_delete(struct mongo_client *c, const struct mongo_range *range, const struct mongo_page *p,
                       int64_t *count, struct err *e) MUST_CHECK;
void mongo_page_fini(struct mongo_page *p);
