/* The $jsonSchema of each collection: the types of all members that tallyd writes. Other members are
 * allowed, so that others may add their own. */
#include "store/mongo/catalog/schema.h"

#include "store/mongo/catalog/catalog.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define MARK "what tallyd writes"

struct schema {
    const struct mongo_store *m;
    const struct mongo_collection *c;
    bool whole;
};

static void add_type(bson_t *to, const char *name, const char *type)
{
    BCON_APPEND(to, name, "{", "bsonType", BCON_UTF8(type), "}");
}

static void add_types(bson_t *to, const char *name, const char *one, const char *other)
{
    BCON_APPEND(to, name, "{", "bsonType", "[", BCON_UTF8(one), BCON_UTF8(other), "]", "}");
}

/* Begins an object whose members have no fixed names. */
static void begin_map(bson_t *to, const char *name, bson_t *of)
{
    bson_append_document_begin(to, name, -1, of);
    BSON_APPEND_UTF8(of, "bsonType", "object");
}

/* Begins an object and its members; end_object() ends it. */
static void begin_object(bson_t *to, const char *name, bson_t *of, bson_t *members)
{
    begin_map(to, name, of);
    BSON_APPEND_DOCUMENT_BEGIN(of, "properties", members);
}

static void end_object(bson_t *to, bson_t *of, bson_t *members)
{
    bson_append_document_end(of, members);
    bson_append_document_end(to, of);
}

static bool is_rolled(const struct schema *s)
{
    return s->c->holds == HOLDS_DOCUMENTS && s->c->kind->span > SPAN_MONTH;
}

/* Adds numbers by keys that have no fixed names. */
static void add_numbers(const struct schema *s, bson_t *to, const char *name, const char *type)
{
    bson_t of;
    begin_map(to, name, &of);
    if (s->whole)
        add_type(&of, "additionalProperties", type);
    bson_append_document_end(to, &of);
}

static bool has_decimals(const struct schema *s, const struct measure *m)
{
    return m->is_fraction && s->m->more[s->c->report].is_decimal;
}

/* Adds the sum that is a part of a value. */
static void add_sum(const struct schema *s, bson_t *members, const struct measure *m)
{
    add_type(members, "units", has_decimals(s, m) ? "decimal" : "long");
    if (m->is_fraction && !has_decimals(s, m))
        add_type(members, "micros", "long");
}

/* Is a value one number? */
static bool is_number(const struct schema *s, const struct measure *m)
{
    return !measure_has_sketch(m) &&
           (measure_column_count(m) == 1 || (m->kind == MEASURE_SUM && has_decimals(s, m)));
}

/* Adds what mongo_add_value() writes, beside it what a sketch has, and what mongo_roll() adds to a mean. */
static void add_value(const struct schema *s, bson_t *to, const char *name, const struct measure *m)
{
    const char *number = has_decimals(s, m) ? "decimal" : "long";
    bson_t of, members;
    if (is_number(s, m)) {
        add_type(to, name, number);
        return;
    }
    begin_object(to, name, &of, &members);
    if (m->kind == MEASURE_SUM || m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM)
        add_sum(s, &members, m);
    if (m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM || m->kind == MEASURE_DISTINCT)
        add_type(&members, "count", "long");
    if (m->kind == MEASURE_MEAN && is_rolled(s)) {
        add_type(&members, "mean", "double");
        add_type(&members, "at", "date");
    } else if (m->kind == MEASURE_LAST) {
        add_type(&members, "t", "date");
        add_type(&members, "o", "long");
        add_type(&members, "v", number);
    } else if (m->kind == MEASURE_HISTOGRAM) {
        add_type(&members, MONGO_ZERO, "long");
        char fine[MONGO_FINE_BYTES];
        const int schema = m->layouts[s->c->kind->finest]->schema;
        add_numbers(s, &members, mongo_buckets_name(MONGO_BUCKETS, schema, fine), "long");
        add_numbers(s, &members, mongo_buckets_name(MONGO_NEGATIVE, schema, fine), "long");
    } else if (m->kind == MEASURE_DISTINCT) {
        add_numbers(s, &members, MONGO_ENTRIES, "int");
        add_numbers(s, &members, MONGO_REGISTERS, "int");
    } else if (m->kind == MEASURE_NEWEST) {
        add_type(&members, MONGO_EVENTS, "array");
    }
    end_object(to, &of, &members);
}

