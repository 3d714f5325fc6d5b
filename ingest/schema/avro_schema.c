#include "ingest/schema/avro_schema.h"

#include "base/mem.h"
#include "ingest/schema/schema_json.h"

#include <stdlib.h>
#include <sysexits.h>

#define SCALE_MAX 64 /* decimals of a number */

/* A type that has a name: its full name, and its node. */
struct named {
    struct text name;
    uint32_t node;
};

struct parser {
    struct avro_schema *schema;
    struct named *names;
    size_t name_count, name_capacity;
    unsigned depth;
    struct err *e;
};

static const char *const primitives[] = {
    [AVRO_NULL] = "null",   [AVRO_BOOLEAN] = "boolean", [AVRO_INT] = "int",
    [AVRO_LONG] = "long",   [AVRO_FLOAT] = "float",     [AVRO_DOUBLE] = "double",
    [AVRO_BYTES] = "bytes", [AVRO_STRING] = "string",   [AVRO_PRIMITIVE_COUNT] = NULL};

/* Logical types, by the type below them. */
static const struct {
    const char *name;
    enum avro_kind kind;
    enum avro_form form;
    uint32_t scale;
} logicals[] = {{"date", AVRO_INT, AVRO_DATE, 0},
                {"time-millis", AVRO_INT, AVRO_SECONDS, 3},
                {"time-micros", AVRO_LONG, AVRO_SECONDS, 6},
                {"timestamp-millis", AVRO_LONG, AVRO_SECONDS, 3},
                {"timestamp-micros", AVRO_LONG, AVRO_SECONDS, 6},
                {"timestamp-nanos", AVRO_LONG, AVRO_SECONDS, 9},
                {"local-timestamp-millis", AVRO_LONG, AVRO_SECONDS, 3},
                {"local-timestamp-micros", AVRO_LONG, AVRO_SECONDS, 6},
                {"local-timestamp-nanos", AVRO_LONG, AVRO_SECONDS, 9},
                {"decimal", AVRO_BYTES, AVRO_DECIMAL, 0},
                {"decimal", AVRO_FIXED, AVRO_DECIMAL, 0},
                {"uuid", AVRO_FIXED, AVRO_UUID, 0}};

void avro_schema_free(struct avro_schema *s)
{
    if (s == NULL)
        return;
    free(s->nodes);
    free(s->parts);
    text_fini(&s->labels);
    free(s);
}

static bool fail(struct parser *p, const char *what, struct slice name)
{
    return err_set(p->e, EX_DATAERR, "%s %.*s", what, (int)(name.len < 100 ? name.len : 100),
                   name.ptr != NULL ? name.ptr : "");
}

static bool add_node(struct parser *p, enum avro_kind kind, uint32_t *node)
{
    struct avro_schema *s = p->schema;
    if (s->node_count == AVRO_NODES_MAX)
        return err_set(p->e, EX_DATAERR, "it has more than %d types", AVRO_NODES_MAX);
    s->nodes = xgrow(s->nodes, &s->node_capacity, s->node_count + 1, sizeof *s->nodes);
    *node = (uint32_t)s->node_count++;
    s->nodes[*node] = (struct avro_node){.kind = kind};
    return true;
}

/* Makes room for the parts of a node, which stand together. */
static bool add_parts(struct parser *p, uint32_t node, size_t count)
{
    struct avro_schema *s = p->schema;
    if (count > AVRO_PARTS_MAX - s->part_count)
        return err_set(p->e, EX_DATAERR, "it has more than %d fields, branches and symbols", AVRO_PARTS_MAX);
    s->parts = xgrow(s->parts, &s->part_capacity, s->part_count + count + 1, sizeof *s->parts);
    memset(s->parts + s->part_count, 0, count * sizeof *s->parts);
    s->nodes[node].first = (uint32_t)s->part_count;
    s->nodes[node].count = (uint32_t)count;
    s->part_count += count;
    return true;
}

static struct avro_part *part_of(struct parser *p, uint32_t node, size_t i)
{
    return &p->schema->parts[p->schema->nodes[node].first + i];
}

static void set_label(struct parser *p, struct avro_part *part, struct slice name, const char *end)
{
    struct text *labels = &p->schema->labels;
    part->label_at = (uint32_t)labels->len;
    text_json(labels, name);
    text_puts(labels, end);
    part->label_len = (uint32_t)(labels->len - part->label_at);
}

