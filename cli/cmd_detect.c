#include "base/mem.h"
#include "base/suggest.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/first_lines.h"
#include "cli/members.h"
#include "cli/options.h"
#include "config/config_read.h"
#include "daemon/setup.h"
#include "ingest/decode/chain.h"
#include "ingest/decode/csv_header.h"
#include "ingest/decode/fit.h"
#include "ingest/decode/preset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd detect [OPTIONS] FILE\n"
    "\n"
    "Proposes the configuration of a source for a file: the most specific format that reads all of its "
    "first\n"
    "lines. A format is proposed only if the lines leave no doubt about their fields. If there is none, "
    "the\n"
    "exit status is 65, and standard error says why.\n"
    "\n"
    "  -n, --lines N  how many lines to look at (default: 1,000)\n"
    "  -h, --help     this text\n"
    "\n"
    "  tallyd detect /var/log/nginx/access.log > tallyd.yaml\n"
    "  tallyd check -c tallyd.yaml\n";

#define DETECT_LINES 1000
#define BYTES_MAX    ((size_t)64 << 20) /* of the lines that are looked at */
#define TRIED_MAX    32
#define NAME_BYTES   32

/* A format that is tried. */
struct tried {
    char *steps, *time; /* as --decode takes it; the source's `time`, "": none */
    size_t read;        /* lines that it reads */
    size_t events;
    size_t paths;     /* events with a path and a host */
    uint64_t present; /* bit per enum field that some event has */
    size_t missed;    /* number of the first line that it does not read; 0: none */
    struct reject why;
    bool has_header; /* the first line has only names */
};

struct detect {
    const char *file;
    size_t line_max;
    struct text bytes; /* of all lines */
    size_t *ends;      /* of each line in `bytes` */
    size_t lines;
    struct tried tried[TRIED_MAX];
    size_t tried_count;
    struct fit *fit;
    struct fit_format found;
};

static bool note_line(void *context, struct slice line, size_t number)
{
    struct detect *d = context;
    (void)number;
    if (d->bytes.len > BYTES_MAX)
        return true;
    text_add(&d->bytes, line.ptr, line.len);
    d->ends[d->lines++] = d->bytes.len;
    fit_add(d->fit, line);
    return true;
}

static struct slice line_of(const struct detect *d, size_t i)
{
    size_t from = i > 0 ? d->ends[i - 1] : 0;
    return slice_of(d->bytes.ptr + from, d->ends[i] - from);
}

/* Is everything in the line an event? */
static bool reads(struct chain *c, struct slice line, struct tried *t, struct reject *why)
{
    const struct record r = {.value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = -1};
    struct event ev;
    struct slice bytes;
    enum chain_result what;
    bool good = true, is_some = false, is_event;
    chain_start(c, &r);
    while (good && (what = chain_next(c, &ev, why, &bytes)) != CHAIN_END) {
        is_some = true;
        good = what != CHAIN_REJECT;
        is_event = what == CHAIN_EVENT;
        t->events += is_event;
        t->present |= is_event ? ev.present : 0;
        t->paths += is_event && event_has(&ev, FIELD_PATH) && event_has(&ev, FIELD_HOST);
    }
    chain_flush(c);
    return good && is_some;
}

/* Tries a format on all lines. NULL: it cannot be compiled. */
static struct tried *try(struct detect *d, const char *steps, const char *time, bool has_header)
{
    struct decode decode;
    struct err e;
    for (size_t i = 0; i < d->tried_count; i++) {
        if (strcmp(d->tried[i].steps, steps) == 0 && strcmp(d->tried[i].time, time) == 0)
            return &d->tried[i];
    }
    ASSERT(d->tried_count < TRIED_MAX);
    if (!setup_parse_source(steps, time, &decode, &e))
        return NULL;
    struct tried *t = &d->tried[d->tried_count++];
    struct chain *c = chain_new(&decode, d->line_max);
    *t = (struct tried){.steps = xstrdup(steps), .time = xstrdup(time), .has_header = has_header};
    for (size_t i = has_header; i < d->lines; i++) {
        struct reject why;
        bool good = reads(c, line_of(d, i), t, &why);
        t->read += good;
        if (!good && t->missed == 0) {
            t->missed = i + 1;
            t->why = why;
        }
    }
    chain_free(c);
    return t;
}

/* The format that has the shape of the lines; NULL: there is none. */
static const struct tried *find_likely(const struct detect *d)
{
    for (size_t i = 0; i < d->tried_count && d->found.steps.len > 0; i++) {
        if (slice_is(text_slice(&d->found.steps), d->tried[i].steps))
            return &d->tried[i];
    }
    return NULL;
}