/* Adds the time buckets of a resolution, which are `depth` levels below the document. */
static void add_buckets(const struct schema *s, bson_t *to, const char *name, const struct measure *m,
                        int depth)
{
    bson_t of;
    if (depth == 0) {
        add_value(s, to, name, m);
        return;
    }
    begin_map(to, name, &of);
    if (s->whole)
        add_buckets(s, &of, "additionalProperties", m, depth - 1);
    bson_append_document_end(to, &of);
}

static void add_measure(const struct schema *s, bson_t *to, const struct measure *m)
{
    if (s->c->kind->span == SPAN_WEEK) {
        add_buckets(s, to, mongo_member(SPAN_WEEK), m, 0);
        add_buckets(s, to, mongo_member(SPAN_DAY), m, 1);
        return;
    }
    int longest = (int)s->c->kind->span - is_rolled(s); /* years have no sum */
    for (int span = longest; span >= (int)s->c->kind->finest; span--)
        add_buckets(s, to, mongo_member((enum span)span), m, (int)s->c->kind->span - span);
}

/* The buckets of a measure with a sketch: documents have nothing else. */
static void add_sketch(const struct schema *s, bson_t *to)
{
    const struct mongo_kind *k = s->c->kind;
    const struct measure *m = report_sketched(&s->m->reports[s->c->report], s->c->sketch);
    if (k == &mongo_sketch_week)
        add_measure(s, to, m);
    else
        add_buckets(s, to, mongo_member(k->finest), m, (int)k->span - (int)k->finest);
}

static void add_measures(const struct schema *s, bson_t *to)
{
    const struct report *r = &s->m->reports[s->c->report];
    const struct mongo_report *more = &s->m->more[s->c->report];
    if (s->c->kind->of_sketch) {
        add_sketch(s, to);
        return;
    }
    for (size_t i = 0; i < r->measure_count; i++) {
        bson_t of, members;
        char name[sizeof more->fields[i]];
        if (measure_has_sketch(&r->measures[i]))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(more->fields[i], "."), more->fields[i]);
        if (name[0] == '\0') {
            add_measure(s, to, &r->measures[i]);
            continue;
        }
        begin_object(to, name, &of, &members);
        add_measure(s, &members, &r->measures[i]);
        end_object(to, &of, &members);
    }
}

/* Dimensions are strings; for `other` they are null or missing. */
static void add_metadata(const struct schema *s, bson_t *to)
{
    const struct mongo_report *more = &s->m->more[s->c->report];
    bson_t of, members;
    begin_object(to, "metadata", &of, &members);
    for (size_t d = 0; d < s->m->reports[s->c->report].dimension_count; d++)
        add_types(&members, more->dimensions[d] + strlen("metadata."), "string", "null");
    add_type(&members, "other", "bool");
    if (s->c->holds == HOLDS_DOCUMENTS)
        add_type(&members, "date", "date");
    bson_append_document_end(&of, &members);
    if (s->c->holds == HOLDS_DOCUMENTS)
        BCON_APPEND(&of, "required", "[", BCON_UTF8("date"), "]");
    bson_append_document_end(to, &of);
}

/* Adds counts by name. Some are one level deeper: rejected.REASON, gap.FROM. */
static void add_entries(const struct schema *s, bson_t *to, const char *name)
{
    bson_t of;
    begin_map(to, name, &of);
    if (s->whole)
        add_types(&of, "additionalProperties", "long", "object");
    bson_append_document_end(to, &of);
}

