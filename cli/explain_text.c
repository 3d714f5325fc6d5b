#include "aggregate/dimension.h"
#include "cli/explain.h"

#include <stdio.h>

#define NAME_COLUMNS  18 /* room for names, so that values stand below each other */
#define VALUE_COLUMNS 40
#define STEP_COLUMNS  16
#define CARET_BYTES   72 /* bytes of a rejected text that are shown before and behind the column */

/* A longer text of a step, as a format, is left out behind its name. */
static void print_step_name(const struct decode *d, size_t step, struct text *out)
{
    struct text name = {0};
    struct slice text;
    const char *named = decode_named_step(d, step, &text);
    const bool is_long = named != NULL && text.len > STEP_COLUMNS;
    if (!is_long)
        decode_print_step(d, step, &name);
    text_show(out, is_long ? slice_text(named) : text_slice(&name));
    text_fini(&name);
}

static void print_columns(struct place at, struct text *out)
{
    if (at.to < at.from)
        text_printf(out, "empty, column %zu", at.from);
    else if (at.to == at.from)
        text_printf(out, "column %zu", at.from);
    else
        text_printf(out, "columns %zu to %zu", at.from, at.to);
}

/* The bytes that a text takes once it is shown, with its spaces up to `columns`. */
static void print_padded(struct slice s, size_t columns, struct text *out)
{
    size_t before = out->len;
    text_show(out, s);
    size_t width = 0;
    for (size_t i = before; i < out->len; i++)
        width += ((unsigned char)out->ptr[i] & 0xc0) != 0x80; /* a character, not a byte */
    while (width++ < columns)
        text_putc(out, ' ');
}

/* A step, and the part of the text before it that it was given. */
static void print_steps(const struct explained *a, struct text *out)
{
    const struct chain *c = a->by->chain;
    for (size_t i = 0; i <= chain_step(c); i++) {
        struct slice text = chain_text(c, i);
        struct place at = place_of(c, text);
        text_printf(out, "  step %zu: ", i + 1);
        print_step_name(a->by->decode, i, out);
        text_puts(out, " reads ");
        if (at.step < i || i == 0)
            print_columns(at, out);
        else
            text_printf(out, "%zu bytes, made by step %zu", text.len, i);
        text_putc(out, '\n');
    }
}

static void print_place(const struct explained *a, enum field f, struct text *out)
{
    const struct chain *c = a->by->chain;
    struct place at = place_of(c, a->ev->field[f]);
    const char *source = derived_from(chain_derived(c), f);
    if (source != NULL) {
        text_printf(out, "made of %s", source);
    } else if ((a->by->constants->bits >> f & 1) != 0) {
        text_puts(out, "set by the file's path");
    } else if (!at.is_known) {
        text_printf(out, "made by step %zu", chain_step(c) + 1);
    } else {
        print_columns(at, out);
        if (at.step > 0)
            text_printf(out, " of what step %zu reads", at.step + 1);
    }
}

/* The first measure of a report that counts the event, but skips this field of it, which is no number; NULL:
 * there is none. */
static const struct measure *skipping(const struct explained *a, enum field f)
{
    const struct config *c = a->by->config;
    const struct slice text = a->ev->field[f];
    if (event_has_number(a->ev, f) || event_is_absent(text.ptr, slice_end(text)))
        return NULL;
    for (size_t i = 0; i < c->report_count; i++) {
        const struct report *r = &c->reports[i];
        for (size_t k = 0; k < r->measure_count && explain_left_out(r, a->ev) == NULL; k++) {
            const struct measure *m = &r->measures[k];
            if (m->kind != MEASURE_COUNT && m->kind != MEASURE_DISTINCT && m->field == f)
                return m;
        }
    }
    return NULL;
}

