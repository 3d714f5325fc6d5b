#include "ingest/schema/proto_schema.h"

#include "base/mem.h"
#include "ingest/schema/proto_descriptor.h"
#include "ingest/schema/proto_known.h"
#include "ingest/schema/proto_lex.h"

#include <stdlib.h>
#include <sysexits.h>

/* A message or enum by its full name, "a.b.C". */
struct named {
    struct text name;
    bool is_enum;
    uint32_t index;
};

/* A field whose type is looked up once all texts are parsed. */
struct pending {
    uint32_t message; /* whose field it is */
    struct proto_part field;
    struct text type, scope;
};

struct parser {
    struct proto_schema *schema;
    struct proto_lex lex;
    struct named *names;
    struct pending *fields;
    size_t name_count, name_capacity, field_count, field_capacity;
    bool is_implicit; /* a field without a label has a default */
    unsigned depth;
    struct err *e;
};

static const char *const scalars[] = {
    [PROTO_DOUBLE] = "double",   [PROTO_FLOAT] = "float",       [PROTO_INT32] = "int32",
    [PROTO_INT64] = "int64",     [PROTO_UINT32] = "uint32",     [PROTO_UINT64] = "uint64",
    [PROTO_SINT32] = "sint32",   [PROTO_SINT64] = "sint64",     [PROTO_FIXED32] = "fixed32",
    [PROTO_FIXED64] = "fixed64", [PROTO_SFIXED32] = "sfixed32", [PROTO_SFIXED64] = "sfixed64",
    [PROTO_BOOL] = "bool",       [PROTO_TEXT] = "string",       [PROTO_BYTES] = "bytes",
    [PROTO_SCALAR_COUNT] = NULL};

void proto_schema_free(struct proto_schema *s)
{
    if (s == NULL)
        return;
    free(s->messages);
    free(s->enums);
    free(s->parts);
    text_fini(&s->labels);
    free(s);
}

uint32_t proto_schema_find(const struct proto_schema *s, uint32_t parent, uint32_t index)
{
    uint32_t defined = PROTO_NONE, listed = PROTO_NONE, definitions = 0, all = 0;
    for (uint32_t i = s->main; i < s->message_count && (definitions <= index || all <= index); i++) {
        const struct proto_message *m = &s->messages[i];
        if (m->parent != parent)
            continue;
        if (!m->is_entry && definitions++ == index)
            defined = i;
        if (all++ == index && !m->is_entry)
            listed = i;
    }
    if (defined == listed || listed == PROTO_NONE)
        return defined;
    return defined == PROTO_NONE ? listed : PROTO_NONE;
}

/* ---- tokens */

static bool fail(struct parser *p, const char *expected)
{
    struct slice found = p->lex.token.text;
    return err_set(p->e, EX_DATAERR, "found \"%.*s\", expected %s", (int)(found.len < 100 ? found.len : 100),
                   found.ptr, expected);
}

static bool take(struct parser *p, const char *text)
{
    bool is = proto_lex_is(&p->lex, text);
    if (is)
        proto_lex_next(&p->lex);
    return is;
}

static bool expect(struct parser *p, const char *text)
{
    return take(p, text) || fail(p, text);
}

static bool take_name(struct parser *p, struct slice *name)
{
    *name = p->lex.token.text;
    if (p->lex.token.kind != PROTO_WORD)
        return fail(p, "a name");
    proto_lex_next(&p->lex);
    return true;
}

static bool take_number(struct parser *p, int32_t *number)
{
    char digits[32];
    bool is_negative = take(p, "-");
    struct slice text = p->lex.token.text;
    char *end;
    if (p->lex.token.kind != PROTO_NUMBER || text.len >= sizeof digits)
        return fail(p, "a number");
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    long long value = strtoll(digits, &end, 0);
    value = is_negative ? -value : value;
    if (*end != '\0' || value < INT32_MIN || value > INT32_MAX)
        return fail(p, "a number of 32 bits");
    *number = (int32_t)value;
    proto_lex_next(&p->lex);
    return true;
}