/* Tries columns with the names of the first line. NULL: it has none, or they do not read the others. */
static const struct tried *try_columns(struct detect *d, const char *step, char separator)
{
    struct text steps = {0};
    char time[CSV_HEADER_TIME_BYTES];
    const struct tried *t = NULL;
    text_printf(&steps, "%s:", step);
    if (d->lines > 1 && csv_header(line_of(d, 0), separator, &steps, time))
        t = try(d, steps.ptr, time, true);
    text_fini(&steps);
    return t != NULL && t->read == d->lines - 1 ? t : NULL;
}

/* Tries the presets. An expression that reads all lines fits; what is read as JSON must also have the fields
 * of a request where the preset looks for them. NULL: none fits. */
static const struct tried *try_presets(struct detect *d)
{
    const struct tried *found = NULL;
    for (const struct preset *p = presets; p->name != NULL; p++) {
        struct tried *t = try(d, p->name, "", false);
        bool is_json = strcmp(p->step, "json") == 0;
        if (t != NULL && is_json && t->paths < d->lines)
            t->read = 0;
        if (found == NULL && t != NULL && t->read == d->lines)
            found = t;
    }
    return found;
}

/* Finds the format to propose; NULL: there is none. */
static const struct tried *find(struct detect *d)
{
    static const char *const formats[] = {"auto",
                                          "common",
                                          "combined",
                                          "vhost_combined",
                                          "apache:combinedio",
                                          "apache:vhost_common",
                                          "nginx:main",
                                          "syslog,auto",
                                          "cri,auto",
                                          "json:/message,auto",
                                          "json:/log,auto",
                                          "json",
                                          "metric",
                                          "otlp",
                                          "logfmt",
                                          "influx",
                                          "w3c"};
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        (void)!try(d, formats[i], "", false);
    const struct tried *t = try_presets(d), *w3c = try(d, "w3c", "", false);
    if (t != NULL)
        return t;
    if (w3c->read == d->lines && w3c->events > 0)
        return w3c;
    if (fit_find(d->fit, &d->found))
        t = try(d, d->found.steps.ptr, d->found.time, false);
    if (t != NULL && t->read == d->lines)
        return t;
    t = try_columns(d, "csv", ',');
    return t != NULL ? t : try_columns(d, "tsv", '\t');
}

/* ---- what is said */

static int compare_read(const void *a, const void *b)
{
    const struct tried *x = a, *y = b;
    return (x->read < y->read) - (x->read > y->read);
}

/* As comments of YAML. */
static void print_tried(const struct detect *d, const struct tried *sorted, struct text *out)
{
    char number[UNITS_NUMBER_BYTES];
    text_puts(out, "# ");
    text_show(out, slice_text(d->file));
    text_printf(out, ": of its first %s lines, formats read\n", units_number((int64_t)d->lines, number));
    for (size_t i = 0; i < d->tried_count; i++) {
        const struct tried *t = &sorted[i];
        if (t->read == 0)
            break;
        text_printf(out, "#   %9s ", units_number((int64_t)t->read, number));
        text_show(out, slice_text(t->steps));
        if (t->time[0] != '\0')
            text_printf(out, ", time: %s", t->time);
        text_puts(out, t->has_header ? "; the first line has the names\n" : "\n");
    }
    if (fit_missing(d->fit) != NULL)
        text_printf(out, "# formats of programs that tallyd knows by name were not tried: %s\n",
                    fit_missing(d->fit));
}

/* "access" of "/var/log/Access.log" */
static void print_name(const char *file, struct text *out)
{
    const char *slash = strrchr(file, '/'), *p = slash != NULL ? slash + 1 : file;
    size_t len = 0;
    for (; *p != '\0' && *p != '.' && len < NAME_BYTES; p++) {
        char c = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
        bool is_letter = c >= 'a' && c <= 'z', is_digit = c >= '0' && c <= '9';
        if (len == 0 && !is_letter)
            continue;
        text_putc(out, is_letter || is_digit ? c : '_');
        len++;
    }
    if (len == 0)
        text_puts(out, "log");
}

/* The path as a pattern that matches just it, whole. */
static void print_path(const char *file, struct text *out)
{
    struct text pattern = {0};
    char *folder = file[0] != '/' ? getcwd(NULL, 0) : NULL;
    if (folder != NULL)
        text_printf(&pattern, "%s/", folder);
    free(folder);
    for (const char *p = file; *p != '\0'; p++) {
        if (strchr("*?[]{}\\", *p) != NULL)
            text_putc(&pattern, '\\');
        text_putc(&pattern, *p);
    }
    text_json(out, text_slice(&pattern));
    text_fini(&pattern);
}