static void print_fields(const struct explained *a, struct text *out)
{
    char number[NUMBER_BYTES], time[EXPLAIN_TIME_BYTES];
    text_printf(out, "  %-*s %s\n", NAME_COLUMNS, "time", explain_time(a->ev, time));
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(a->ev, f))
            continue;
        text_printf(out, "  %-*s ", NAME_COLUMNS, field_name(f));
        print_padded(a->ev->field[f], VALUE_COLUMNS, out);
        text_puts(out, "  ");
        print_place(a, f, out);
        if (explain_number(a->ev, f, number) && !slice_is(a->ev->field[f], number))
            text_printf(out, "; the number %s", number);
        const struct measure *m = skipping(a, f);
        if (m != NULL)
            text_printf(out, "; no number: %s skips it", m->expression);
        text_putc(out, '\n');
    }
}

static void print_series(const struct explained *a, const struct report *r, struct text *out)
{
    size_t max = (size_t)a->by->config->limits.dimension_bytes_max;
    struct slice key = dimension_key(r->dimensions, r->dimension_count, a->ev, max, a->by->key);
    for (size_t i = 0; i < r->dimension_count; i++) {
        text_printf(out, i == 0 ? " as %s=" : ", %s=", r->dimensions[i].name);
        text_show(out, dimension_next(&key));
    }
}

static void print_report(const struct explained *a, const struct report *r, struct text *out)
{
    const struct condition *fails = explain_left_out(r, a->ev);
    char number[NUMBER_BYTES];
    text_printf(out, "  report %s ", r->name);
    if (fails != NULL) {
        text_puts(out, "leaves it out: not ");
        condition_print(fails, out);
    } else {
        text_puts(out, "counts it");
        if (r->one_in > 1)
            text_printf(out, ", if it is drawn (sample: 1/%u), %u times", r->one_in, r->one_in);
        print_series(a, r, out);
        for (size_t i = 0; i < r->measure_count; i++)
            text_printf(out, "%s %s %s", i == 0 ? ":" : ",", r->measures[i].name,
                        explain_measure(&r->measures[i], a->ev, number));
    }
    text_putc(out, '\n');
}

/* The text around the column, and a mark below it. */
static void print_mark(struct slice text, size_t column, struct text *out)
{
    size_t at = column - 1 < text.len ? column - 1 : text.len;
    size_t from = at > CARET_BYTES ? at - CARET_BYTES : 0;
    size_t to = text.len - at > CARET_BYTES ? at + CARET_BYTES : text.len;
    struct text before = {0};
    text_puts(&before, from > 0 ? "…" : "");
    text_show(&before, slice_of(text.ptr + from, at - from));
    text_printf(out, "    %s", before.ptr);
    text_show(out, slice_of(text.ptr + at, to - at));
    text_puts(out, to < text.len ? "…\n    " : "\n    ");
    for (size_t i = 0; i < before.len; i++) {
        if (((unsigned char)before.ptr[i] & 0xc0) != 0x80)
            text_putc(out, ' ');
    }
    text_puts(out, "^\n");
    text_fini(&before);
}

static void print_fits(const struct fit_format *fits, const char *what, struct text *out)
{
    text_printf(out, "  %s", what);
    fit_print(fits, out);
    text_putc(out, '\n');
}

static void print_reject(const struct explained *a, struct text *out)
{
    const struct chain *c = a->by->chain;
    text_printf(out, "  rejected by step %zu in column %zu%s: %s\n", chain_step(c) + 1, a->why.column,
                a->step > 0 ? " of what it reads" : "", reject_help(a->why.reason));
    print_mark(chain_text(c, a->step), a->why.column, out);
    if (a->fits != NULL)
        print_fits(a->fits, "would fit: ", out);
}

void explain_text(const struct explained *a, struct text *out)
{
    const struct config *c = a->by->config;
    text_printf(out, "line %zu", a->number);
    if (a->part > 1)
        text_printf(out, ", part %zu", a->part);
    text_puts(out, a->ev != NULL ? ": an event\n" : a->is_directive ? ": a directive\n" : ": a reject\n");
    print_steps(a, out);
    if (a->is_directive)
        return;
    if (a->ev == NULL) {
        print_reject(a, out);
        return;
    }
    print_fields(a, out);
    if (a->fits != NULL)
        print_fits(a->fits, "most likely its fields are moved; would fit: ", out);
    for (size_t i = 0; i < c->report_count; i++)
        print_report(a, &c->reports[i], out);
}
