/* The names of documents, and the columns of a measure as their members. */
#include "store/mongo/doc/document.h"

#include "aggregate/dimension.h"
#include "base/civil.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

/* Old servers refuse index keys longer than 1 KiB. */
#define ID_BYTES_MAX 900

const char *mongo_collection(const struct mongo_store *m, size_t report, const char *kind,
                             char buf[MONGO_NAME_BYTES])
{
    snprintf(buf, MONGO_NAME_BYTES, "%.*s.%s", REPORT_NAME_BYTES + 12, m->more[report].key, kind);
    return buf;
}

const char *mongo_sketch_collection(const struct mongo_store *m, size_t report, size_t sketch,
                                    const char *kind, char buf[MONGO_NAME_BYTES])
{
    snprintf(buf, MONGO_NAME_BYTES, "%.*s.%s.%s", REPORT_NAME_BYTES + 12, m->more[report].key,
             report_sketched(&m->reports[report], sketch)->name, kind);
    return buf;
}

static void cut(struct text *out, size_t from)
{
    if (out->len - from <= ID_BYTES_MAX)
        return;
    XXH128_hash_t hash = XXH3_128bits(out->ptr + from, out->len - from);
    size_t len = from + ID_BYTES_MAX;
    while (((unsigned char)out->ptr[len] & 0xC0) == 0x80)
        len--; /* cut between two characters */
    out->len = len;
    text_printf(out, "~%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
}

void mongo_id(struct text *out, const struct mongo_store *m, size_t report, const char *time,
              const struct slice *key)
{
    text_clear(out);
    text_puts(out, time != NULL ? time : "");
    size_t from = out->len;
    if (key == NULL) {
        text_puts(out, time == NULL ? "%other" : "/%other"); /* no escaped text is the same */
        return;
    }
    struct slice rest = *key;
    for (size_t d = 0; d < m->reports[report].dimension_count; d++) {
        if (d > 0 || time != NULL)
            text_putc(out, '/');
        text_percent(out, dimension_next(&rest), "/");
    }
    cut(out, from);
}

void mongo_add_metadata(bson_t *to, const struct mongo_store *m, size_t report, const struct slice *key)
{
    size_t count = m->reports[report].dimension_count;
    if (key == NULL) {
        BSON_APPEND_BOOL(to, "metadata.other", true);
        for (size_t d = 0; d < count; d++) /* all dimensions, since they may be a shard key */
            BSON_APPEND_NULL(to, m->more[report].dimensions[d]);
        return;
    }
    struct slice rest = *key;
    for (size_t d = 0; d < count; d++) {
        struct slice text = dimension_next(&rest);
        bson_append_utf8(to, m->more[report].dimensions[d], -1, text.len > 0 ? text.ptr : "", (int)text.len);
    }
}

void mongo_add_document(bson_t *filter, struct mongo_store *m, size_t report, enum span span, int64_t date_ms,
                        const struct slice *key)
{
    char time[MONGO_TIME_BYTES];
    mongo_id(&m->id, m, report, mongo_time(span, date_ms, time), key);
    bson_append_utf8(filter, "_id", -1, m->id.ptr, (int)m->id.len);
    BSON_APPEND_DATE_TIME(filter, "metadata.date", date_ms);
    mongo_add_metadata(filter, m, report, key);
}

void mongo_add_guard(bson_t *filter, const char *applied, int64_t number)
{
    bson_t guard, not ;
    BSON_APPEND_DOCUMENT_BEGIN(filter, applied, &guard);
    BSON_APPEND_DOCUMENT_BEGIN(&guard, "$not", &not );
    BSON_APPEND_INT64(&not, "$gte", number);
    bson_append_document_end(&guard, &not );
    bson_append_document_end(filter, &guard);
}

void mongo_add_guard_of_copy(bson_t *filter, const char *applied, int64_t from, int64_t number)
{
    bson_t guard;
    BSON_APPEND_DOCUMENT_BEGIN(filter, applied, &guard);
    BSON_APPEND_INT64(&guard, "$gte", from);
    BSON_APPEND_INT64(&guard, "$lt", number);
    bson_append_document_end(filter, &guard);
}

bool mongo_key_of(const struct mongo_store *m, size_t report, const bson_iter_t *metadata, struct text *key,
                  bool *is_other)
{
    const struct mongo_report *more = &m->more[report];
    bson_iter_t at;
    uint32_t len;
    text_clear(key);
    *is_other = BSON_ITER_HOLDS_DOCUMENT(metadata) && bson_iter_recurse(metadata, &at) &&
                bson_iter_find(&at, "other");
    for (size_t d = 0; !*is_other && d < m->reports[report].dimension_count; d++) {
        if (!BSON_ITER_HOLDS_DOCUMENT(metadata) || !bson_iter_recurse(metadata, &at) ||
            !bson_iter_find(&at, more->dimensions[d] + strlen("metadata.")) || !BSON_ITER_HOLDS_UTF8(&at))
            return false;
        const char *text = bson_iter_utf8(&at, &len);
        if (d > 0)
            text_putc(key, DIMENSION_SEPARATOR);
        text_add(key, text, len);
    }
    return true;
}

static void add_number(bson_t *inc, const char *path, const char *rest, int64_t value)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", path, rest);
    bson_append_int64(inc, name, -1, value);
}

