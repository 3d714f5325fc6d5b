/* The index of the documents of a report:
 *
 *   { metadata.path: 1, metadata.date: 1 }   one series over a range of dates; equality before range
 *
 * Documents of all series are found by `_id`, which begins with the time. The index is made at start where it
 * is missing. Another one of the same name is somebody's choice: told, and left alone. */
#include "base/log.h"
#include "store/mongo_internal.h"

#include <stdio.h>

#define INDEX                  "tallyd_series_date"
#define CODE_OPTIONS_CONFLICT  85
#define CODE_KEY_SPEC_CONFLICT 86

static bool create(struct mongo_store *m, size_t report, const char *kind, struct err *e)
{
    char collection[MONGO_NAME_BYTES];
    bson_t command, indexes, one, key, reply;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "createIndexes", mongo_collection(m, report, kind, collection));
    BSON_APPEND_ARRAY_BEGIN(&command, "indexes", &indexes);
    BSON_APPEND_DOCUMENT_BEGIN(&indexes, "0", &one);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "key", &key);
    for (size_t d = 0; d < m->reports[report].dimension_count; d++)
        BSON_APPEND_INT32(&key, m->more[report].dimensions[d], 1);
    BSON_APPEND_INT32(&key, "metadata.date", 1);
    bson_append_document_end(&one, &key);
    BSON_APPEND_UTF8(&one, "name", INDEX);
    bson_append_document_end(&indexes, &one);
    bson_append_array_end(&command, &indexes);
    bool good = mongo_write(m->client, &command, &reply, e);
    bson_iter_t code;
    if (!good && bson_iter_init_find(&code, &reply, "code") &&
        (bson_iter_as_int64(&code) == CODE_OPTIONS_CONFLICT ||
         bson_iter_as_int64(&code) == CODE_KEY_SPEC_CONFLICT)) {
        char quoted[LOG_QUOTE_BYTES];
        log_warn("index_differs", "collection=%s error=%s next=\"left as it is\"", collection,
                 log_quote(e->text, quoted));
        good = true;
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}

bool mongo_create_indexes(struct mongo_store *m, size_t report, struct err *e)
{
    size_t count;
    const struct mongo_kind *kinds = mongo_kinds(&m->reports[report], &count);
    for (size_t i = 0; i < count; i++) {
        if (!create(m, report, span_name(kinds[i].span), e))
            return false;
    }
    return true;
}