/* The namespace of a full name: what stands before its last point. */
static struct slice space_of(struct slice name)
{
    size_t len = name.len;
    while (len > 0 && name.ptr[len - 1] != '.')
        len--;
    return slice_of(name.ptr, len > 0 ? len - 1 : 0);
}

static void add_full_name(struct slice name, struct slice space, struct text *out)
{
    if (space.len > 0 && memchr(name.ptr, '.', name.len) == NULL) {
        text_add(out, space.ptr, space.len);
        text_putc(out, '.');
    }
    text_add(out, name.ptr, name.len);
}

static const struct named *find_named(const struct parser *p, struct slice full)
{
    for (size_t i = 0; i < p->name_count; i++) {
        if (slice_equal(text_slice(&p->names[i].name), full))
            return &p->names[i];
    }
    return NULL;
}

/* Gives the type the name that its schema says; *space: the namespace of names within it. */
static bool name_type(struct parser *p, const json_t *type, uint32_t node, struct slice *space)
{
    struct slice name = schema_json_text(schema_json_member(type, "name"));
    const json_t *own = schema_json_member(type, "namespace");
    struct text full = {0};
    if (name.len == 0)
        return fail(p, "found a type without a name", name);
    add_full_name(name, own != NULL ? schema_json_text(own) : *space, &full);
    if (find_named(p, text_slice(&full)) != NULL) {
        text_fini(&full);
        return fail(p, "found twice the type", name);
    }
    p->names = xgrow(p->names, &p->name_capacity, p->name_count + 1, sizeof *p->names);
    p->names[p->name_count++] = (struct named){full, node};
    *space = space_of(text_slice(&full));
    return true;
}

static bool parse_type(struct parser *p, const json_t *type, struct slice space, uint32_t *node);

/* A name: of a primitive type, or of one that is defined before. */
static bool parse_name(struct parser *p, struct slice name, struct slice space, uint32_t *node)
{
    struct text full = {0};
    int primitive = slice_find(name, primitives);
    if (primitive >= 0)
        return add_node(p, (enum avro_kind)primitive, node);
    add_full_name(name, space, &full);
    const struct named *found = find_named(p, text_slice(&full));
    text_fini(&full);
    if (found == NULL)
        found = find_named(p, name);
    if (found == NULL)
        return fail(p, "found the type, which is not defined:", name);
    *node = found->node;
    return true;
}

