/* The indexes of a report's documents:
 *
 *   { metadata.path: 1, metadata.date: 1 }   one series over a range of dates; equality before range
 *   { waiting: 1 }                           of R.top: rankings that wait
 *
 * Documents of all series are found by `_id`, which begins with the time. At start, missing indexes are
 * made, unless store.indexes is false. A different index of the same name is the operator's choice: it is
 * logged, and left alone.
 */
#include "store/mongo/catalog/index.h"

#include "base/log.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/wire/index.h"

static bool create(void *context, const struct mongo_collection *c, struct err *e)
{
    struct mongo_store *m = context;
    char quoted[LOG_QUOTE_BYTES];
    enum mongo_index state = INDEX_IS_THERE;
    bson_t key;
    const char *name = mongo_index_key(m, c, &key);
    const struct mongo_index_wanted wanted = {.collection = c->name, .name = name, .key = &key};
    bool good = name == NULL || mongo_create_index(m->client, &wanted, &state, e);
    if (good && state == INDEX_DIFFERS)
        log_warn("index_differs", "collection=%s error=%s next=\"left alone\"", c->name,
                 log_quote(e->text, quoted));
    bson_destroy(&key);
    return good;
}

bool mongo_create_indexes(struct mongo_store *m, struct err *e)
{
    return mongo_each_collection(m, create, m, e);
}
