#include "config/load.h"

#include "base/mem.h"
#include "config/expand.h"

#include <stdlib.h>

#define KEYS_MAX 16 /* keys in one section */

typedef void entry_fn(struct load *ld, const struct pair *pr);

/* The key of this name in any section. */
static const struct key *find_elsewhere(struct slice name)
{
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner == KEY_OF_config && slice_is(name, k->name))
            return k;
    }
    return NULL;
}

/* Adds ` (did you mean "path"?)`, or nothing. */
static void add_hint(const char *section, struct slice given, const char *const names[], struct text *out)
{
    static const char *const others[][3] = {/* section, as other programs call it, as it is called here */
                                            {"sources", "file", "path"},
                                            {"sources", "files", "path"},
                                            {"sources", "glob", "path"},
                                            {"kafka", "topic", "sources.NAME.topic"},
                                            {"kafka", "topics", "sources.NAME.topic"},
                                            {"rejects", "path", "file"}};
    char hint[SUGGEST_HINT_BYTES];
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(section, others[i][0]) == 0 && slice_is(given, others[i][1])) {
            text_printf(out, " (did you mean \"%s\"?)", others[i][2]);
            return;
        }
    }
    const struct key *elsewhere = find_elsewhere(given);
    suggest_hint(given, names, hint);
    if (hint[0] == '\0' && elsewhere != NULL)
        text_printf(out, " (did you mean \"%s.%s\"?)", elsewhere->section, elsewhere->name);
    else
        text_puts(out, hint);
}

/* `section`: "" if the key is the name of a section. */
static void unknown_key(struct load *ld, const char *section, const struct pair *pr,
                        const char *const names[])
{
    struct text list = {0};
    for (size_t i = 0; names[i] != NULL; i++)
        text_printf(&list, "%s%s", i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ", names[i]);
    add_hint(section, pr->name, names, &list);
    document_problem(ld->d, pr->key->start_mark, pr->path, "found an unknown key, expected %s", list.ptr);
    text_fini(&list);
}

static void unknown_in_section(struct load *ld, const char *section, const struct pair *pr)
{
    const char *names[KEYS_MAX + 1];
    size_t count = 0;
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) == 0) {
            ASSERT(count < KEYS_MAX);
            names[count++] = k->name;
        }
    }
    names[count] = NULL;
    unknown_key(ld, section, pr, names);
}

void load_note_reference(struct load *ld, const char *path, struct slice raw)
{
    struct config *c = ld->c;
    c->references = xrealloc(c->references, (c->reference_count + 1) * sizeof *c->references);
    c->references[c->reference_count++] =
        (struct config_reference){xstrdup(path), xstrndup(raw.ptr, raw.len)};
}

bool load_is_text(struct load *ld, const yaml_node_t *node, const char *path, const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    bool is_text = node->type == YAML_SCALAR_NODE && !document_is_nothing(node);
    if (!is_text)
        document_problem(ld->d, node->start_mark, path, "found %s, expected %s",
                         document_describe(node, quote), expected);
    return is_text;
}

/* Is the value one text without ${? If not, a problem is noted. */
static bool is_piece(struct load *ld, const yaml_node_t *node, const char *path, const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (!load_is_text(ld, node, path, expected))
        return false;
    if (!expand_is_reference(document_scalar(node)))
        return true;
    document_problem(
        ld->d, node->start_mark, path,
        "found %s, expected a text without ${: what is counted must not change with the environment",
        document_describe(node, quote));
    return false;
}

static void read_scalar(struct load *ld, const struct key *k, const struct pair *pr, void *base)
{
    struct text text = {0};
    struct err e;
    bool referred = false;
    keys_expected(k, &text);
    bool is_text = load_is_text(ld, pr->value, pr->path, text.ptr);
    text_clear(&text);
    if (!is_text) {
        text_fini(&text);
        return;
    }
    struct slice raw = document_scalar(pr->value);
    bool good = expand_text(raw, keys_may_be_file(k), &text, &referred, &e);
    if (good)
        good = keys_parse(k, slice_of(text.len > 0 ? text.ptr : "", text.len),
                          referred ? raw : (struct slice){0}, base, &e);
    if (!good)
        document_problem(ld->d, pr->value->start_mark, pr->path, "%s", e.text);
    else if (referred)
        load_note_reference(ld, pr->path, raw);
    text_fini(&text);
}

