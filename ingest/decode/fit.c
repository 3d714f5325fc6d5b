#include "ingest/decode/fit.h"

#include "base/mem.h"
#include "ingest/decode/chain.h"
#include "ingest/decode/shape.h"
#include "ingest/file/directive.h"

#include <stdio.h>
#include <stdlib.h>

/* The most specific first. A step that is not the last unwraps a line, whose format shape.h finds. */
static const struct row {
    const char *step, *time;
    bool unwraps;
} rows[] = {
    {"otlp", "", false},
    {"metric", "", false},
    {"json:/message", "", true},
    {"json:/log", "", true},
    {"syslog", "", true},
    {NULL, "", true}, /* the line itself */
    {"json", "", false},
    {"influx", "", false},
    {"logfmt", "", false},
    {"w3c", "", false},
    {"json", "/time_iso8601", false},
    {"json", "/date", false},
    {"json", "/datetime", false},
    {"json", "/@t", false},
    {"json", "/t", false},
    {"logfmt", "/t", false},
    {"logfmt", "/date", false},
    {"logfmt", "/datetime", false},
};

#define ROWS COUNT_OF(rows)

struct candidate {
    struct decode decode;
    struct chain *chain; /* NULL: the lines are taken as they are */
    struct shape shape;  /* of the lines that it unwraps */
    size_t lines;        /* that it reads */
};

struct fit {
    struct candidate list[ROWS];
    size_t lines;
};

static void init_candidate(struct candidate *c, const struct row *row, size_t line_max)
{
    struct err e;
    if (row->step == NULL)
        return;
    decode_init(&c->decode);
    bool good = decode_add_step(&c->decode, slice_text(row->step), &e) &&
                (!row->unwraps || decode_add_step(&c->decode, slice_text("auto"), &e)) &&
                (row->time[0] == '\0' || decode_set_time(&c->decode, slice_text(row->time), &e)) &&
                decode_finish(&c->decode, &e);
    ASSERT(good);
    c->chain = chain_new(&c->decode, line_max);
}

struct fit *fit_new(size_t line_max)
{
    struct fit *f = xcalloc(1, sizeof *f);
    for (size_t i = 0; i < ROWS; i++)
        init_candidate(&f->list[i], &rows[i], line_max);
    return f;
}

void fit_free(struct fit *f)
{
    for (size_t i = 0; f != NULL && i < ROWS; i++)
        chain_free(f->list[i].chain);
    free(f);
}

void fit_clear(struct fit *f)
{
    f->lines = 0;
    for (size_t i = 0; i < ROWS; i++) {
        f->list[i].lines = 0;
        f->list[i].shape = (struct shape){0};
    }
}

/* Does the directive show that the file is of the W3C format? Others may be comments. */
static bool is_fields(struct slice line)
{
    return slice_begins(directive_trim(line), slice_text(DIRECTIVE_FIELDS));
}

/* Does the candidate read the whole line? */
static bool reads(struct candidate *c, bool unwraps, struct slice line)
{
    const struct record r = {.value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = -1};
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    bool good = true, is_some = false;
    if (c->chain == NULL)
        return shape_add(&c->shape, line);
    chain_start(c->chain, &r);
    while ((what = chain_next(c->chain, &ev, &why, &bytes)) != CHAIN_END) {
        is_some = true;
        if (unwraps)
            good &= chain_step(c->chain) == 1 && shape_add(&c->shape, bytes);
        else
            good &= what == CHAIN_EVENT || (what == CHAIN_DIRECTIVE && is_fields(bytes));
    }
    chain_flush(c->chain);
    return good && is_some;
}

void fit_add(struct fit *f, struct slice line)
{
    for (size_t i = 0; i < ROWS; i++)
        f->list[i].lines += f->list[i].lines == f->lines && reads(&f->list[i], rows[i].unwraps, line);
    f->lines++;
}

/* Makes the format of a candidate that reads all lines. */
static bool take(const struct candidate *c, const struct row *row, bool guess, struct fit_format *found)
{
    struct text inner = {0};
    found->doubt = NULL;
    bool good = !row->unwraps || shape_format(&c->shape, guess, &inner, &found->doubt);
    if (good) {
        text_clear(&found->steps);
        text_printf(&found->steps, "%s%s%s", row->step != NULL ? row->step : "",
                    row->unwraps && row->step != NULL ? "," : "", row->unwraps ? inner.ptr : "");
        snprintf(found->time, sizeof found->time, "%s", row->time);
    }
    text_fini(&inner);
    return good;
}

static bool find(const struct fit *f, bool guess, struct fit_format *found)
{
    bool good = false;
    found->doubt = NULL;
    for (size_t i = 0; i < ROWS && !good && f->lines > 0; i++)
        good = f->list[i].lines == f->lines && take(&f->list[i], &rows[i], guess, found);
    return good;
}

bool fit_find(const struct fit *f, struct fit_format *found)
{
    return find(f, false, found);
}

bool fit_line(struct fit *f, struct slice line, struct fit_format *found)
{
    fit_clear(f);
    fit_add(f, line);
    return find(f, true, found);
}

/* Is it the decoding of these steps? */
static bool is_of(const struct decode *d, const struct fit_format *found)
{
    struct text steps = {0};
    for (size_t i = 0; i < d->step_count; i++) {
        text_puts(&steps, i > 0 ? "," : "");
        decode_print_step(d, i, &steps);
    }
    bool is = slice_equal(text_slice(&steps), text_slice(&found->steps));
    text_fini(&steps);
    return is && strcmp(d->time_pointer, found->time) == 0;
}

bool fit_reject(struct fit *f, const struct decode *decode, struct slice line, enum reject_reason reason,
                struct fit_format *found)
{
    bool may_help = reason != REJECT_FUTURE && reason != REJECT_TOO_LONG;
    return may_help && fit_line(f, line, found) && !is_of(decode, found);
}

void fit_print(const struct fit_format *found, struct text *out)
{
    text_show(out, text_slice(&found->steps));
    if (found->time[0] != '\0')
        text_printf(out, ", time: %s", found->time);
    if (found->doubt != NULL)
        text_printf(out, " (%s)", found->doubt);
}