static void add_books(const struct schema *s, bson_t *to)
{
    bson_t reports;
    add_type(to, "source", "string");
    add_type(to, "partition", "string");
    add_entries(s, to, "entries");
    begin_map(to, "reports", &reports);
    if (s->whole)
        add_entries(s, &reports, "additionalProperties");
    bson_append_document_end(to, &reports);
}

/* Only the type of lists is checked here: readers check their entries, and the lists of a sketch. */
static void add_top(const struct schema *s, bson_t *to)
{
    bson_t of, members, list;
    begin_object(to, "metadata", &of, &members);
    add_type(&members, "date", "date");
    end_object(to, &of, &members);
    add_type(to, "written", "long");
    add_type(to, "ranked", "long");
    add_type(to, "waiting", "bool");
    add_type(to, "at", "date");
    begin_object(to, "open", &of, &members);
    add_type(&members, "batches", "long");
    add_type(&members, "until", "date");
    add_type(&members, "sums", "object");
    end_object(to, &of, &members);
    begin_object(to, "minutes", &of, &members);
    add_type(&members, "batches", "long");
    add_type(&members, "totals", "object");
    end_object(to, &of, &members);
    begin_map(to, "measures", &of);
    if (s->whole) {
        begin_object(&of, "additionalProperties", &list, &members);
        BCON_APPEND(&members, "total", "{", "bsonType", "[", BCON_UTF8("long"), BCON_UTF8("decimal"),
                    BCON_UTF8("object"), "]", "}"); /* a number, or a bucket of a sketch */
        add_type(&members, "series", "long");
        add_type(&members, "top", "array");
        end_object(&of, &list, &members);
    }
    bson_append_document_end(to, &of);
}

/* Adds the members that every update sets. */
static void add_common(const struct schema *s, bson_t *to)
{
    add_type(to, "_id", "string");
    add_numbers(s, to, "applied", "long");
    add_type(to, "modified", "date");
    add_type(to, "v", "int");
}

static void add_required(const struct schema *s, bson_t *to)
{
    bson_t required;
    BSON_APPEND_ARRAY_BEGIN(to, "required", &required);
    BCON_APPEND(&required, "0", BCON_UTF8("applied"), "1", BCON_UTF8("modified"), "2", BCON_UTF8("v"));
    if (s->c->holds == HOLDS_DOCUMENTS)
        BSON_APPEND_UTF8(&required, "3", "metadata");
    bson_append_array_end(to, &required);
}

bool mongo_has_schema(const struct mongo_collection *c)
{
    return c->holds == HOLDS_DOCUMENTS || c->holds == HOLDS_SERIES || c->holds == HOLDS_BOOKS ||
           c->holds == HOLDS_TOP;
}

bool mongo_schema(const struct mongo_store *m, const struct mongo_collection *c, bool whole,
                  bson_t *validator)
{
    const struct schema s = {m, c, whole};
    bson_t schema, members;
    bson_init(validator);
    if (!mongo_has_schema(c))
        return false;
    BSON_APPEND_DOCUMENT_BEGIN(validator, "$jsonSchema", &schema);
    BSON_APPEND_UTF8(&schema, "description", MARK);
    BSON_APPEND_UTF8(&schema, "bsonType", "object");
    add_required(&s, &schema);
    BSON_APPEND_DOCUMENT_BEGIN(&schema, "properties", &members);
    add_common(&s, &members);
    if (c->holds == HOLDS_BOOKS)
        add_books(&s, &members);
    else if (c->holds == HOLDS_TOP)
        add_top(&s, &members);
    else
        add_metadata(&s, &members);
    if (c->holds == HOLDS_DOCUMENTS)
        add_measures(&s, &members);
    bson_append_document_end(&schema, &members);
    bson_append_document_end(validator, &schema);
    return true;
}

bool mongo_schema_is_ours(const bson_t *validator)
{
    return strcmp(mongo_text_at(validator, "$jsonSchema.description"), MARK) == 0;
}
