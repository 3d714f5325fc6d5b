#include "daemon/lacks.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/units.h"
#include "ingest/decode/chain.h"

#include <stdlib.h>

#define PEEK_BYTES ((size_t)64 << 10)

/* The field of a measure, in the events looked at. */
struct measured {
    bool is_number;                  /* in some event */
    char quote[SUGGEST_QUOTE_BYTES]; /* the first text that is no number; "": there is none */
};

/* The fields whose text may be none (event.h, Unfit), in the events looked at. */
static const enum field odd_fields[] = {FIELD_STATUS, FIELD_BYTES};

struct odd {
    size_t events;                   /* in which it is no status, or no size */
    char quote[SUGGEST_QUOTE_BYTES]; /* the first such text */
};

struct lack {
    struct odd odd[COUNT_OF(odd_fields)];
    size_t events; /* that the report counts */
    bool has_path;
    struct measured measures[REPORT_MEASURES_MAX];
};

static bool is_counted(const struct report *r, const struct event *ev)
{
    size_t i = 0;
    while (i < r->condition_count && condition_holds(&r->conditions[i], ev))
        i++;
    return i == r->condition_count;
}

static bool is_of_number(const struct measure *m)
{
    return m->kind != MEASURE_COUNT && m->kind != MEASURE_DISTINCT;
}

static void look_at_event(struct lack *l, const struct report *r, const struct event *ev)
{
    if (!is_counted(r, ev))
        return;
    l->events++;
    l->has_path |= event_has(ev, FIELD_PATH);
    for (size_t i = 0; i < COUNT_OF(odd_fields); i++) {
        if ((ev->unfit >> odd_fields[i] & 1) != 0 && !event_has(ev, odd_fields[i]) && l->odd[i].events++ == 0)
            suggest_quote(ev->field[odd_fields[i]], l->odd[i].quote);
    }
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        if (!is_of_number(m) || !event_has(ev, m->field))
            continue;
        struct slice text = ev->field[m->field];
        if (event_is_absent(text.ptr, slice_end(text)))
            continue;
        l->measures[i].is_number |= event_has_number(ev, m->field);
        if (l->measures[i].quote[0] == '\0')
            suggest_quote(text, l->measures[i].quote);
    }
}

static void look_at_line(struct chain *c, struct slice line, struct lack *lacks, const struct report *reports,
                         size_t report_count)
{
    const struct record r = {.value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = -1};
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    chain_start(c, &r);
    while ((what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END) {
        for (size_t i = 0; what == CHAIN_EVENT && i < report_count; i++)
            look_at_event(&lacks[i], &reports[i], &ev);
    }
    chain_flush(c);
}

static bool counts_by_path(const struct report *r)
{
    size_t i = 0;
    while (i < r->dimension_count && r->dimensions[i].field != FIELD_PATH)
        i++;
    return i < r->dimension_count;
}

/* Is it the first measure of the report that is of its field? */
static bool is_first(const struct report *r, size_t measure)
{
    size_t i = 0;
    while (!is_of_number(&r->measures[i]) || r->measures[i].field != r->measures[measure].field)
        i++;
    return i == measure;
}

static bool uses(const struct report *r, enum field f)
{
    bool does = false;
    for (size_t i = 0; i < r->dimension_count && !does; i++)
        does = r->dimensions[i].field == f;
    for (size_t i = 0; i < r->condition_count && !does; i++)
        does = r->conditions[i].field == f;
    for (size_t i = 0; i < r->measure_count && !does; i++)
        does = is_of_number(&r->measures[i]) && r->measures[i].field == f;
    return does;
}

static void print_odd(const struct lack *l, const struct report *r, struct text *out)
{
    char n[UNITS_NUMBER_BYTES], of[UNITS_NUMBER_BYTES];
    for (size_t i = 0; i < COUNT_OF(odd_fields); i++) {
        if (l->odd[i].events > 0 && uses(r, odd_fields[i]))
            text_printf(
                out,
                "%s is no %s in %s of the %s events looked at, as %s: report %s counts these without it\n",
                field_name(odd_fields[i]), odd_fields[i] == FIELD_STATUS ? "status" : "size",
                units_number((int64_t)l->odd[i].events, n), units_number((int64_t)l->events, of),
                l->odd[i].quote, r->name);
    }
}

static void print_lack(const struct lack *l, const struct report *r, struct text *out)
{
    char n[UNITS_NUMBER_BYTES];
    units_number((int64_t)l->events, n);
    if (l->events > 0 && !l->has_path && counts_by_path(r))
        text_printf(out, "none of the %s events looked at has a path: report %s counts them as path=-\n", n,
                    r->name);
    print_odd(l, r, out);
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measured *m = &l->measures[i];
        if (m->quote[0] != '\0' && !m->is_number && is_first(r, i))
            text_printf(
                out, "%s is no number in any of the %s events looked at, as %s: %s of report %s skips it\n",
                field_name(r->measures[i].field), n, m->quote, r->measures[i].expression, r->name);
    }
}

void lacks_print(const struct source *src, const struct decode *d, const struct constants *constants,
                 const struct report *reports, size_t report_count, struct text *out)
{
    struct slice bytes = reader_peek(src->reader, input_is_regular(src->in) ? PEEK_BYTES : 1);
    struct lack *lacks = xcalloc(report_count, sizeof *lacks);
    struct chain *c = chain_new(d, PEEK_BYTES);
    const char *p = bytes.ptr, *end = slice_end(bytes), *newline;
    chain_set_constants(c, constants);
    if (chain_heeds_directives(c))
        chain_set_directive(c, reader_directive(src->reader));
    for (; p < end && (newline = memchr(p, '\n', (size_t)(end - p))) != NULL; p = newline + 1)
        look_at_line(c, slice_of(p, (size_t)(newline - p)), lacks, reports, report_count);
    for (size_t i = 0; i < report_count; i++)
        print_lack(&lacks[i], &reports[i], out);
    chain_free(c);
    free(lacks);
}
