#include "store/mongo/doc/document.h"

#include "aggregate/dimension.h"
#include "base/civil.h"
#include "store/mongo/doc/decimal.h"
#include "store/mongo/wire/field.h"

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
    BCON_APPEND(filter, applied, "{", "$gte", BCON_INT64(from), "$lt", BCON_INT64(number), "}");
}

bool mongo_key_of(const struct mongo_store *m, size_t report, const bson_iter_t *metadata, struct text *key,
                  bool *is_other)
{
    const struct mongo_report *more = &m->more[report];
    bson_iter_t at;
    uint32_t len;
    text_clear(key);
    *is_other = mongo_find_in(metadata, "other", &at);
    for (size_t d = 0; !*is_other && d < m->reports[report].dimension_count; d++) {
        if (!mongo_find_in(metadata, more->dimensions[d] + strlen("metadata."), &at) ||
            !BSON_ITER_HOLDS_UTF8(&at))
            return false;
        const char *text = bson_iter_utf8(&at, &len);
        if (d > 0)
            text_putc(key, DIMENSION_SEPARATOR);
        text_add(key, text, len);
    }
    return true;
}

bool mongo_key_in_document(const struct mongo_store *m, size_t report, const bson_t *document,
                           struct text *key, bool *is_other)
{
    bson_iter_t metadata;
    return bson_iter_init_find(&metadata, document, "metadata") &&
           mongo_key_of(m, report, &metadata, key, is_other);
}

static void add_number(bson_t *inc, const char *path, const char *rest, int64_t value)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", path, rest);
    bson_append_int64(inc, name, -1, value);
}

/* Adds a number of the measure's field, as a column has it. */
static void add_own(bson_t *to, const char *path, const struct measure *m, bool as_decimal, int64_t number)
{
    if (as_decimal && m->is_fraction)
        mongo_append_decimal(to, path, number);
    else
        bson_append_int64(to, path, -1, number);
}

static void add_last(bson_t *max, const char *path, const struct measure *m, bool as_decimal,
                     const int64_t *columns)
{
    bson_t last;
    bson_append_document_begin(max, path, -1, &last);
    BSON_APPEND_DATE_TIME(&last, "t", columns[0] - 1);
    BSON_APPEND_INT64(&last, "o", columns[1]);
    add_own(&last, "v", m, as_decimal, columns[2]);
    bson_append_document_end(max, &last);
}

/* Adds a sum. `units`: the member that has it beside other members; "": it is alone, if it is one number. */
static void add_sum(bson_t *inc, const char *path, const char *units, const struct measure *m,
                    bool as_decimal, const int64_t *columns)
{
    char name[256];
    if (!m->is_fraction) {
        add_number(inc, path, units, columns[0]);
    } else if (as_decimal) {
        snprintf(name, sizeof name, "%s%s", path, units);
        mongo_append_decimal(inc, name, (int128)columns[0] * EVENT_SCALE + columns[1]);
    } else {
        add_number(inc, path, ".units", columns[0]);
        add_number(inc, path, ".micros", columns[1]);
    }
}

void mongo_add_value(bson_t *inc, bson_t *min, bson_t *max, const struct measure *m, bool as_decimal,
                     const char *path, const int64_t *columns)
{
    switch (m->kind) {
    case MEASURE_COUNT:
        add_number(inc, path, "", columns[0]);
        break;
    case MEASURE_SUM:
        add_sum(inc, path, "", m, as_decimal, columns);
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        add_sum(inc, path, ".units", m, as_decimal, columns);
        add_number(inc, path, ".count", columns[measure_column_count(m) - 1]);
        break;
    case MEASURE_MIN:
        if (columns[0] != 0)
            add_own(min, path, m, as_decimal, measure_unshift(columns[0]));
        break;
    case MEASURE_MAX:
        if (columns[0] != 0)
            add_own(max, path, m, as_decimal, measure_unshift(columns[0]));
        break;
    case MEASURE_LAST:
        if (columns[0] != 0)
            add_last(max, path, m, as_decimal, columns);
        break;
    case MEASURE_DISTINCT:
        add_number(inc, path, ".count", columns[0]);
        break;
    case MEASURE_NEWEST: /* it has no columns */
        break;
    }
}