static void read_piece(struct load *ld, const struct key_traits *type, const yaml_node_t *node,
                       const struct pair *pr, key_add_fn *add, void *base)
{
    struct err e;
    if (is_piece(ld, node, pr->path, type->piece) && load_may_use(ld, node, pr->path, type->piece_kind) &&
        !add(pr->name, document_scalar(node), base, &e))
        document_problem(ld->d, node->start_mark, pr->path, "%s", e.text);
}

static bool add_text(struct load *ld, const yaml_node_t *node, const char *path, const char *expected,
                     struct text *out)
{
    if (!load_is_text(ld, node, path, expected))
        return false;
    struct slice text = document_scalar(node);
    text_add(out, text.ptr, text.len);
    return true;
}

/* Adds a text, or the texts of a list with commas between them. False: it is neither; a problem is noted. */
static bool join_texts(struct load *ld, yaml_node_t *node, const char *path, struct text *out)
{
    bool good = true;
    size_t i = 0;
    if (node->type != YAML_SEQUENCE_NODE)
        return add_text(ld, node, path, "a text, or a list of texts", out);
    for (yaml_node_t *item; good && (item = document_next_item(ld->d, node, &i)) != NULL;) {
        text_puts(out, i > 1 ? "," : "");
        good = add_text(ld, item, path, "a text", out);
    }
    return good;
}

/* Reads `NAME: TEXT` in a list as the piece "NAME:TEXT". A ${ in it stands for itself. */
static void read_named_piece(struct load *ld, const struct key *k, yaml_node_t *node, const struct pair *pr,
                             void *base)
{
    const struct key_traits *type = &keys_types[k->type];
    struct pair entry;
    struct text text = {0};
    struct err e;
    size_t i = 0, count = 0;
    for (; document_next(ld->d, node, pr->path, &i, &entry); count++) {
        text_clear(&text);
        text_printf(&text, "%.*s:", SLICE_ARGS(entry.name));
        if (count > 0)
            document_problem(ld->d, entry.key->start_mark, pr->path, "found one more, expected %s",
                             type->piece);
        else if (join_texts(ld, entry.value, entry.path, &text) &&
                 !type->add(pr->name, text_slice(&text), base, &e))
            document_problem(ld->d, entry.value->start_mark, pr->path, "%s", e.text);
    }
    if (count == 0)
        document_problem(ld->d, node->start_mark, pr->path, "found nothing, expected %s", type->piece);
    text_fini(&text);
}

/* Reads a list or a mapping, or one text if the type allows it. */
static void read_pieces(struct load *ld, const struct key *k, const struct pair *pr, void *base)
{
    const struct key_traits *type = &keys_types[k->type];
    bool is_mapping = strcmp(type->name, "mapping") == 0;
    struct pair entry;
    size_t i = 0;
    if (type->add_alone != NULL && pr->value->type == YAML_SCALAR_NODE && !document_is_nothing(pr->value)) {
        read_piece(ld, type, pr->value, pr, type->add_alone, base);
    } else if (is_mapping && document_is_mapping(ld->d, pr->value, pr->path, type->range)) {
        while (document_next(ld->d, pr->value, pr->path, &i, &entry))
            read_piece(ld, type, entry.value, &entry, type->add, base);
    } else if (!is_mapping && document_is_list(ld->d, pr->value, pr->path, type->range)) {
        for (yaml_node_t *item; (item = document_next_item(ld->d, pr->value, &i)) != NULL;) {
            if (k->type == KEY_DECODE && item->type == YAML_MAPPING_NODE)
                read_named_piece(ld, k, item, pr, base);
            else
                read_piece(ld, type, item, pr, type->add, base);
        }
    }
}

/* Reads all of `keep`, or nothing: no limit is compared with one that could not be read. */
static void read_keep(struct load *ld, const struct key *k, const struct pair *pr, struct report *r)
{
    const size_t problems = ld->d->problem_count;
    read_pieces(ld, k, pr, r);
    if (ld->d->problem_count > problems)
        memset(r->keep_ms, 0, sizeof r->keep_ms);
}

/* Is it a mapping? The error shows what one looks like, by the section's first key with a default. */
static bool is_section(struct load *ld, const char *section, const char *path, yaml_node_t *map)
{
    const struct key *k = keys_table;
    struct text expected = {0};
    while (k->name != NULL && (strcmp(k->section, section) != 0 || k->standard == NULL))
        k++;
    text_puts(&expected, "keys and values");
    if (k->name != NULL && strcmp(section, path) == 0) {
        const char *quote = strchr(k->standard, ':') == NULL ? "" : "\"";
        text_printf(&expected, ", such as `%s: {%s: %s%s%s}`", section, k->name, quote, k->standard, quote);
    }
    bool is_mapping = document_is_mapping(ld->d, map, path, expected.ptr);
    text_fini(&expected);
    return is_mapping;
}