/* Adds the fields of an event of JSON whose members are called otherwise. */
static void print_members(const struct detect *d, const struct tried *t, const struct decode *decode,
                          struct text *out)
{
    struct text fields = {0};
    if (decode->step_count > 1 || decode->steps[0].kind != STEP_JSON || decode->preset != NULL)
        return;
    struct members *m = members_new();
    for (size_t i = 0; i < d->lines; i++)
        members_look(m, line_of(d, i));
    members_print(m, t->present, &fields);
    if (fields.len > 0)
        text_printf(out, "\n    fields: %s", fields.ptr);
    text_fini(&fields);
    members_free(m);
}

static void print_source(const struct detect *d, const struct tried *t, struct text *out)
{
    struct decode decode;
    struct err e;
    bool is_stdin = strcmp(d->file, "-") == 0, good = setup_parse_source(t->steps, t->time, &decode, &e);
    ASSERT(good); /* it has read lines */
    if (d->found.doubt != NULL && strcmp(t->steps, d->found.steps.ptr) == 0)
        text_printf(out, "# %s\n", d->found.doubt);
    text_puts(out, "sources:\n  ");
    print_name(d->file, out);
    text_puts(out, is_stdin ? ":\n    type: stdin" : ":\n    path: ");
    if (!is_stdin)
        print_path(d->file, out);
    text_puts(out, "\n    decode: ");
    decode_print_steps(&decode, out);
    if (t->time[0] != '\0')
        text_printf(out, "\n    time: %s", t->time);
    print_members(d, t, &decode, out);
    text_putc(out, '\n');
}

static bool refuse(const struct detect *d, const struct tried *best, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (d->found.doubt != NULL)
        return err_set(e, EX_DATAERR,
                       "%s: no format is sure: %s. Paste the server's format: decode: [{apache: '%%h …'}]",
                       d->file, d->found.doubt);
    if (best->read == 0)
        return err_set(
            e, EX_DATAERR,
            "%s: no format reads any of its lines. Line 1 is %s. Paste the server's format, or give "
            "columns or a regular expression",
            d->file, suggest_quote(line_of(d, 0), quote));
    if (best->missed == 0)
        return err_set(e, EX_DATAERR, "%s: %s reads all of its lines, but perhaps with fields moved", d->file,
                       best->steps);
    return err_set(
        e, EX_DATAERR,
        "%s: no format reads all of its lines. %s does not read line %zu, column %zu: %s, found %s", d->file,
        best->steps, best->missed, best->why.column, reject_help(best->why.reason),
        suggest_quote(line_of(d, best->missed - 1), quote));
}

static int report(struct detect *d)
{
    struct text out = {0};
    struct err e;
    if (d->lines == 0) {
        err_set(&e, EX_DATAERR, "%s has no lines", d->file);
        return options_complain("detect", &e);
    }
    const struct tried *found = find(d), *likely = find_likely(d);
    struct tried sorted[TRIED_MAX];
    memcpy(sorted, d->tried, sizeof sorted);
    qsort(sorted, d->tried_count, sizeof *sorted, compare_read);
    print_tried(d, sorted, &out);
    if (found != NULL)
        print_source(d, found, &out);
    bool good =
        options_print(&out, &e) && (found != NULL || refuse(d, likely != NULL ? likely : &sorted[0], &e));
    text_fini(&out);
    return good ? EX_OK : options_complain("detect", &e);
}

static int detect(const char *file, size_t lines)
{
    struct config *c = config_default();
    struct detect d = {.file = file, .line_max = (size_t)c->limits.line_max};
    struct err e;
    d.ends = xcalloc(lines, sizeof *d.ends);
    d.fit = fit_new(d.line_max);
    config_free(c);
    bool good = first_lines(file, d.line_max, lines, note_line, &d, &e);
    int code = good ? report(&d) : options_complain("detect", &e);
    for (size_t i = 0; i < d.tried_count; i++) {
        free(d.tried[i].steps);
        free(d.tried[i].time);
    }
    text_fini(&d.found.steps);
    text_fini(&d.bytes);
    free(d.ends);
    fit_free(d.fit);
    return code;
}

static bool take_lines(void *context, const char *name, const char *value, struct err *e)
{
    return first_lines_parse(name, value, context, e);
}

int cmd_detect(int argc, char **argv)
{
    size_t lines = DETECT_LINES;
    const struct option_word words[] = {{"lines", 'n', .take = take_lines}};
    const struct command command = {"detect", usage, words, COUNT_OF(words), &lines};
    int code = options_parse(&command, &argc, &argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    if (argc != 1)
        return options_bad_usage("detect", argc == 0 ? "which FILE?" : "one FILE at a time");
    return detect(argv[0], lines);
}