static int64_t part_of(const bson_iter_t *document, const char *name)
{
    bson_iter_t at;
    if (!mongo_find_in(document, name, &at))
        return 0;
    return BSON_ITER_HOLDS_DATE_TIME(&at) ? bson_iter_date_time(&at) + 1 : bson_iter_as_int64(&at);
}

/* A number of the measure's field, as a column has it; of reports without decimals in any case. */
static int64_t own_of(const struct measure *m, const bson_iter_t *value)
{
    if (!BSON_ITER_HOLDS_DECIMAL128(value))
        return bson_iter_as_int64(value);
    const int128 number = mongo_decimal(value);
    return mongo_decimal_units(m->is_fraction ? number * EVENT_SCALE : number);
}

/* After many additions there may be more millionths than one unit; after events were taken out, less than
 * none. */
static void carry(int64_t *columns)
{
    int64_t units = columns[1] / EVENT_SCALE - (columns[1] % EVENT_SCALE < 0);
    columns[0] = value_add(columns[0], units);
    columns[1] -= units * EVENT_SCALE;
}

/* Reads a sum: one number, or a document with its units, and its millionths where it has no decimals. */
static void read_sum(const struct measure *m, const bson_iter_t *value, int64_t *columns)
{
    bson_iter_t units = *value;
    if (BSON_ITER_HOLDS_DOCUMENT(value) && !mongo_find_in(value, "units", &units))
        return;
    const int128 number = mongo_decimal(&units);
    columns[0] = mongo_decimal_units(number);
    if (!m->is_fraction)
        return;
    if (BSON_ITER_HOLDS_DECIMAL128(&units)) {
        const int128 rest = number - (int128)columns[0] * EVENT_SCALE;
        columns[1] = rest >= 0 && rest < EVENT_SCALE ? (int64_t)rest : 0;
    } else {
        columns[1] = part_of(value, "micros");
        carry(columns);
    }
}

/* Is a value infinite or not a number, or one of its members? */
static bool is_infinite(const bson_iter_t *value)
{
    bson_iter_t part;
    if (!BSON_ITER_HOLDS_DOCUMENT(value))
        return mongo_is_infinite(value);
    bool is = false, has_parts = bson_iter_recurse(value, &part);
    while (!is && has_parts && bson_iter_next(&part))
        is = mongo_is_infinite(&part);
    return is;
}

bool mongo_read_value(const struct measure *m, const bson_iter_t *value, int64_t *columns)
{
    bson_iter_t last;
    if (is_infinite(value))
        return false;
    switch (m->kind) {
    case MEASURE_COUNT:
        columns[0] = bson_iter_as_int64(value);
        break;
    case MEASURE_SUM:
        read_sum(m, value, columns);
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        read_sum(m, value, columns);
        columns[measure_column_count(m) - 1] = part_of(value, "count");
        break;
    case MEASURE_MIN:
    case MEASURE_MAX:
        columns[0] = measure_shift(own_of(m, value));
        break;
    case MEASURE_LAST:
        columns[0] = part_of(value, "t");
        columns[1] = part_of(value, "o");
        columns[2] = mongo_find_in(value, "v", &last) ? own_of(m, &last) : 0;
        break;
    case MEASURE_DISTINCT:
        columns[0] = part_of(value, "count");
        break;
    case MEASURE_NEWEST:
        break;
    }
    return true;
}

bool mongo_date_of(const bson_t *document, int64_t *date_ms)
{
    bson_iter_t date;
    if (!mongo_find_member(document, "metadata.date", &date) || !BSON_ITER_HOLDS_DATE_TIME(&date))
        return false;
    *date_ms = bson_iter_date_time(&date);
    return *date_ms >= 0 && *date_ms < CIVIL_END_MS; /* other dates are damage by others */
}