void load_keys(struct load *ld, const char *section, const char *path, yaml_node_t *map, void *base)
{
    struct pair pr;
    if (!is_section(ld, section, path, map))
        return;
    for (size_t i = 0; document_next(ld->d, map, path, &i, &pr);) {
        const struct key *k = keys_find(section, pr.name);
        if (k == NULL)
            unknown_in_section(ld, section, &pr);
        else if (k->type == KEY_PROPERTIES)
            load_source_properties(ld, k, &pr);
        else if (k->type == KEY_ROUTES)
            load_derive_routes(ld, k, &pr);
        else if (k->type == KEY_PATHS)
            load_source_paths(ld, &pr, base);
        else if (k->type == KEY_KEEP)
            read_keep(ld, k, &pr, base);
        else if (keys_is_list(k))
            read_pieces(ld, k, &pr, base);
        else
            read_scalar(ld, k, &pr, base);
    }
}

/* Reads entries under names that the user chose, at most `max`. */
static void read_named(struct load *ld, const struct pair *section, size_t max, entry_fn *read)
{
    struct pair pr;
    size_t count = 0;
    if (!document_is_mapping(ld->d, section->value, section->path, "names, each with keys and values"))
        return;
    for (size_t i = 0; document_next(ld->d, section->value, section->path, &i, &pr); count++) {
        if (count < max)
            read(ld, &pr);
        else if (count == max)
            document_problem(ld->d, pr.key->start_mark, pr.path, "found one more, expected at most %zu", max);
    }
    if (count == 0)
        document_problem(ld->d, section->value->start_mark, section->path,
                         "found none, expected at least one (leave the section out for the built-in ones)");
}

static void read_section(struct load *ld, const struct pair *pr)
{
    if (slice_is(pr->name, "sources"))
        read_named(ld, pr, CONFIG_SOURCES_MAX, load_source_read);
    else if (slice_is(pr->name, "reports"))
        read_named(ld, pr, CONFIG_REPORTS_MAX, load_report_read);
    else if (keys_is_section(pr->name))
        load_keys(ld, pr->path, pr->path, pr->value, ld->c);
    else
        unknown_key(ld, "", pr, keys_section_names);
}

static void check_tls(struct load *ld)
{
    const struct config *c = ld->c;
    const char *alone = c->http.tls_cert != NULL ? "tls_cert" : "tls_key";
    struct pair http, pr;
    if ((c->http.tls_cert == NULL) == (c->http.tls_key == NULL))
        return;
    if (document_find(ld->d, document_root(ld->d), "", "http", &http) &&
        document_find(ld->d, http.value, http.path, alone, &pr))
        document_problem(ld->d, pr.key->start_mark, pr.path, "there is no http.%s, expected both or none",
                         c->http.tls_cert != NULL ? "tls_key" : "tls_cert");
}

void load_document(struct config *c, struct document *d)
{
    static const char expected[] = "sections such as `store: {url: \"sqlite:tallyd.db\"}`";
    struct load ld = {.c = c, .d = d};
    struct pair pr;
    yaml_node_t *root = document_root(d);
    if (root == NULL || document_is_nothing(root)) {
        document_problem(d, (yaml_mark_t){0}, "", "found an empty file, expected %s", expected);
        return;
    }
    if (!document_is_mapping(d, root, "", expected))
        return;
    c->sources = xcalloc(CONFIG_SOURCES_MAX, sizeof *c->sources);
    c->reports = xcalloc(CONFIG_REPORTS_MAX, sizeof *c->reports);
    /* Sources refer to settings of derived fields, reports to both. */
    if (document_find(d, root, "", "derive", &pr))
        read_section(&ld, &pr);
    if (document_find(d, root, "", "sources", &pr))
        read_section(&ld, &pr);
    ld.sources_are_good = d->problem_count == 0;
    for (size_t i = 0; document_next(d, root, "", &i, &pr);) {
        if (!slice_is(pr.name, "sources") && !slice_is(pr.name, "derive"))
            read_section(&ld, &pr);
    }
    load_source_rules(&ld);
    check_tls(&ld);
}
