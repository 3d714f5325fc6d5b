#include "aggregate/keep.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/document.h"
#include "config/expand.h"
#include "config/keys.h"

#include <stdio.h>

static unsigned code_point(const unsigned char *p, size_t n)
{
    unsigned c = n == 1 ? p[0] : p[0] & (0x7FU >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3FU);
    return c;
}

/* Can double quotes hold the character unescaped? YAML reads some characters as line breaks and refuses
 * others. */
static bool is_plain(unsigned c)
{
    return c >= 0x20 && c != '"' && c != '\\' && (c < 0x7F || c > 0xA0) && c != 0x2028 && c != 0x2029 &&
           c != 0xFEFF && c != 0xFFFE && c != 0xFFFF;
}

static void add_quoted(struct text *out, struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
    text_putc(out, '"');
    while (p < end) {
        size_t n = utf8_len(p, end);
        ASSERT(n > 0); /* the file's check or keys_parse() made sure of UTF-8 */
        unsigned c = code_point(p, n);
        if (is_plain(c))
            text_add(out, (const char *)p, n);
        else
            text_printf(out, "\\u%04x", c);
        p += n;
    }
    text_putc(out, '"');
}

static const char *find_reference(const struct config *c, const char *key)
{
    for (size_t i = 0; i < c->reference_count; i++) {
        if (strcmp(c->references[i].key, key) == 0)
            return c->references[i].text;
    }
    return NULL;
}

static void print_scalar(const struct config *c, const struct key *k, const char *path, const void *base,
                         struct text *out)
{
    struct text value = {0}, escaped = {0};
    const char *reference = find_reference(c, path);
    keys_print(k, base, &value);
    expand_escape(text_slice(&value), &escaped);
    if (reference != NULL)
        add_quoted(out, slice_text(reference));
    else if (keys_is_text(k))
        add_quoted(out, text_slice(&escaped));
    else
        text_add(out, value.ptr, value.len);
    text_fini(&value);
    text_fini(&escaped);
}

static void print_decoding(const struct key *k, const struct decode *d, struct text *out)
{
    struct text piece = {0};
    text_putc(out, k->type == KEY_FIELDS ? '{' : '[');
    for (size_t i = 0; k->type == KEY_DECODE && i < d->step_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        text_clear(&piece);
        decode_print_step(&d->steps[i], &piece);
        add_quoted(out, text_slice(&piece));
    }
    for (size_t i = 0; k->type == KEY_FIELDS && i < d->origin_count; i++) {
        text_clear(&piece);
        decode_print_origin(&d->origins[i], &piece);
        text_printf(out, "%s%s: ", i == 0 ? "" : ", ", field_name(d->origins[i].field));
        add_quoted(out, text_slice(&piece));
    }
    text_putc(out, k->type == KEY_FIELDS ? '}' : ']');
    text_fini(&piece);
}

/* `path` NULL: print the true values, not the references. */
static void print_properties(const struct config *c, const char *path, struct text *out)
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
        expand_escape(slice_text(p->value), &escaped);
        text_puts(out, i == 0 ? "" : ", ");
        add_quoted(out, slice_text(p->name));
        text_puts(out, ": ");
        add_quoted(out, reference != NULL ? slice_text(reference) : text_slice(&escaped));
    }
    text_putc(out, '}');
    text_fini(&escaped);
}

/* Prints nothing if every resolution is kept for ever; otherwise every resolution that the report counts. */
static void print_keep(const struct report *r, struct text *out)
{
    char keep[KEEP_BYTES];
    text_putc(out, '{');
    for (int s = (int)report_cell(r); keep_is_limited(r) && s < SPAN_COUNT; s++)
        text_printf(out, "%s%s: %s", s == (int)report_cell(r) ? "" : ", ", span_name((enum span)s),
                    keep_text(r->keep_ms[s], keep));
    text_putc(out, '}');
}

static void print_pieces(const struct key *k, const struct report *r, struct text *out)
{
    struct text condition = {0};
    text_putc(out, k->type == KEY_MEASURES ? '{' : '[');
    for (size_t i = 0; k->type == KEY_DIMENSIONS && i < r->dimension_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        add_quoted(out, slice_text(r->dimensions[i].name));
    }
    for (size_t i = 0; k->type == KEY_CONDITIONS && i < r->condition_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        text_clear(&condition);
        condition_print(&r->conditions[i], &condition);
        add_quoted(out, text_slice(&condition));
    }
    for (size_t i = 0; k->type == KEY_MEASURES && i < r->measure_count; i++)
        text_printf(out, "%s%s: %s", i == 0 ? "" : ", ", r->measures[i].name, r->measures[i].expression);
    text_putc(out, k->type == KEY_MEASURES ? '}' : ']');
    text_fini(&condition);
}

static void print_list(const struct key *k, const void *base, const char *path, struct text *out)
{
    if (k->type == KEY_PROPERTIES)
        print_properties(base, path, out);
    else if (k->type == KEY_DECODE || k->type == KEY_FIELDS)
        print_decoding(k, &((const struct config_source *)base)->decode, out);
    else if (k->type == KEY_RAW)
        raw_print_kind(&((const struct config_source *)base)->raw, out);
    else if (k->type == KEY_KEEP)
        print_keep(base, out);
    else
        print_pieces(k, base, out);
}

void config_print_value(const struct key *k, const void *base, struct text *out)
{
    if (keys_is_list(k))
        print_list(k, base, NULL, out);
    else
        keys_print(k, base, out);
}

static bool is_there(const struct key *k, const void *base)
{
    struct text value = {0};
    if (k->owner == KEY_OF_config_source && !keys_belongs(k, base))
        return false;
    if (keys_is_list(k))
        return true;
    keys_print(k, base, &value);
    bool there = value.len > 0;
    text_fini(&value);
    return there;
}

/* Prints the keys of a section, or of one source or report, each on a line indented by `indent`. */
static void print_keys(const struct config *c, const char *section, const char *name, const void *base,
                       int indent, struct text *out)
{
    char path[DOCUMENT_PATH_BYTES];
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) != 0 || !is_there(k, base))
            continue;
        snprintf(path, sizeof path, "%s%s%s.%s", section, name[0] == '\0' ? "" : ".", name, k->name);
        text_printf(out, "%*s%s: ", indent, "", k->name);
        if (keys_is_list(k))
            print_list(k, base, path, out);
        else
            print_scalar(c, k, path, base, out);
        text_putc(out, '\n');
    }
}

void config_print(const struct config *c, struct text *out)
{
    for (const struct key_section *s = keys_sections; s->name != NULL; s++) {
        text_printf(out, "%s:\n", s->name);
        if (strcmp(s->name, "sources") == 0) {
            for (size_t i = 0; i < c->source_count; i++) {
                text_printf(out, "  %s:\n", c->sources[i].name);
                print_keys(c, s->name, c->sources[i].name, &c->sources[i], 4, out);
            }
        } else if (strcmp(s->name, "reports") == 0) {
            for (size_t i = 0; i < c->report_count; i++) {
                text_printf(out, "  %s:\n", c->reports[i].name);
                print_keys(c, s->name, c->reports[i].name, &c->reports[i], 4, out);
            }
        } else {
            print_keys(c, s->name, "", c, 2, out);
        }
    }
}