static bool parse_fields(struct parser *p, const json_t *fields, struct slice space, uint32_t node)
{
    if (!json_is_array(fields))
        return fail(p, "found a record without fields", slice_of(NULL, 0));
    size_t count = schema_json_count(fields);
    if (!add_parts(p, node, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *field = schema_json_element(fields, i);
        struct slice name = schema_json_text(schema_json_member(field, "name"));
        uint32_t type;
        if (name.len == 0)
            return fail(p, "found a field without a name", name);
        set_label(p, part_of(p, node, i), name, ":");
        if (!parse_type(p, schema_json_member(field, "type"), space, &type))
            return false;
        part_of(p, node, i)->node = type;
    }
    return true;
}

static bool parse_symbols(struct parser *p, const json_t *symbols, uint32_t node)
{
    size_t count = schema_json_count(symbols);
    if (!add_parts(p, node, count))
        return false;
    for (size_t i = 0; i < count; i++)
        set_label(p, part_of(p, node, i), schema_json_text(schema_json_element(symbols, i)), "");
    return true;
}

static bool parse_union(struct parser *p, const json_t *branches, struct slice space, uint32_t *node)
{
    size_t count = schema_json_count(branches);
    if (!add_node(p, AVRO_UNION, node) || !add_parts(p, *node, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t type;
        if (!parse_type(p, schema_json_element(branches, i), space, &type))
            return false;
        part_of(p, *node, i)->node = type;
    }
    return true;
}

/* Notes a logical type that this reader knows; others are the type below them. */
static void note_logical(struct parser *p, const json_t *type, uint32_t node)
{
    struct avro_node *n = &p->schema->nodes[node];
    struct slice name = schema_json_text(schema_json_member(type, "logicalType"));
    int64_t scale = schema_json_integer(schema_json_member(type, "scale"), 0);
    for (size_t i = 0; name.ptr != NULL && i < COUNT_OF(logicals); i++) {
        if (logicals[i].kind != n->kind || !slice_is(name, logicals[i].name))
            continue;
        bool is_decimal = logicals[i].form == AVRO_DECIMAL;
        if ((is_decimal && (scale < 0 || scale > SCALE_MAX)) ||
            (logicals[i].form == AVRO_UUID && n->count != 16))
            continue;
        n->form = logicals[i].form;
        n->scale = is_decimal ? (uint32_t)scale : logicals[i].scale;
    }
}

static bool parse_fixed(struct parser *p, const json_t *type, uint32_t node)
{
    int64_t size = schema_json_integer(schema_json_member(type, "size"), -1);
    if (size < 0 || size > INT32_MAX)
        return fail(p, "found a fixed type without a size", slice_of(NULL, 0));
    p->schema->nodes[node].count = (uint32_t)size;
    return true;
}

/* A type that has a name: it may refer to itself, so it is known before its content is. */
static bool parse_named(struct parser *p, const json_t *type, enum avro_kind kind, struct slice space,
                        uint32_t *node)
{
    if (!add_node(p, kind, node) || !name_type(p, type, *node, &space))
        return false;
    return kind == AVRO_RECORD ? parse_fields(p, schema_json_member(type, "fields"), space, *node)
           : kind == AVRO_ENUM ? parse_symbols(p, schema_json_member(type, "symbols"), *node)
                               : parse_fixed(p, type, *node);
}

/* {"type": …}: a type with attributes. */
static bool parse_object(struct parser *p, const json_t *type, struct slice space, uint32_t *node)
{
    const json_t *of = schema_json_member(type, "type");
    const size_t before = p->schema->node_count;
    struct slice name = schema_json_text(of);
    bool is_record = slice_is(name, "record") || slice_is(name, "error");
    bool is_array = slice_is(name, "array"), is_map = slice_is(name, "map"), good;
    if (is_array || is_map) {
        uint32_t element;
        good = add_node(p, is_array ? AVRO_ARRAY : AVRO_MAP, node) &&
               parse_type(p, schema_json_member(type, is_array ? "items" : "values"), space, &element);
        if (good)
            p->schema->nodes[*node].first = element;
        return good;
    }
    if (is_record || slice_is(name, "enum") || slice_is(name, "fixed"))
        good = parse_named(p, type,
                           is_record                ? AVRO_RECORD
                           : slice_is(name, "enum") ? AVRO_ENUM
                                                    : AVRO_FIXED,
                           space, node);
    else
        good = parse_type(p, of, space, node);
    if (good && *node >= before) /* else it is a type that was defined elsewhere */
        note_logical(p, type, *node);
    return good;
}

static bool parse_type(struct parser *p, const json_t *type, struct slice space, uint32_t *node)
{
    struct slice name = schema_json_text(type);
    if (p->depth == AVRO_DEPTH_MAX)
        return err_set(p->e, EX_DATAERR, "it is nested deeper than %d types", AVRO_DEPTH_MAX);
    p->depth++;
    bool good = name.ptr != NULL       ? parse_name(p, name, space, node)
                : json_is_array(type)  ? parse_union(p, type, space, node)
                : json_is_object(type) ? parse_object(p, type, space, node)
                                       : fail(p, "found no type", slice_of(NULL, 0));
    p->depth--;
    return good;
}

static bool parse_text(struct parser *p, struct slice text)
{
    json_t *tree = schema_json_parse(text, p->e);
    bool good = tree != NULL && parse_type(p, tree, slice_of("", 0), &p->schema->root);
    schema_json_free(tree);
    return good;
}

struct avro_schema *avro_schema_new(const struct slice *texts, size_t count, struct err *e)
{
    struct parser p = {.schema = xcalloc(1, sizeof *p.schema), .e = e};
    bool good = schema_json_open(e);
    for (size_t i = 0; i < count && good; i++)
        good = parse_text(&p, texts[i]) || err_prefix(e, "the Avro schema cannot be used");
    for (size_t i = 0; i < p.name_count; i++)
        text_fini(&p.names[i].name);
    free(p.names);
    if (good)
        return p.schema;
    avro_schema_free(p.schema);
    return NULL;
}
