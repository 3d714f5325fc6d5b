#include "config/document.h"

#include "base/utf8.h"
#include "config/config.h"

#include <stdarg.h>
#include <stdio.h>

#define PROBLEM_BYTES_MAX 1024

void document_problem(struct document *d, yaml_mark_t at, const char *path, const char *format, ...)
{
    char text[PROBLEM_BYTES_MAX];
    if (d->problem_count++ >= CONFIG_PROBLEMS_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_printf(d->problems, "%s:%zu:%zu: %s%s%s\n", d->file, at.line + 1, at.column + 1, path,
                path[0] == '\0' ? "" : ": ", text);
}

/* The position of a byte; columns count characters, as libyaml's do. */
static yaml_mark_t mark_of(struct slice bytes, size_t offset)
{
    yaml_mark_t at = {.index = offset};
    for (size_t i = 0; i < offset && i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (c == '\n') {
            at.line++;
            at.column = 0;
        } else if ((c & 0xC0) != 0x80) {
            at.column++;
        }
    }
    return at;
}

static bool check_bytes(struct document *d, struct slice bytes)
{
    const unsigned char *begin = (const unsigned char *)bytes.ptr, *p = begin, *end = p + bytes.len;
    if (bytes.len > CONFIG_FILE_BYTES_MAX) {
        document_problem(d, (yaml_mark_t){0}, "", "found more than %zu bytes, expected a smaller file",
                         CONFIG_FILE_BYTES_MAX);
        return false;
    }
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (n == 0) {
            document_problem(d, mark_of(bytes, (size_t)(p - begin)), "",
                             "found the byte \\x%02x, expected UTF-8", *p);
            return false;
        }
        p += n;
    }
    return true;
}

static yaml_parser_t *start_parser(yaml_parser_t *parser, struct slice bytes)
{
    int made = yaml_parser_initialize(parser);
    ASSERT(made == 1); /* fails for lack of memory only */
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)bytes.ptr, bytes.len);
    return parser;
}

static void syntax_problem(struct document *d, const yaml_parser_t *parser, struct slice bytes)
{
    if (parser->error == YAML_READER_ERROR) {
        document_problem(d, mark_of(bytes, parser->problem_offset), "",
                         "found the character U+%04X, expected text without control characters",
                         (unsigned)parser->problem_value);
        return;
    }
    ASSERT(parser->error != YAML_MEMORY_ERROR);
    document_problem(
        d, parser->problem_mark, "", "found broken YAML (%s%s%s), expected lines of `key: value`%s",
        parser->context != NULL ? parser->context : "", parser->context != NULL ? ": " : "", parser->problem,
        strstr(parser->problem, "cannot start any token") != NULL ? ", without tabs" : "");
}

/* Checks one event. False: the document must not be built. */
static bool check_event(struct document *d, const yaml_event_t *ev, int *depth, int *documents)
{
    const unsigned char *anchor = NULL, *tag = NULL;
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++*documents == 1)
            break;
        document_problem(d, ev->start_mark, "", "found a second document, expected one");
        return false;
    case YAML_ALIAS_EVENT:
        document_problem(d, ev->start_mark, "", "found the alias *%.64s, expected its value written out",
                         (const char *)ev->data.alias.anchor);
        return false;
    case YAML_SCALAR_EVENT:
        anchor = ev->data.scalar.anchor;
        tag = ev->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        ++*depth;
        anchor = ev->data.sequence_start.anchor;
        tag = ev->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        ++*depth;
        anchor = ev->data.mapping_start.anchor;
        tag = ev->data.mapping_start.tag;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        --*depth;
        break;
    default:
        break;
    }
    if (anchor != NULL)
        document_problem(d, ev->start_mark, "", "found the anchor &%.64s, expected a value without",
                         (const char *)anchor);
    if (tag != NULL)
        document_problem(d, ev->start_mark, "", "found the tag %.64s, expected a value without",
                         (const char *)tag);
    if (*depth > DOCUMENT_DEPTH_MAX)
        document_problem(d, ev->start_mark, "", "found more than %d levels of nesting, expected fewer",
                         DOCUMENT_DEPTH_MAX);
    return *depth <= DOCUMENT_DEPTH_MAX;
}

