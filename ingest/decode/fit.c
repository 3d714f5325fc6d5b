#include "ingest/decode/fit.h"

#include "base/mem.h"
#include "base/pcre.h"
#include "ingest/decode/chain.h"
#include "ingest/decode/cri.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"
#include "ingest/decode/preset.h"
#include "ingest/decode/shape.h"
#include "ingest/file/directive.h"

#include <stdio.h>
#include <stdlib.h>

/* The most specific first. A step that is not the last unwraps a line, whose format shape.h finds. */
static const struct row {
    const char *step, *time;
    enum { READS, UNWRAPS, PRESET, MEMBERS } kind; /* presets: of one expression; of JSON */
} rows[] = {
    {"alb", "", PRESET},
    {"elb", "", PRESET},
    {"haproxy", "", PRESET},
    {"s3", "", PRESET},
    {"traefik", "", PRESET},
    {"caddy", "", MEMBERS},
    {"traefik_json", "", MEMBERS},
    {"otlp", "", READS},
    {"metric", "", READS},
    {"json:/message", "", UNWRAPS},
    {"json:/log", "", UNWRAPS},
    {"cri", "", UNWRAPS},
    {"syslog", "", UNWRAPS},
    {NULL, "", UNWRAPS}, /* the line itself */
    {"json", "", READS},
    {"influx", "", READS},
    {"logfmt", "", READS},
    {"w3c", "", READS},
    {"json", "/time_iso8601", READS},
    {"json", "/time_local", READS},
    {"json", "/date", READS},
    {"json", "/datetime", READS},
    {"json", "/@t", READS},
    {"json", "/t", READS},
    {"logfmt", "/t", READS},
    {"logfmt", "/date", READS},
    {"logfmt", "/datetime", READS},
};

#define ROWS         COUNT_OF(rows)
#define PRESET_STEPS 20000 /* of PCRE2 for a line */
#define DEPTH_MAX    32    /* of JSON whose members are looked for */

struct candidate {
    struct decode decode;
    struct chain *chain; /* NULL: the lines are taken as they are */
    struct pcre *regex;  /* of a preset; NULL: it is none, or PCRE2 is not installed */
    struct shape shape;  /* of the lines that it unwraps */
    size_t lines;        /* that it reads */
    /* members that a line of a preset of JSON always has */
    struct json_paths *members;
    size_t member_count;
    struct json_found *found;
};

struct fit {
    struct pcre_run *run; /* of the presets' expressions; NULL: none */
    bool has_presets;     /* they were compiled, or `missing` says why not */
    struct err missing;
    struct candidate list[ROWS];
    size_t lines;
};

/* A request has these fields, whoever serves it. */
static void init_members(struct candidate *c, const struct preset *p)
{
    static const char *const always[] = {"host", "method", "target"};
    c->members = json_paths_new(DEPTH_MAX);
    c->found = xcalloc(1, sizeof *c->found);
    for (size_t i = 0; i < PRESET_FIELDS_MAX && p->fields[i].name != NULL; i++) {
        for (size_t k = 0; k < COUNT_OF(always); k++) {
            if (strcmp(p->fields[i].name, always[k]) == 0)
                c->member_count = json_paths_add(c->members, slice_text(p->fields[i].origin)) + 1;
        }
    }
    ASSERT(c->member_count == COUNT_OF(always));
}

static void init_candidate(struct candidate *c, const struct row *row, size_t line_max)
{
    struct err e;
    if (row->kind == MEMBERS)
        init_members(c, preset_find(slice_text(row->step)));
    if (row->step == NULL || row->kind == PRESET || row->kind == MEMBERS)
        return;
    decode_init(&c->decode);
    bool good = decode_add_step(&c->decode, slice_text(row->step), &e) &&
                (row->kind != UNWRAPS || decode_add_step(&c->decode, slice_text("auto"), &e)) &&
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
    if (f == NULL)
        return;
    for (size_t i = 0; i < ROWS; i++) {
        chain_free(f->list[i].chain);
        pcre_free(f->list[i].regex);
        json_paths_free(f->list[i].members);
        free(f->list[i].found);
    }
    pcre_run_free(f->run);
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

/* Does the directive show that the file is of the W3C format? Others may be comments. IIS begins with the
 * software, CloudFront with the version. */
static bool is_of_w3c(struct slice line)
{
    struct slice text = directive_trim(line);
    return slice_begins(text, slice_text(DIRECTIVE_FIELDS)) || slice_begins(text, slice_text("#Software:")) ||
           slice_begins(text, slice_text("#Version:"));
}

/* Compiles the presets' expressions. PCRE2 is not loaded before a line is asked about. */
static void init_presets(struct fit *f)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].kind != PRESET)
            continue;
        const char *step = preset_find(slice_text(rows[i].step))->step;
        f->list[i].regex = pcre_new(slice_text(strchr(step, ':') + 1), PCRE_WHOLE | PCRE_FAST, &f->missing);
        if (f->list[i].regex != NULL && f->run == NULL)
            f->run = pcre_run_new(1);
    }
    f->has_presets = true;
}

