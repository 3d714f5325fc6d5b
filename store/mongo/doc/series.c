/* The series of a report, one document each: all, one, those with some values, and the texts of a
 * dimension. */
#include "store/mongo/doc/series.h"

#include "base/utf8.h"
#include "store/common/values.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>

/* `_id` is cut: this many bytes of an escaped text can be looked for in it. */
#define ID_SURE_BYTES 800

uint32_t mongo_name_stored(struct mongo_store *m, size_t report, struct slice key)
{
    struct mongo_names *names = &m->more[report].names;
    const uint32_t series = mongo_names_add(names, key);
    mongo_names_at(names, series)->is_stored = true;
    return series;
}

bool mongo_take_name(struct mongo_store *m, size_t report, const bson_t *document, struct text *key,
                     uint32_t *series)
{
    bool is_other = false;
    text_clear(key);
    if (m->reports[report].dimension_count > 0 && !mongo_key_in_document(m, report, document, key, &is_other))
        return false;
    *series = is_other ? STORE_SERIES_OTHER : mongo_name_stored(m, report, slice_of(key->ptr, key->len));
    return true;
}

struct names_reading {
    struct mongo_store *m;
    size_t report;
    struct text key;
    series_fn *fn;
    void *context;
};

static bool see_series(void *context, const bson_t *document)
{
    struct names_reading *n = context;
    uint32_t series;
    return !mongo_take_name(n->m, n->report, document, &n->key, &series) || series == STORE_SERIES_OTHER ||
           n->fn == NULL || n->fn(n->context, series, n->m->more[n->report].names.names[series - 1].key);
}

/* Destroys the filter; NULL: all series. */
static bool read_series(struct mongo_store *m, size_t report, bson_t *filter, series_fn *fn, void *context,
                        struct err *e)
{
    struct names_reading n = {m, report, {0}, fn, context};
    char collection[MONGO_NAME_BYTES];
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(false), "metadata", BCON_BOOL(true), "}");
    bool good = mongo_look(m->client, mongo_collection(m, report, "series", collection), filter, options,
                           see_series, &n, e);
    text_fini(&n.key);
    return good;
}

bool mongo_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    return read_series(mongo_of(st), report, NULL, fn, context, e);
}

bool mongo_read_names(struct mongo_store *m, size_t report, struct err *e)
{
    m->more[report].has_all_names = read_series(m, report, NULL, NULL, NULL, e);
    return m->more[report].has_all_names;
}

/* Can the server look for this text? If not, no series has it, since dimensions are settled texts. */
static bool is_text(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end = (const unsigned char *)slice_end(s);
    for (size_t n = 1; n > 0 && p < end; p += n)
        n = *p != '\0' ? utf8_len(p, end) : 0;
    return p == end;
}

bool mongo_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_names *names = &m->more[report].names;
    bson_t filter = BSON_INITIALIZER;
    *series = mongo_names_find(names, key);
    bool good = true;
    if (is_text(key) && (*series == 0 || !mongo_names_at(names, *series)->is_stored)) {
        mongo_id(&m->id, m, report, NULL, &key);
        bson_append_utf8(&filter, "_id", -1, m->id.ptr != NULL ? m->id.ptr : "", (int)m->id.len);
        good = read_series(m, report, &filter, NULL, NULL, e);
        *series = mongo_names_find(names, key);
    }
    *found = *series != 0 && mongo_names_at(names, *series)->is_stored;
    return good;
}

bool mongo_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    const struct mongo_names *names = &mongo_of(st)->more[report].names;
    if (series > names->count)
        return err_set(e, EX_DATAERR, "report %s has no series %" PRIu32, st->reports[report].name, series);
    if (series == STORE_SERIES_OTHER) {
        text_puts(key, STORE_OTHER_KEY);
    } else {
        struct slice name = mongo_names_at(names, series)->key;
        text_add(key, name.len > 0 ? name.ptr : "", name.len);
    }
    return true;
}

/* ---- ranges of texts */

/* A text behind all texts that begin with the prefix, and close to them; false: there is none. */
static bool end_of_prefix(struct slice prefix, struct text *end)
{
    size_t len = prefix.len;
    while (len > 0 && (unsigned char)prefix.ptr[len - 1] >= 0x7F)
        len--;
    text_clear(end);
    if (len > 0) {
        text_add(end, prefix.ptr, len);
        end->ptr[len - 1]++;
    }
    return len > 0;
}

/* Adds the range of texts that begin with the prefix, and perhaps some behind them. With `after`: behind
 * that text. */
static void add_range(bson_t *filter, const char *name, struct slice prefix, const struct slice *after)
{
    struct slice from = after != NULL ? *after : prefix;
    struct text end = {0};
    bson_t range;
    bson_append_document_begin(filter, name, -1, &range);
    bson_append_utf8(&range, after != NULL ? "$gt" : "$gte", -1, from.len > 0 ? from.ptr : "", (int)from.len);
    if (end_of_prefix(prefix, &end))
        bson_append_utf8(&range, "$lt", -1, end.ptr, (int)end.len);
    bson_append_document_end(filter, &range);
    text_fini(&end);
}

