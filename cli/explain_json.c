#include "aggregate/dimension.h"
#include "cli/explain.h"

static void write_text(const char *text, struct text *out)
{
    text_json(out, slice_text(text));
}

static void write_place(struct place at, struct text *out)
{
    if (at.step > 0)
        text_printf(out, ",\"step\":%zu", at.step + 1);
    text_printf(out, ",\"from\":%zu,\"to\":%zu", at.from, at.to);
}

static void write_step_name(const struct decode *d, size_t step, struct text *out)
{
    struct text name = {0};
    decode_print_step(d, step, &name);
    text_json(out, text_slice(&name));
    text_fini(&name);
}

static void write_steps(const struct explained *a, struct text *out)
{
    const struct chain *c = a->by->chain;
    text_puts(out, ",\"steps\":[");
    for (size_t i = 0; i <= chain_step(c); i++) {
        struct slice text = chain_text(c, i);
        struct place at = place_of(c, text);
        text_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        write_step_name(a->by->decode, i, out);
        if (at.step < i || i == 0)
            write_place(at, out);
        else
            text_printf(out, ",\"made_by_step\":%zu", i);
        text_putc(out, '}');
    }
    text_putc(out, ']');
}

static void write_field(const struct explained *a, enum field f, struct text *out)
{
    struct place at = place_of(a->by->chain, a->ev->field[f]);
    char number[NUMBER_BYTES];
    text_printf(out, "{\"name\":\"%s\",\"value\":", field_name(f));
    text_json(out, a->ev->field[f]);
    if (explain_number(a->ev, f, number))
        text_printf(out, ",\"number\":%s", number);
    const char *source = derived_from(chain_derived(a->by->chain), f);
    if (source != NULL)
        text_printf(out, ",\"made_of\":\"%s\"", source);
    else if ((a->by->constants->bits >> f & 1) != 0)
        text_puts(out, ",\"made_by\":\"path\"");
    else if (at.is_known)
        write_place(at, out);
    else
        text_printf(out, ",\"made_by_step\":%zu", chain_step(a->by->chain) + 1);
    text_putc(out, '}');
}

static void write_series(const struct explained *a, const struct report *r, struct text *out)
{
    size_t max = (size_t)a->by->config->limits.dimension_bytes_max;
    struct slice key = dimension_key(r->dimensions, r->dimension_count, a->ev, max, a->by->key);
    text_puts(out, ",\"series\":{");
    for (size_t i = 0; i < r->dimension_count; i++) {
        text_puts(out, i == 0 ? "" : ",");
        write_text(r->dimensions[i].name, out);
        text_putc(out, ':');
        text_json(out, dimension_next(&key));
    }
    text_puts(out, "},\"measures\":{");
    for (size_t i = 0; i < r->measure_count; i++) {
        char number[NUMBER_BYTES];
        const char *value = explain_measure(&r->measures[i], a->ev, number);
        text_printf(out, "%s\"%s\":%s", i == 0 ? "" : ",", r->measures[i].name,
                    value[0] == '-' && value[1] == '\0' ? "null" : value);
    }
    text_putc(out, '}');
}

static void write_report(const struct explained *a, const struct report *r, struct text *out)
{
    const struct condition *fails = explain_left_out(r, a->ev);
    text_printf(out, "{\"name\":\"%s\",\"counts\":%s", r->name, fails == NULL ? "true" : "false");
    if (fails != NULL) {
        struct text condition = {0};
        condition_print(fails, &condition);
        text_puts(out, ",\"fails\":");
        text_json(out, text_slice(&condition));
        text_fini(&condition);
    } else {
        write_series(a, r, out);
        if (r->one_in > 1)
            text_printf(out, ",\"sample\":%u", r->one_in);
    }
    text_putc(out, '}');
}

static void write_fits(const struct fit_format *fits, struct text *out)
{
    text_puts(out, ",\"fits\":{\"decode\":");
    text_json(out, text_slice(&fits->steps));
    if (fits->time[0] != '\0')
        text_printf(out, ",\"time\":\"%s\"", fits->time);
    if (fits->doubt != NULL)
        text_printf(out, ",\"note\":\"%s\"", fits->doubt);
    text_putc(out, '}');
}

static void write_event(const struct explained *a, struct text *out)
{
    const struct config *c = a->by->config;
    char time[EXPLAIN_TIME_BYTES];
    text_printf(out, ",\"time\":\"%s\",\"fields\":[", explain_time(a->ev, time));
    const char *comma = "";
    for (int i = 0; i < field_count(); i++) {
        if (!event_has(a->ev, (enum field)i))
            continue;
        text_puts(out, comma);
        write_field(a, (enum field)i, out);
        comma = ",";
    }
    text_puts(out, "],\"reports\":[");
    for (size_t i = 0; i < c->report_count; i++) {
        text_puts(out, i == 0 ? "" : ",");
        write_report(a, &c->reports[i], out);
    }
    text_putc(out, ']');
}

void explain_json(const struct explained *a, struct text *out)
{
    text_printf(out, "{\"line\":%zu,\"part\":%zu,\"result\":\"%s\"", a->number, a->part,
                a->ev != NULL     ? "event"
                : a->is_directive ? "directive"
                                  : "reject");
    write_steps(a, out);
    if (a->ev != NULL) {
        write_event(a, out);
        if (a->fits != NULL)
            write_fits(a->fits, out);
    } else if (!a->is_directive) {
        text_printf(out, ",\"step\":%zu,\"column\":%zu,\"column_of_step\":%zu,\"reason\":\"%s\",\"help\":",
                    chain_step(a->by->chain) + 1, a->why.column, a->step + 1, reject_name(a->why.reason));
        write_text(reject_help(a->why.reason), out);
        if (a->fits != NULL)
            write_fits(a->fits, out);
    }
    text_puts(out, "}\n");
}