/* Skips up to the end of a statement, or over its block. */
static bool skip_statement(struct parser *p)
{
    for (size_t depth = 0; p->lex.token.kind != PROTO_END;) {
        bool closes = proto_lex_is(&p->lex, "}"), ends = proto_lex_is(&p->lex, ";");
        depth += proto_lex_is(&p->lex, "{");
        if (closes && depth == 0)
            break;
        depth -= closes;
        proto_lex_next(&p->lex);
        if (depth == 0 && (ends || closes))
            return true;
    }
    return fail(p, "the end of a statement");
}

/* Skips the options of a field, "[packed = false]". */
static bool skip_options(struct parser *p)
{
    if (!take(p, "["))
        return true;
    for (size_t depth = 1; depth > 0; proto_lex_next(&p->lex)) {
        if (p->lex.token.kind == PROTO_END)
            return fail(p, "]");
        depth += proto_lex_is(&p->lex, "[");
        depth -= proto_lex_is(&p->lex, "]");
    }
    return true;
}

/* ---- definitions */

static void add_scoped(struct text *out, struct slice scope, struct slice name)
{
    text_add(out, scope.ptr, scope.len);
    text_puts(out, scope.len > 0 ? "." : "");
    text_add(out, name.ptr, name.len);
}

static const struct named *find_named(const struct parser *p, struct slice name)
{
    for (size_t i = 0; i < p->name_count; i++) {
        if (slice_equal(text_slice(&p->names[i].name), name))
            return &p->names[i];
    }
    return NULL;
}

/* Its name lives as long as the parser. */
static bool add_name(struct parser *p, struct slice scope, struct slice name, bool is_enum, uint32_t index,
                     struct slice *full)
{
    struct named n = {.is_enum = is_enum, .index = index};
    add_scoped(&n.name, scope, name);
    *full = text_slice(&n.name);
    if (find_named(p, *full) != NULL) {
        err_set(p->e, EX_DATAERR, "found twice the type %.100s", n.name.ptr);
        text_fini(&n.name);
        return false;
    }
    p->names = xgrow(p->names, &p->name_capacity, p->name_count + 1, sizeof *p->names);
    p->names[p->name_count++] = n;
    return true;
}

static bool add_message(struct parser *p, uint32_t parent, uint32_t *index)
{
    struct proto_schema *s = p->schema;
    if (s->message_count == PROTO_TYPES_MAX)
        return err_set(p->e, EX_DATAERR, "it has more than %d messages", PROTO_TYPES_MAX);
    s->messages = xgrow(s->messages, &s->message_capacity, s->message_count + 1, sizeof *s->messages);
    *index = (uint32_t)s->message_count++;
    s->messages[*index] = (struct proto_message){.parent = parent};
    return true;
}

static bool add_part(struct parser *p, const struct proto_part *part)
{
    struct proto_schema *s = p->schema;
    if (s->part_count == PROTO_PARTS_MAX)
        return err_set(p->e, EX_DATAERR, "it has more than %d fields and values", PROTO_PARTS_MAX);
    s->parts = xgrow(s->parts, &s->part_capacity, s->part_count + 1, sizeof *s->parts);
    s->parts[s->part_count++] = *part;
    return true;
}

static void set_label(struct parser *p, struct proto_part *part, struct slice name, const char *end)
{
    struct text *labels = &p->schema->labels;
    part->label_at = (uint32_t)labels->len;
    text_json(labels, name);
    text_puts(labels, end);
    part->label_len = (uint32_t)(labels->len - part->label_at);
}