static bool has_members(struct candidate *c, struct slice line)
{
    const char *end;
    bool good = json_read(c->members, line, c->found, &end) == JSON_OK && end == slice_end(line);
    for (size_t i = 0; good && i < c->member_count; i++)
        good = json_found_get(c->found, i) != NULL;
    return good;
}

/* Is it a container's line, whose stream and tag syslog would take for a host and a text? */
static bool is_of_container(const struct row *row, struct slice line)
{
    struct cri_text found;
    const char *at;
    return row->step != NULL && strcmp(row->step, "syslog") == 0 && cri_parse(line, &found, &at);
}

/* Does the candidate read the whole line? */
static bool reads(struct fit *f, struct candidate *c, const struct row *row, struct slice line)
{
    const struct record r = {.value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = -1};
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    bool good = true, is_some = false;
    if (row->kind == PRESET)
        return c->regex != NULL && pcre_match(c->regex, f->run, line, PRESET_STEPS) > 0;
    if (row->kind == MEMBERS)
        return has_members(c, line);
    if (is_of_container(row, line))
        return false;
    if (c->chain == NULL)
        return shape_add(&c->shape, line);
    chain_start(c->chain, &r);
    while ((what = chain_next(c->chain, &ev, &why, &bytes)) != CHAIN_END) {
        is_some = true;
        if (row->kind == UNWRAPS)
            good &= chain_step(c->chain) == 1 && shape_add(&c->shape, bytes);
        else
            good &= what == CHAIN_EVENT || (what == CHAIN_DIRECTIVE && is_of_w3c(bytes));
    }
    chain_flush(c->chain);
    return good && is_some;
}

void fit_add(struct fit *f, struct slice line)
{
    if (!f->has_presets)
        init_presets(f);
    for (size_t i = 0; i < ROWS; i++)
        f->list[i].lines += f->list[i].lines == f->lines && reads(f, &f->list[i], &rows[i], line);
    f->lines++;
}

/* Makes the format of a candidate that reads all lines. */
static bool take(const struct candidate *c, const struct row *row, bool guess, struct fit_format *found)
{
    struct text inner = {0};
    found->doubt = NULL;
    bool good = row->kind != UNWRAPS || shape_format(&c->shape, guess, &inner, &found->doubt);
    if (good) {
        text_clear(&found->steps);
        text_printf(&found->steps, "%s%s%s", row->step != NULL ? row->step : "",
                    row->kind == UNWRAPS && row->step != NULL ? "," : "",
                    row->kind == UNWRAPS ? inner.ptr : "");
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

const char *fit_missing(const struct fit *f)
{
    return f->missing.code != EX_OK ? f->missing.text : NULL;
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

bool fit_moved(const struct decode *decode, struct slice line, struct fit_format *found)
{
    static const char *const fronts[] = {"vhost_combined", "apache:%v", "apache:%{", "nginx:$server_name",
                                         "nginx:$http_x"};
    const struct decode_step *s = &decode->steps[0];
    struct shape shape = {0};
    struct cri_text container;
    const char *at;
    bool is_front = false, is_named = decode->step_count == 1 && s->kind == STEP_LINE && !s->is_compiled &&
                                      s->format != CLF_AUTO;
    text_clear(&found->steps);
    found->time[0] = '\0';
    if (is_named && cri_parse(line, &container, &at)) {
        found->doubt = NULL;
        text_printf(&found->steps, "cri,%s", clf_format_name(s->format));
        return true;
    }
    if (!is_named || !shape_add(&shape, line) || !shape_format(&shape, true, &found->steps, &found->doubt))
        return false;
    for (size_t i = 0; i < COUNT_OF(fronts) && !is_front; i++)
        is_front = slice_begins(text_slice(&found->steps), slice_text(fronts[i]));
    return is_front && !is_of(decode, found);
}

void fit_print(const struct fit_format *found, struct text *out)
{
    text_show(out, text_slice(&found->steps));
    if (found->time[0] != '\0')
        text_printf(out, ", time: %s", found->time);
    if (found->doubt != NULL)
        text_printf(out, " (%s)", found->doubt);
}
