#include "prom/relabel.h"

#include "base/text.h"
#include "prom/regex.h"

#include <stdlib.h>

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Takes the name of a group behind a $: a word, or one in braces. False: there is none. */
static bool take_name(struct slice *rest, struct slice *name)
{
    bool is_braced = rest->len > 0 && rest->ptr[0] == '{';
    size_t start = is_braced, len = 0;
    while (start + len < rest->len && is_word(rest->ptr[start + len]))
        len++;
    if (len == 0 || (is_braced && (start + len == rest->len || rest->ptr[start + len] != '}')))
        return false;
    *name = slice_of(rest->ptr + start, len);
    *rest = slice_of(rest->ptr + start + len + is_braced, rest->len - start - len - is_braced);
    return true;
}

/* Replaces $1, ${name} and $$ in `pattern`. A group that did not match is empty. */
static void expand(const struct regex *r, struct slice pattern, struct text *out)
{
    while (pattern.len > 0) {
        char c = pattern.ptr[0];
        struct slice rest = slice_of(pattern.ptr + 1, pattern.len - 1), name;
        pattern = rest;
        if (c != '$') {
            text_putc(out, c);
        } else if (rest.len > 0 && rest.ptr[0] == '$') {
            text_putc(out, '$');
            pattern = slice_of(rest.ptr + 1, rest.len - 1);
        } else if (take_name(&pattern, &name)) {
            struct slice group = regex_group(r, name);
            text_add(out, group.ptr, group.len);
        } else {
            text_putc(out, '$');
        }
    }
}

static bool replace(struct fetch *fe, const struct node *n, struct vector *v, struct err *e)
{
    struct slice to = n->arguments[1]->text, with = n->arguments[2]->text, from = n->arguments[3]->text;
    struct regex *r = regex_new(n->arguments[4]->text, e);
    struct text made = {0};
    bool good = r != NULL;
    for (size_t i = 0; good && i < v->series_count; i++) {
        struct slice text = labels_find(&v->series[i], from);
        bool matches;
        good = regex_matches(r, text, fe->budget, &matches, e);
        if (!good || !matches)
            continue;
        text_clear(&made);
        expand(r, with, &made);
        v->series[i] = labels_set(&v->series[i], to, arena_copy(fe->arena, text_slice(&made)), fe->arena);
    }
    text_fini(&made);
    regex_free(r);
    return good;
}

static void join(struct fetch *fe, const struct node *n, struct vector *v)
{
    struct slice separator = n->arguments[2]->text;
    struct text made = {0};
    for (size_t i = 0; i < v->series_count; i++) {
        text_clear(&made);
        for (size_t from = 3; from < n->argument_count; from++) {
            struct slice value = labels_find(&v->series[i], n->arguments[from]->text);
            if (from > 3)
                text_add(&made, separator.ptr, separator.len);
            text_add(&made, value.ptr, value.len);
        }
        v->series[i] = labels_set(&v->series[i], n->arguments[1]->text,
                                  arena_copy(fe->arena, text_slice(&made)), fe->arena);
    }
    text_fini(&made);
}

bool relabel_run(struct fetch *fe, const struct node *n, struct vector *v, struct err *e)
{
    if (!budget_take(fe->budget, BUDGET_SERIES, v->series_count, e))
        return false;
    if (n->function == FUNCTION_LABEL_REPLACE) {
        if (!replace(fe, n, v, e))
            return false;
    } else {
        join(fe, n, v);
    }
    return vector_unite(v, e);
}