static bool add_field(struct parser *p, uint32_t message, struct slice scope, const struct proto_part *field,
                      struct slice type)
{
    if (field->number <= 0)
        return err_set(p->e, EX_DATAERR, "found a field with the number %d, expected one above 0",
                       field->number);
    if (p->field_count == PROTO_PARTS_MAX)
        return err_set(p->e, EX_DATAERR, "it has more than %d fields", PROTO_PARTS_MAX);
    p->fields = xgrow(p->fields, &p->field_capacity, p->field_count + 1, sizeof *p->fields);
    struct pending *f = &p->fields[p->field_count++];
    *f = (struct pending){.message = message, .field = *field};
    text_add(&f->type, type.ptr, type.len);
    text_add(&f->scope, scope.ptr, scope.len);
    return true;
}

/* "NAME = NUMBER [options];" */
static bool take_field_end(struct parser *p, struct proto_part *field)
{
    struct slice name;
    if (!take_name(p, &name))
        return false;
    set_label(p, field, name, ":");
    return expect(p, "=") && take_number(p, &field->number) && skip_options(p) && expect(p, ";");
}

/* "map<KEY, VALUE> NAME = NUMBER;": a repeated message of two fields. */
static bool parse_map(struct parser *p, uint32_t message, struct slice scope)
{
    struct proto_part key = {.number = 1, .has_default = true}, value = {.number = 2, .has_default = true};
    struct proto_part field = {.kind = PROTO_MESSAGE, .is_repeated = true, .is_map = true};
    struct slice key_type, value_type;
    uint32_t entry = 0;
    if (!expect(p, "<") || !take_name(p, &key_type) || !expect(p, ",") || !take_name(p, &value_type) ||
        !expect(p, ">") || !add_message(p, message, &entry))
        return false;
    p->schema->messages[entry].is_entry = true;
    field.type = entry;
    return take_field_end(p, &field) && add_field(p, message, scope, &field, slice_of("", 0)) &&
           add_field(p, entry, scope, &key, key_type) && add_field(p, entry, scope, &value, value_type);
}

static bool parse_field(struct parser *p, uint32_t message, struct slice scope, uint32_t oneof)
{
    struct slice type;
    struct proto_part field = {.oneof = oneof, .type = PROTO_NONE};
    field.is_repeated = take(p, "repeated");
    bool is_labelled = field.is_repeated || take(p, "optional") || take(p, "required");
    field.has_default = p->is_implicit && !is_labelled && oneof == 0;
    if (take(p, "group"))
        return fail(p, "no group: it cannot be read");
    if (!take_name(p, &type))
        return false;
    if (slice_is(type, "map") && proto_lex_is(&p->lex, "<"))
        return parse_map(p, message, scope);
    return take_field_end(p, &field) && add_field(p, message, scope, &field, type);
}

static bool parse_oneof(struct parser *p, uint32_t message, struct slice scope)
{
    struct slice name;
    uint32_t number = ++p->schema->oneofs;
    if (!take_name(p, &name) || !expect(p, "{"))
        return false;
    while (!take(p, "}")) {
        bool is_field = !proto_lex_is(&p->lex, "option") && !proto_lex_is(&p->lex, ";");
        if (is_field ? !parse_field(p, message, scope, number) : !skip_statement(p))
            return false;
    }
    return true;
}

static bool parse_value(struct parser *p)
{
    struct proto_part value = {0};
    struct slice name;
    if (!take_name(p, &name))
        return false;
    set_label(p, &value, name, "");
    return expect(p, "=") && take_number(p, &value.number) && skip_options(p) && expect(p, ";") &&
           add_part(p, &value);
}

static bool parse_enum(struct parser *p, struct slice scope)
{
    struct proto_schema *s = p->schema;
    struct slice name, full;
    const struct proto_enum new = {.first = (uint32_t)s->part_count};
    s->enums = xgrow(s->enums, &s->enum_capacity, s->enum_count + 1, sizeof *s->enums);
    struct proto_enum *en = &s->enums[s->enum_count];
    *en = new;
    if (!take_name(p, &name) || !add_name(p, scope, name, true, (uint32_t)s->enum_count++, &full) ||
        !expect(p, "{"))
        return false;
    while (!take(p, "}")) {
        bool is_other = proto_lex_is(&p->lex, "option") || proto_lex_is(&p->lex, "reserved") ||
                        proto_lex_is(&p->lex, ";");
        if (is_other ? !skip_statement(p) : !parse_value(p))
            return false;
    }
    en->count = (uint32_t)s->part_count - en->first;
    return en->count > 0 || fail(p, "an enum with a value");
}

