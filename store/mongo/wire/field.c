#include "store/mongo/wire/field.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

/* The last name of the path may have any character but a dot. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found)
{
    bson_iter_t it;
    return bson_iter_init(&it, document) && bson_iter_find_descendant(&it, path, found);
}

bool mongo_begin_members(const bson_t *document, const char *path, bson_iter_t *at)
{
    bson_iter_t it;
    return mongo_find_member(document, path, &it) && bson_iter_recurse(&it, at);
}

bool mongo_find_in(const bson_iter_t *document, const char *name, bson_iter_t *found)
{
    return BSON_ITER_HOLDS_DOCUMENT(document) && bson_iter_recurse(document, found) &&
           bson_iter_find(found, name);
}

int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise)
{
    bson_iter_t it;
    if (!mongo_find_member(document, path, &it))
        return otherwise;
    return BSON_ITER_HOLDS_DATE_TIME(&it) ? bson_iter_date_time(&it) : bson_iter_as_int64(&it);
}

bool mongo_name_is_number(const char *name, size_t end, size_t *number)
{
    char again[24];
    *number = strtoul(name, NULL, 10);
    snprintf(again, sizeof again, "%zu", *number);
    return *number < end && strcmp(again, name) == 0;
}

struct slice mongo_bytes_of(const bson_iter_t *member)
{
    const uint8_t *bytes = NULL;
    uint32_t len = 0;
    if (BSON_ITER_HOLDS_DOCUMENT(member))
        bson_iter_document(member, &len, &bytes);
    return slice_of((const char *)bytes, len);
}

bool mongo_take_document(const bson_iter_t *member, bson_t *document)
{
    const struct slice bytes = mongo_bytes_of(member);
    return bytes.len > 0 && bson_init_static(document, (const uint8_t *)bytes.ptr, bytes.len);
}

bool mongo_next_document(bson_iter_t *at, bson_t *document)
{
    while (bson_iter_next(at)) {
        if (mongo_take_document(at, document))
            return true;
    }
    return false;
}

bool mongo_find_document(const bson_t *document, const char *path, bson_t *found)
{
    bson_iter_t it;
    return mongo_find_member(document, path, &it) && mongo_take_document(&it, found);
}

const char *mongo_text_at(const bson_t *document, const char *path)
{
    bson_iter_t it;
    return mongo_find_member(document, path, &it) && BSON_ITER_HOLDS_UTF8(&it) ? bson_iter_utf8(&it, NULL)
                                                                               : "";
}

void mongo_append_members(bson_t *to, const bson_iter_t *of)
{
    bson_iter_t at;
    ASSERT(bson_iter_recurse(of, &at));
    while (bson_iter_next(&at))
        bson_append_iter(to, NULL, -1, &at);
}

void mongo_add_operator(bson_t *update, const char *name, bson_t *of)
{
    if (!bson_empty(of))
        bson_append_document(update, name, -1, of);
    bson_destroy(of);
}

const char *mongo_array_key(size_t i, char room[MONGO_KEY_BYTES])
{
    const char *key;
    bson_uint32_to_string((uint32_t)i, &key, room, MONGO_KEY_BYTES);
    return key;
}

void mongo_match_nothing(bson_t *query, const char *path)
{
    BCON_APPEND(query, path, "{", "$exists", BCON_BOOL(false), "}");
}

void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there)
{
    if (is_there)
        BSON_APPEND_INT64(query, path, number);
    else
        mongo_match_nothing(query, path);
}

/* ---- documents by several `_id`s */

void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter)
{
    ids->count = 0;
    ids->filter = filter;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &ids->in);
    BSON_APPEND_ARRAY_BEGIN(&ids->in, "$in", &ids->list);
}

void mongo_ids_add(struct mongo_ids *ids, struct slice id)
{
    char room[MONGO_KEY_BYTES];
    bson_append_utf8(&ids->list, mongo_array_key(ids->count++, room), -1, id.ptr, (int)id.len);
}

bson_t *mongo_ids_end(struct mongo_ids *ids)
{
    bson_append_array_end(&ids->in, &ids->list);
    bson_append_document_end(ids->filter, &ids->in);
    return ids->filter;
}