static void add_last(bson_t *max, const char *path, const int64_t *columns)
{
    bson_t last;
    bson_append_document_begin(max, path, -1, &last);
    BSON_APPEND_DATE_TIME(&last, "t", columns[0] - 1);
    BSON_APPEND_INT64(&last, "o", columns[1]);
    BSON_APPEND_INT64(&last, "v", columns[2]);
    bson_append_document_end(max, &last);
}

void mongo_add_value(bson_t *inc, bson_t *min, bson_t *max, const struct measure *m, const char *path,
                     const int64_t *columns)
{
    size_t count = measure_column_count(m);
    switch (m->kind) {
    case MEASURE_COUNT:
        add_number(inc, path, "", columns[0]);
        break;
    case MEASURE_SUM:
        add_number(inc, path, count == 1 ? "" : ".units", columns[0]);
        if (count == 2)
            add_number(inc, path, ".micros", columns[1]);
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        add_number(inc, path, ".units", columns[0]);
        if (count == 3)
            add_number(inc, path, ".micros", columns[1]);
        add_number(inc, path, ".count", columns[count - 1]);
        break;
    case MEASURE_MIN:
        if (columns[0] != 0)
            bson_append_int64(min, path, -1, measure_unshift(columns[0]));
        break;
    case MEASURE_MAX:
        if (columns[0] != 0)
            bson_append_int64(max, path, -1, measure_unshift(columns[0]));
        break;
    case MEASURE_LAST:
        if (columns[0] != 0)
            add_last(max, path, columns);
        break;
    case MEASURE_DISTINCT:
        add_number(inc, path, ".count", columns[0]);
        break;
    }
}

static int64_t member(const bson_iter_t *document, const char *name)
{
    bson_iter_t at;
    if (!BSON_ITER_HOLDS_DOCUMENT(document) || !bson_iter_recurse(document, &at) ||
        !bson_iter_find(&at, name))
        return 0;
    return BSON_ITER_HOLDS_DATE_TIME(&at) ? bson_iter_date_time(&at) + 1 : bson_iter_as_int64(&at);
}

/* After many additions there may be more millionths than one unit; after events were taken out, less than
 * none. */
static void carry(int64_t *columns)
{
    int64_t units = columns[1] / EVENT_SCALE - (columns[1] % EVENT_SCALE < 0);
    columns[0] = value_add(columns[0], units);
    columns[1] -= units * EVENT_SCALE;
}

void mongo_read_value(const struct measure *m, const bson_iter_t *value, int64_t *columns)
{
    size_t count = measure_column_count(m);
    switch (m->kind) {
    case MEASURE_COUNT:
        columns[0] = bson_iter_as_int64(value);
        break;
    case MEASURE_SUM:
        columns[0] = count == 1 ? bson_iter_as_int64(value) : member(value, "units");
        if (count == 2) {
            columns[1] = member(value, "micros");
            carry(columns);
        }
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        columns[0] = member(value, "units");
        if (count == 3) {
            columns[1] = member(value, "micros");
            carry(columns);
        }
        columns[count - 1] = member(value, "count");
        break;
    case MEASURE_MIN:
    case MEASURE_MAX:
        columns[0] = measure_shift(bson_iter_as_int64(value));
        break;
    case MEASURE_LAST:
        columns[0] = member(value, "t");
        columns[1] = member(value, "o");
        columns[2] = member(value, "v");
        break;
    case MEASURE_DISTINCT:
        columns[0] = member(value, "count");
        break;
    }
}

bool mongo_date_of(const bson_t *document, int64_t *date_ms)
{
    bson_iter_t it, date;
    if (!bson_iter_init(&it, document) || !bson_iter_find_descendant(&it, "metadata.date", &date) ||
        !BSON_ITER_HOLDS_DATE_TIME(&date))
        return false;
    *date_ms = bson_iter_date_time(&date);
    return *date_ms >= 0 && *date_ms < CIVIL_END_MS; /* other dates are damage by others */
}