static bool parse_message(struct parser *p, uint32_t parent, struct slice scope);

static bool parse_member(struct parser *p, uint32_t message, struct slice scope)
{
    static const char *const others[] = {"option", "extensions", "reserved", "extend", ";", NULL};
    if (p->lex.token.kind != PROTO_STRING && slice_find(p->lex.token.text, others) >= 0)
        return skip_statement(p);
    if (take(p, "message"))
        return parse_message(p, message, scope);
    if (take(p, "enum"))
        return parse_enum(p, scope);
    if (take(p, "oneof"))
        return parse_oneof(p, message, scope);
    return parse_field(p, message, scope, 0);
}

static bool parse_message(struct parser *p, uint32_t parent, struct slice scope)
{
    struct slice name, full;
    uint32_t index;
    if (p->depth == PROTO_DEPTH_MAX)
        return err_set(p->e, EX_DATAERR, "it is nested deeper than %d messages", PROTO_DEPTH_MAX);
    if (!take_name(p, &name) || !add_message(p, parent, &index) ||
        !add_name(p, scope, name, false, index, &full) || !expect(p, "{"))
        return false;
    p->depth++;
    while (!take(p, "}")) {
        if (p->lex.token.kind == PROTO_END)
            return fail(p, "}");
        if (!parse_member(p, index, full))
            return false;
    }
    p->depth--;
    return true;
}

/* "syntax = "proto3";" or an edition; without it, proto2. */
static bool parse_syntax(struct parser *p)
{
    if (!take(p, "syntax"))
        return !take(p, "edition") || skip_statement(p);
    if (!expect(p, "="))
        return false;
    p->is_implicit = slice_is(p->lex.token.text, "\"proto3\"") || slice_is(p->lex.token.text, "'proto3'");
    return skip_statement(p);
}

static bool parse_file(struct parser *p, struct slice text)
{
    struct slice package = {"", 0};
    proto_lex_init(&p->lex, text);
    p->is_implicit = false;
    p->schema->main = (uint32_t)p->schema->message_count;
    bool good = parse_syntax(p);
    while (good && p->lex.token.kind != PROTO_END) {
        if (take(p, "package"))
            good = take_name(p, &package) && expect(p, ";");
        else if (take(p, "message"))
            good = parse_message(p, PROTO_NONE, package);
        else if (take(p, "enum"))
            good = parse_enum(p, package);
        else
            good = skip_statement(p);
    }
    return good;
}

/* The text of a file, or its descriptor in base64. */
static bool parse_any(struct parser *p, struct slice text)
{
    struct text written = {0};
    if (!proto_is_descriptor(text))
        return parse_file(p, text);
    bool good = (proto_descriptor_text(text, &written) ||
                 err_set(p->e, EX_DATAERR, "found base64 that is no FileDescriptorProto")) &&
                parse_file(p, text_slice(&written));
    text_fini(&written);
    return good;
}

/* ---- types of fields */

/* Finds a name as seen from a scope: the innermost one counts. */
static const struct named *resolve(const struct parser *p, struct slice scope, struct slice type)
{
    struct text full = {0};
    const struct named *found = NULL;
    if (type.ptr[0] == '.')
        return find_named(p, slice_of(type.ptr + 1, type.len - 1));
    while (true) {
        text_clear(&full);
        add_scoped(&full, scope, type);
        found = find_named(p, text_slice(&full));
        if (found != NULL || scope.len == 0)
            break;
        while (scope.len > 0 && scope.ptr[scope.len - 1] != '.')
            scope.len--;
        scope.len -= scope.len > 0; /* the point */
    }
    text_fini(&full);
    return found;
}