static bool check_events(struct document *d, struct slice bytes)
{
    yaml_parser_t parser;
    yaml_event_t ev;
    int depth = 0, documents = 0;
    bool good = true, more = true;
    start_parser(&parser, bytes);
    while (more && good) {
        if (!yaml_parser_parse(&parser, &ev)) {
            syntax_problem(d, &parser, bytes);
            good = false;
            break;
        }
        more = ev.type != YAML_STREAM_END_EVENT;
        good = check_event(d, &ev, &depth, &documents);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    return good;
}

bool document_open(struct document *d, struct slice bytes, const char *file, struct text *problems)
{
    *d = (struct document){.file = file, .problems = problems};
    if (bytes.len == 0)
        bytes = slice_text(""); /* an empty file has no bytes to point to */
    if (!check_bytes(d, bytes) || !check_events(d, bytes))
        return false;
    yaml_parser_t parser;
    bool good = yaml_parser_load(start_parser(&parser, bytes), &d->yaml);
    if (!good)
        syntax_problem(d, &parser, bytes);
    yaml_parser_delete(&parser);
    return good;
}

void document_close(struct document *d)
{
    if (d->problem_count > CONFIG_PROBLEMS_MAX)
        text_printf(d->problems, "%s: and %zu more problems\n", d->file,
                    d->problem_count - CONFIG_PROBLEMS_MAX);
    yaml_document_delete(&d->yaml);
}

yaml_node_t *document_root(struct document *d)
{
    return yaml_document_get_root_node(&d->yaml);
}

struct slice document_scalar(const yaml_node_t *node)
{
    return slice_of((const char *)node->data.scalar.value, node->data.scalar.length);
}

bool document_is_nothing(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           node->data.scalar.length == 0;
}

const char *document_describe(const yaml_node_t *node, char buf[SUGGEST_QUOTE_BYTES])
{
    if (node->type == YAML_MAPPING_NODE)
        return "a mapping";
    if (node->type == YAML_SEQUENCE_NODE)
        return "a list";
    return document_is_nothing(node) ? "nothing" : suggest_quote(document_scalar(node), buf);
}

static bool is_collection(struct document *d, yaml_node_t *node, yaml_node_type_t type, const char *path,
                          const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (document_is_nothing(node))
        return true;
    if (node->type != type) {
        document_problem(d, node->start_mark, path, "found %s, expected %s", document_describe(node, quote),
                         expected);
        return false;
    }
    ptrdiff_t count = type == YAML_MAPPING_NODE
                          ? node->data.mapping.pairs.top - node->data.mapping.pairs.start
                          : node->data.sequence.items.top - node->data.sequence.items.start;
    if (count > DOCUMENT_ENTRIES_MAX)
        document_problem(d, node->start_mark, path, "found %td entries, expected at most %d", count,
                         DOCUMENT_ENTRIES_MAX);
    return count <= DOCUMENT_ENTRIES_MAX;
}

bool document_is_mapping(struct document *d, yaml_node_t *node, const char *path, const char *expected)
{
    return is_collection(d, node, YAML_MAPPING_NODE, path, expected);
}

bool document_is_list(struct document *d, yaml_node_t *node, const char *path, const char *expected)
{
    return is_collection(d, node, YAML_SEQUENCE_NODE, path, expected);
}

/* Adds names as they are, cut if too long; quotes any other key. */
void document_path(const char *parent, struct slice name, char path[DOCUMENT_PATH_BYTES])
{
    char quote[SUGGEST_QUOTE_BYTES];
    const char *dot = parent[0] == '\0' ? "" : ".";
    if (slice_is_name(name, REPORT_NAME_BYTES))
        snprintf(path, DOCUMENT_PATH_BYTES, "%.100s%s%.*s", parent, dot, SLICE_ARGS(name));
    else
        snprintf(path, DOCUMENT_PATH_BYTES, "%.100s%s%s", parent, dot, suggest_quote(name, quote));
}

void document_item_path(const char *parent, size_t index, char path[DOCUMENT_PATH_BYTES])
{
    snprintf(path, DOCUMENT_PATH_BYTES, "%.300s.%zu", parent, index);
}

static yaml_node_t *first_of_name(struct document *d, yaml_node_t *map, struct slice name)
{
    yaml_node_pair_t *p = map->data.mapping.pairs.start;
    for (;; p++) {
        ASSERT(p < map->data.mapping.pairs.top);
        yaml_node_t *key = yaml_document_get_node(&d->yaml, p->key);
        if (key->type == YAML_SCALAR_NODE && slice_equal(document_scalar(key), name))
            return key;
    }
}

bool document_next(struct document *d, yaml_node_t *map, const char *path, size_t *i, struct pair *pr)
{
    if (document_is_nothing(map))
        return false;
    while (map->data.mapping.pairs.start + *i < map->data.mapping.pairs.top) {
        const yaml_node_pair_t *p = map->data.mapping.pairs.start + (*i)++;
        pr->key = yaml_document_get_node(&d->yaml, p->key);
        pr->value = yaml_document_get_node(&d->yaml, p->value);
        if (pr->key->type != YAML_SCALAR_NODE) {
            document_problem(d, pr->key->start_mark, path, "found %s as a key, expected a name",
                             pr->key->type == YAML_MAPPING_NODE ? "a mapping" : "a list");
            continue;
        }
        pr->name = document_scalar(pr->key);
        document_path(path, pr->name, pr->path);
        const yaml_node_t *first = first_of_name(d, map, pr->name);
        if (first == pr->key)
            return true;
        document_problem(d, pr->key->start_mark, pr->path,
                         "found the key again, expected it once (it is on line %zu)",
                         first->start_mark.line + 1);
    }
    return false;
}

bool document_find(struct document *d, yaml_node_t *map, const char *path, const char *name, struct pair *pr)
{
    if (map->type != YAML_MAPPING_NODE)
        return false;
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        yaml_node_t *key = yaml_document_get_node(&d->yaml, p->key);
        if (key->type != YAML_SCALAR_NODE || !slice_is(document_scalar(key), name))
            continue;
        pr->key = key;
        pr->value = yaml_document_get_node(&d->yaml, p->value);
        pr->name = document_scalar(key);
        document_path(path, pr->name, pr->path);
        return true;
    }
    return false;
}

yaml_node_t *document_next_item(struct document *d, yaml_node_t *list, size_t *i)
{
    if (document_is_nothing(list) || list->data.sequence.items.start + *i >= list->data.sequence.items.top)
        return NULL;
    return yaml_document_get_node(&d->yaml, list->data.sequence.items.start[(*i)++]);
}
