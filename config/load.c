#include "config/load.h"

#include "base/mem.h"
#include "config/expand.h"
#include "config/keys.h"

#include <stdlib.h>

#define KEYS_MAX 16 /* of one section */

struct load {
    struct config *c;
    struct document *d;
};

typedef void entry_fn(struct load *ld, struct pair *pr);

/* Another section that has a key of this name. */
static const struct key *find_elsewhere(struct slice name)
{
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner == KEY_OF_config && slice_is(name, k->name))
            return k;
    }
    return NULL;
}

static void unknown_key(struct load *ld, const struct pair *pr, const char *const names[])
{
    char hint[SUGGEST_HINT_BYTES];
    struct text list = {0};
    const struct key *elsewhere = find_elsewhere(pr->name);
    for (size_t i = 0; names[i] != NULL; i++)
        text_printf(&list, "%s%s", i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ", names[i]);
    suggest_hint(pr->name, names, hint);
    if (hint[0] == '\0' && elsewhere != NULL)
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found an unknown key, expected %s (did you mean \"%s.%s\"?)", list.ptr,
                         elsewhere->section, elsewhere->name);
    else
        document_problem(ld->d, pr->key->start_mark, pr->path, "found an unknown key, expected %s%s",
                         list.ptr, hint);
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
    unknown_key(ld, pr, names);
}

static void add_reference(struct config *c, const char *key, struct slice text)
{
    c->references = xrealloc(c->references, (c->reference_count + 1) * sizeof *c->references);
    c->references[c->reference_count++] =
        (struct config_reference){xstrdup(key), xstrndup(text.ptr, text.len)};
}

static void read_scalar(struct load *ld, const struct key *k, const struct pair *pr, void *base)
{
    struct text text = {0};
    struct err e;
    bool referred = false;
    if (pr->value->type != YAML_SCALAR_NODE || document_is_nothing(pr->value)) {
        char quote[SUGGEST_QUOTE_BYTES];
        keys_expected(k, &text);
        document_problem(ld->d, pr->value->start_mark, pr->path, "found %s, expected %s",
                         document_describe(pr->value, quote), text.ptr);
        text_fini(&text);
        return;
    }
    struct slice raw = document_scalar(pr->value);
    bool good = expand_text(raw, k->type == KEY_URL, &text, &referred, &e);
    if (good)
        good = keys_parse(k, slice_of(text.len > 0 ? text.ptr : "", text.len),
                          referred ? raw : (struct slice){0}, base, &e);
    if (!good)
        document_problem(ld->d, pr->value->start_mark, pr->path, "%s", e.text);
    else if (referred)
        add_reference(ld->c, pr->path, raw);
    text_fini(&text);
}

/* A piece of a report: text as it is written, since what a report is must not change with the environment. */
static bool is_piece(struct load *ld, const yaml_node_t *node, const char *path, const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    bool text = node->type == YAML_SCALAR_NODE && !document_is_nothing(node);
    if (!text)
        document_problem(ld->d, node->start_mark, path, "found %s, expected %s",
                         document_describe(node, quote), expected);
    else if (expand_is_reference(document_scalar(node)))
        document_problem(
            ld->d, node->start_mark, path,
            "found %s, expected a text without ${: a report must not change with the environment",
            document_describe(node, quote));
    return text && !expand_is_reference(document_scalar(node));
}

static void read_pieces(struct load *ld, const struct key *k, const struct pair *pr, struct report *r,
                        const char *expected)
{
    struct text list = {0};
    keys_expected(k, &list);
    if (document_is_list(ld->d, pr->value, pr->path, list.ptr)) {
        size_t i = 0;
        for (yaml_node_t *item; (item = document_next_item(ld->d, pr->value, &i)) != NULL;) {
            struct err e = {0};
            if (!is_piece(ld, item, pr->path, expected))
                continue;
            struct slice text = document_scalar(item);
            bool good = k->type == KEY_DIMENSIONS ? report_add_dimension(r, text, &e)
                                                  : report_add_condition(r, text, &e);
            if (!good)
                document_problem(ld->d, item->start_mark, pr->path, "%s", e.text);
        }
    }
    text_fini(&list);
}

static void read_measures(struct load *ld, const struct key *k, const struct pair *pr, struct report *r)
{
    struct text expected = {0};
    keys_expected(k, &expected);
    if (document_is_mapping(ld->d, pr->value, pr->path, expected.ptr)) {
        struct pair m;
        struct err e;
        for (size_t i = 0; document_next(ld->d, pr->value, pr->path, &i, &m);) {
            if (!is_piece(ld, m.value, m.path, "count or sum(bytes)"))
                continue;
            if (!report_add_measure(r, m.name, document_scalar(m.value), &e))
                document_problem(ld->d, m.value->start_mark, m.path, "%s", e.text);
        }
    }
    text_fini(&expected);
}

/* The keys of a section, or of one source or report, into its struct. */
static void read_keys(struct load *ld, const char *section, const char *path, yaml_node_t *map, void *base)
{
    struct pair pr;
    if (!document_is_mapping(ld->d, map, path, "keys and values"))
        return;
    for (size_t i = 0; document_next(ld->d, map, path, &i, &pr);) {
        const struct key *k = keys_find(section, pr.name);
        if (k == NULL)
            unknown_in_section(ld, section, &pr);
        else if (k->type == KEY_DIMENSIONS)
            read_pieces(ld, k, &pr, base, "a dimension");
        else if (k->type == KEY_CONDITIONS)
            read_pieces(ld, k, &pr, base, "a condition");
        else if (k->type == KEY_MEASURES)
            read_measures(ld, k, &pr, base);
        else
            read_scalar(ld, k, &pr, base);
    }
}

static void read_source(struct load *ld, struct pair *pr)
{
    struct config *c = ld->c;
    struct config_source *source = &c->sources[c->source_count++];
    *source = (struct config_source){.name = xstrndup(pr->name.ptr, pr->name.len)};
    keys_set_defaults(KEY_OF_config_source, source);
    if (!report_is_name(pr->name, REPORT_NAME_BYTES))
        document_problem(ld->d, pr->key->start_mark, pr->path,
                         "found a name that cannot be, expected a-z, then a-z, 0-9 and _, at most %d",
                         REPORT_NAME_BYTES - 1);
    read_keys(ld, "sources", pr->path, pr->value, source);
    if (source->type != SOURCE_STDIN)
        return;
    if (source->path != NULL)
        document_problem(ld->d, pr->value->start_mark, pr->path,
                         "found a path with type stdin, expected only one of them");
    for (size_t i = 0; i + 1 < c->source_count; i++) {
        if (c->sources[i].type == SOURCE_STDIN)
            document_problem(ld->d, pr->value->start_mark, pr->path,
                             "found type stdin, expected it once (source %s has it)", c->sources[i].name);
    }
}

static void read_report(struct load *ld, struct pair *pr)
{
    struct config *c = ld->c;
    struct report *r = &c->reports[c->report_count++];
    struct err e;
    /* Under a wrong name, its keys are still worth a look. */
    if (!report_init(r, pr->name, 1, &e)) {
        document_problem(ld->d, pr->key->start_mark, pr->path, "%s", e.text);
        bool good = report_init(r, slice_text("unnamed"), 1, &e);
        ASSERT(good);
    }
    keys_set_defaults(KEY_OF_report, r);
    read_keys(ld, "reports", pr->path, pr->value, r);
    if (!report_finish(r, &e))
        document_problem(ld->d, pr->key->start_mark, pr->path, "%s", e.text);
}

/* Entries under names of the user's own; there is room for `max`. */
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

void load_document(struct config *c, struct document *d)
{
    static const char expected[] = "sections such as `store: {url: \"sqlite:tallyd.db\"}`";
    struct load ld = {c, d};
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
    for (size_t i = 0; document_next(d, root, "", &i, &pr);) {
        if (slice_is(pr.name, "sources"))
            read_named(&ld, &pr, CONFIG_SOURCES_MAX, read_source);
        else if (slice_is(pr.name, "reports"))
            read_named(&ld, &pr, CONFIG_REPORTS_MAX, read_report);
        else if (keys_is_section(pr.name))
            read_keys(&ld, pr.path, pr.path, pr.value, c);
        else
            unknown_key(&ld, &pr, keys_section_names);
    }
}