static bool settle_type(struct parser *p, struct pending *f)
{
    struct slice type = text_slice(&f->type);
    if (f->field.is_map)
        return true;
    int scalar = slice_find(type, scalars);
    if (scalar >= 0) {
        f->field.kind = (enum proto_kind)scalar;
        return true;
    }
    const struct named *found = resolve(p, text_slice(&f->scope), type);
    if (found == NULL)
        return err_set(p->e, EX_DATAERR, "found the type, which is not defined: %.100s", f->type.ptr);
    f->field.kind = found->is_enum ? PROTO_ENUM : PROTO_MESSAGE;
    f->field.type = found->index;
    /* a message has no default, but the value of a map's entry is there even if it is left out */
    f->field.has_default =
        f->field.has_default && (found->is_enum || p->schema->messages[f->message].is_entry);
    return true;
}

static int compare_fields(const void *a, const void *b)
{
    const struct pending *fa = a, *fb = b;
    if (fa->message != fb->message)
        return fa->message < fb->message ? -1 : 1;
    return (fa->field.number > fb->field.number) - (fa->field.number < fb->field.number);
}

static void set_forms(struct parser *p)
{
    static const char *const seconds[] = {"google.protobuf.Timestamp", "google.protobuf.Duration", NULL};
    for (size_t i = 0; i < p->name_count; i++) {
        struct slice name = text_slice(&p->names[i].name);
        bool is_known = slice_begins(name, slice_text("google.protobuf."));
        bool is_value = name.len > 21 && memcmp(slice_end(name) - 5, "Value", 5) == 0;
        struct proto_message *m = &p->schema->messages[p->names[i].index];
        if (!is_known || p->names[i].is_enum)
            continue;
        if (slice_find(name, seconds) >= 0)
            m->form = PROTO_SECONDS;
        else if (is_value && m->count == 1 && !p->schema->parts[m->first].is_repeated)
            m->form = PROTO_WRAPPED;
    }
}

/* Gives each message its fields, sorted by number. */
static bool settle_fields(struct parser *p)
{
    bool good = true;
    for (size_t i = 0; i < p->field_count && good; i++)
        good = settle_type(p, &p->fields[i]);
    if (!good)
        return false;
    if (p->field_count > 0)
        qsort(p->fields, p->field_count, sizeof *p->fields, compare_fields);
    for (size_t i = 0; i < p->field_count && good; i++) {
        struct proto_message *m = &p->schema->messages[p->fields[i].message];
        if (m->count == 0)
            m->first = (uint32_t)p->schema->part_count;
        else if (p->schema->parts[p->schema->part_count - 1].number == p->fields[i].field.number)
            return err_set(p->e, EX_DATAERR, "found twice a field with the number %d",
                           p->fields[i].field.number);
        m->count++;
        good = add_part(p, &p->fields[i].field);
    }
    if (good)
        set_forms(p);
    return good;
}

struct proto_schema *proto_schema_new(const struct slice *texts, size_t count, struct err *e)
{
    struct parser p = {.schema = xcalloc(1, sizeof *p.schema), .e = e};
    bool good = parse_file(&p, slice_text(PROTO_KNOWN));
    for (size_t i = 0; i < count && good; i++)
        good = parse_any(&p, texts[i]);
    good = good && settle_fields(&p);
    for (size_t i = 0; i < p.name_count; i++)
        text_fini(&p.names[i].name);
    for (size_t i = 0; i < p.field_count; i++) {
        text_fini(&p.fields[i].type);
        text_fini(&p.fields[i].scope);
    }
    free(p.names);
    free(p.fields);
    if (good)
        return p.schema;
    err_prefix(e, "the .proto file cannot be used");
    proto_schema_free(p.schema);
    return NULL;
}