/* Adds the same range for `_id`, which begins with the first dimension, escaped. */
static void add_id_range(bson_t *filter, struct slice prefix)
{
    struct text escaped = {0};
    text_percent(&escaped, prefix, "/");
    if (escaped.len > 0 && escaped.len <= ID_SURE_BYTES)
        add_range(filter, "_id", text_slice(&escaped), NULL);
    text_fini(&escaped);
}

/* ---- series that are alike */

bool mongo_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bson_t filter = BSON_INITIALIZER;
    bool is_possible = true;
    if (st->reports[report].dimension_count > 0 && values[0].ptr != NULL && is_text(values[0]))
        add_id_range(&filter, values[0]);
    for (size_t d = 0; d < st->reports[report].dimension_count; d++) {
        if (values[d].ptr == NULL)
            continue;
        is_possible = is_possible && is_text(values[d]);
        bson_append_utf8(&filter, m->more[report].dimensions[d], -1, values[d].ptr, (int)values[d].len);
    }
    if (is_possible)
        return read_series(m, report, &filter, fn, context, e);
    bson_destroy(&filter);
    return true;
}

/* ---- texts of a dimension */

struct completing {
    struct mongo_store *m;
    size_t report, dimension;
    struct slice prefix;
    const char *path; /* path of the text in a reply */
    size_t seen, left;
    struct text last;
    bool has_last, has_ended;
    value_fn *fn;
    void *context;
};

/* Texts come sorted, those with the prefix first. With several dimensions, some come repeatedly. */
static bool see_value(void *context, const bson_t *document)
{
    struct completing *c = context;
    bson_iter_t at;
    uint32_t len;
    c->seen++;
    if (!mongo_find_member(document, c->path, &at) || !BSON_ITER_HOLDS_UTF8(&at))
        return true;
    const char *text = bson_iter_utf8(&at, &len);
    struct slice value = slice_of(text, len);
    if (c->has_last && slice_equal(value, text_slice(&c->last)))
        return true;
    c->has_ended = !slice_begins(value, c->prefix) || !c->fn(c->context, value) || --c->left == 0;
    c->has_last = true;
    text_clear(&c->last);
    text_add(&c->last, value.ptr, value.len);
    return !c->has_ended;
}

static void begin_filter(const struct completing *c, bson_t *filter)
{
    struct slice last = text_slice(&c->last);
    bson_init(filter);
    if (c->dimension == 0)
        add_id_range(filter, c->prefix);
    add_range(filter, c->m->more[c->report].dimensions[c->dimension], c->prefix, c->has_last ? &last : NULL);
}

/* Reads as many documents as texts are wanted. With one dimension that is enough. */
static bool read_first(struct completing *c, const char *collection, struct err *e)
{
    bson_t filter;
    c->path = c->m->more[c->report].dimensions[c->dimension];
    begin_filter(c, &filter);
    bson_t *options =
        BCON_NEW("projection", "{", "_id", BCON_BOOL(false), c->path, BCON_BOOL(true), "}", "sort", "{",
                 c->path, BCON_INT32(1), "}", "limit", BCON_INT64((int64_t)c->left));
    return mongo_look(c->m->client, collection, &filter, options, see_value, c, e);
}

/* Reads the remaining texts, grouped by the server. */
static bool read_rest(struct completing *c, const char *collection, struct err *e)
{
    char path[sizeof c->m->more->dimensions[0] + 1];
    bson_t filter;
    snprintf(path, sizeof path, "$%s", c->m->more[c->report].dimensions[c->dimension]);
    c->path = "_id";
    begin_filter(c, &filter);
    bson_t *pipeline =
        BCON_NEW("pipeline", "[", "{", "$match", BCON_DOCUMENT(&filter), "}", "{", "$group", "{", "_id",
                 BCON_UTF8(path), "}", "}", "{", "$sort", "{", "_id", BCON_INT32(1), "}", "}", "{", "$limit",
                 BCON_INT64((int64_t)c->left), "}", "]");
    bool good = mongo_aggregate(c->m->client, collection, pipeline, see_value, c, e);
    bson_destroy(pipeline);
    bson_destroy(&filter);
    return good;
}

bool mongo_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e)
{
    struct completing c = {.m = mongo_of(st),
                           .report = report,
                           .dimension = dimension,
                           .prefix = prefix,
                           .left = limit,
                           .fn = fn,
                           .context = context};
    char collection[MONGO_NAME_BYTES];
    if (!is_text(prefix)) /* it may end within a character */
        return values_walk(st, report, dimension, prefix, limit, fn, context, e);
    mongo_collection(c.m, report, "series", collection);
    bool good = read_first(&c, collection, e);
    if (good && !c.has_ended && c.seen == limit)
        good = read_rest(&c, collection, e);
    text_fini(&c.last);
    return good;
}
