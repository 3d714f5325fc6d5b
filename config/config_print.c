#include "aggregate/keep.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/document.h"
#include "config/expand.h"
#include "config/keys.h"
#include "config/secret.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <xxhash.h>

static const char *find_reference(const struct config *c, const char *key)
{
    for (size_t i = 0; i < c->reference_count; i++) {
        if (strcmp(c->references[i].key, key) == 0)
            return c->references[i].text;
    }
    return NULL;
}

static void print_scalar(const struct key *k, const char *reference, struct slice value, bool hides,
                         struct text *out)
{
    struct text escaped = {0}, hidden = {0};
    if (hides && keys_is_secret(k))
        value = slice_text(TEXT_HIDDEN);
    if (hides && k->type == KEY_URL) {
        text_url(&hidden, value);
        value = text_slice(&hidden);
    }
    expand_escape(value, &escaped);
    if (reference != NULL)
        expand_quote(slice_text(reference), out);
    else if (keys_is_text(k))
        expand_quote(text_slice(&escaped), out);
    else
        text_add(out, value.ptr, value.len);
    text_fini(&hidden);
    text_fini(&escaped);
}

void config_print_properties(const struct config *c, const char *path, bool hides, struct text *out)
{
    char property[DOCUMENT_PATH_BYTES];
    struct text escaped = {0};
    text_putc(out, '{');
    for (size_t i = 0; i < c->kafka.property_count; i++) {
        const struct kafka_property *p = &c->kafka.properties[i];
        const char *reference = NULL;
        if (path != NULL) {
            document_path(path, slice_text(p->name), property);
            reference = find_reference(c, property);
        }
        text_clear(&escaped);
        bool is_hidden = hides && secret_is_property(p->name);
        expand_escape(slice_text(is_hidden ? TEXT_HIDDEN : p->value), &escaped);
        text_puts(out, i == 0 ? "" : ", ");
        expand_quote(slice_text(p->name), out);
        text_puts(out, ": ");
        expand_quote(reference != NULL ? slice_text(reference) : text_slice(&escaped), out);
    }
    text_putc(out, '}');
    text_fini(&escaped);
}

void config_print_paths(const struct config *c, const struct config_source *source, const char *path,
                        struct text *out)
{
    char item[DOCUMENT_PATH_BYTES];
    struct text escaped = {0};
    bool is_list = source->path_count > 1;
    text_puts(out, is_list ? "[" : "");
    for (size_t i = 0; i < source->path_count; i++) {
        const char *reference = NULL;
        if (path != NULL) {
            document_item_path(path, i, item);
            reference = find_reference(c, item);
        }
        text_clear(&escaped);
        expand_escape(slice_text(source->paths[i]->text), &escaped);
        text_puts(out, i == 0 ? "" : ", ");
        expand_quote(reference != NULL ? slice_text(reference) : text_slice(&escaped), out);
    }
    text_puts(out, is_list ? "]" : "");
    text_fini(&escaped);
}

/* Prints the keys of a section, or of one source or report, each on a line indented by `indent`. */
static void print_keys(const struct config *c, const char *section, const char *name, const void *base,
                       int indent, bool hides, struct text *out)
{
    char path[DOCUMENT_PATH_BYTES];
    struct text value = {0};
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) != 0 || (k->owner == KEY_OF_config_source && !keys_belongs(k, base)))
            continue;
        text_clear(&value);
        keys_print(k, base, &value);
        if (value.len == 0)
            continue;
        snprintf(path, sizeof path, "%s%s%s.%s", section, name[0] == '\0' ? "" : ".", name, k->name);
        text_printf(out, "%*s%s: ", indent, "", k->name);
        if (k->type == KEY_PROPERTIES)
            config_print_properties(c, path, hides, out);
        else if (k->type == KEY_PATHS)
            config_print_paths(c, base, path, out);
        else if (keys_is_list(k))
            text_add(out, value.ptr, value.len);
        else
            print_scalar(k, find_reference(c, path), text_slice(&value), hides, out);
        text_putc(out, '\n');
    }
    text_fini(&value);
}

static void print_sources(const struct config *c, struct text *out)
{
    for (size_t i = 0; i < c->source_count; i++) {
        text_printf(out, "  %s:\n", c->sources[i].name);
        print_keys(c, "sources", c->sources[i].name, &c->sources[i], 4, false, out);
    }
}

static void print_reports(const struct config *c, struct text *out)
{
    for (size_t i = 0; i < c->report_count; i++) {
        text_printf(out, "  %s:\n", c->reports[i].name);
        print_keys(c, "reports", c->reports[i].name, &c->reports[i], 4, false, out);
    }
}

void config_print(const struct config *c, bool hides_secrets, struct text *out)
{
    for (const struct key_section *s = keys_sections; s->name != NULL; s++) {
        text_printf(out, "%s:\n", s->name);
        if (strcmp(s->name, "sources") == 0)
            print_sources(c, out);
        else if (strcmp(s->name, "reports") == 0)
            print_reports(c, out);
        else
            print_keys(c, s->name, "", c, 2, hides_secrets, out);
    }
}

uint64_t config_fingerprint(const struct config *c)
{
    struct text out = {0};
    print_sources(c, &out);
    print_keys(c, "derive", "", c, 0, false, &out);
    print_reports(c, &out);
    uint64_t hash = XXH3_64bits(out.ptr, out.len);
    text_fini(&out);
    return hash != 0 ? hash : 1;
}
