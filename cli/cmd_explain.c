#include "base/clock.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/explain.h"
#include "cli/first_lines.h"
#include "cli/options.h"
#include "daemon/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd explain [OPTIONS] [LINE]\n"
    "\n"
    "Shows what becomes of a line, of the lines of standard input, or of the first lines of a file: the "
    "steps\n"
    "that read it, each field with its value and its columns, and which report counts it as which series. "
    "Of a\n"
    "line that is rejected it shows the column, the reason, and the format that would fit. Nothing is\n"
    "counted. For a source of Prometheus' remote write, the input is one message.\n"
    "\n"
    "  -f, --file FILE    the first lines of a file: plain, gzip, zstd, bzip2 or xz\n"
    "  -n, --lines N      how many lines (default: 10 of a FILE, all of standard input)\n"
    "  -c, --config FILE  configuration with sources and reports (default: built in)\n"
    "      --source NAME  the source of the lines (default: that of the FILE, else the first one)\n"
    "      --decode STEPS how lines become events, as combined or syslog,combined (default: as configured)\n"
    "      --json         print JSON: an object for each event or reject, in a line of its own\n"
    "  -h, --help         this text\n"
    "\n"
    "The exit status is 65 if a line is rejected.\n"
    "\n"
    "  tail -n 1 /var/log/nginx/access.log | tallyd explain --decode nginx:combined\n"
    "  tallyd explain -c tallyd.yaml --file /var/log/apache2/access.log --lines 3\n";

#define FILE_LINES 10

struct arguments {
    const char *config_file, *file, *source, *line;
    size_t lines; /* 0: the default */
    struct option_decode decode;
    bool json;
};

static bool take_lines(void *context, const char *name, const char *value, struct err *e)
{
    struct arguments *args = context;
    return first_lines_parse(name, value, &args->lines, e);
}

static int take_operands(struct arguments *args, int argc, char **argv)
{
    if (argc > 1)
        return options_bad_usage("explain", "there are several LINEs: put the line in single quotes");
    if (argc == 1 && args->file != NULL)
        return options_bad_usage("explain", "a LINE, or the lines of a --file?");
    if (argc == 1 && strcmp(argv[0], "-") != 0)
        args->line = argv[0];
    if (args->line != NULL && access(args->line, F_OK) == 0)
        return options_bad_usage("explain", "the LINE is the name of a file: say --file");
    if (args->source != NULL && args->decode.text != NULL)
        return options_bad_usage("explain", "--decode, or the decode of a --source?");
    return 0;
}

/* The source of the lines. NULL: there is none, or none of that name (EX_USAGE in *e). */
static const struct config_source *find_source(const struct config *c, const struct arguments *args,
                                               struct err *e)
{
    e->code = EX_OK;
    for (size_t i = 0; i < c->source_count && args->source != NULL; i++) {
        if (strcmp(c->sources[i].name, args->source) == 0)
            return &c->sources[i];
    }
    if (args->source != NULL) {
        err_set(e, EX_USAGE, "the configuration has no source %.100s", args->source);
        return NULL;
    }
    return args->file != NULL ? setup_source(c, args->file) : c->source_count > 0 ? &c->sources[0] : NULL;
}

struct lines {
    struct explain explain;
    bool all_good;
    struct err e;
};

static bool explain_next(void *context, struct slice line, size_t number)
{
    struct lines *ls = context;
    struct text out = {0};
    ls->all_good &= explain_line(&ls->explain, line, number, &out);
    bool good = out.len == 0 || options_print(&out, &ls->e);
    text_fini(&out);
    return good;
}

/* A file of one message, or standard input. */
static bool explain_message(struct lines *ls, const char *path, size_t line_max)
{
    char *bytes = xmalloc(line_max + 1); /* one more shows that it is too long */
    size_t len = 0;
    ssize_t n = -1;
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len <= line_max && (n = read(fd, bytes + len, line_max + 1 - len)) > 0)
        len += (size_t)n;
    bool good =
        n >= 0 || err_set(&ls->e, fd < 0 ? EX_NOINPUT : EX_IOERR, "%.200s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    good = good && explain_next(ls, slice_of(bytes, len), 1);
    free(bytes);
    return good;
}

static int explain_all(const struct arguments *args, const struct config *c)
{
    struct constants constants = {0};
    struct lines ls = {.all_good = true};
    const struct config_source *source = find_source(c, args, &ls.e);
    if (ls.e.code != EX_OK)
        return options_complain("explain", &ls.e);
    if (source != NULL && args->decode.text == NULL && decode_needs_schema(&source->decode)) {
        err_set(&ls.e, EX_USAGE,
                "the source %s has messages of %s, and a line is none: say --source or --decode",
                source->name, decode_binary_name(&source->decode));
        return options_complain("explain", &ls.e);
    }
    if (args->file != NULL)
        setup_constants(c, NULL, args->file, &constants);
    explain_init(&ls.explain, c,
                 args->decode.text != NULL ? &args->decode.steps
                 : source != NULL          ? &source->decode
                                           : setup_decode(c, NULL, NULL),
                 &constants);
    ls.explain.is_topic = source != NULL && source->type == SOURCE_KAFKA && args->decode.text == NULL;
    ls.explain.json = args->json;
    bool good;
    if (args->line != NULL) {
        good = explain_next(&ls, slice_text(args->line), 1);
    } else if (ls.explain.decode->steps[0].kind == STEP_REMOTE_WRITE) {
        good = explain_message(&ls, args->file != NULL ? args->file : "-", (size_t)c->limits.line_max);
    } else {
        size_t count = args->lines > 0 ? args->lines : args->file != NULL ? FILE_LINES : SIZE_MAX;
        good = first_lines(args->file != NULL ? args->file : "-", (size_t)c->limits.line_max, count,
                           explain_next, &ls, &ls.e);
    }
    if (!ls.all_good && fit_missing(ls.explain.fit) != NULL)
        fprintf(stderr, "tallyd explain: formats of programs that tallyd knows by name were not tried: %s\n",
                fit_missing(ls.explain.fit));
    explain_fini(&ls.explain);
    constants_fini(&constants);
    return !good ? options_complain("explain", &ls.e) : ls.all_good ? EX_OK : EX_DATAERR;
}

int cmd_explain(int argc, char **argv)
{
    struct arguments args = {0};
    const struct option_word words[] = {
        {"config", 'c', .text = &args.config_file}, {"file", 'f', .text = &args.file},
        {"lines", 'n', .take = take_lines},         {"source", .text = &args.source},
        {"decode", .decode = &args.decode},         {"json", .flag = &args.json}};
    const struct command command = {"explain", usage, words, COUNT_OF(words), &args};
    int code = options_parse(&command, &argc, &argv);
    if (code == 0)
        code = take_operands(&args, argc, argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    struct config *c = options_load_to_decode(args.config_file, NULL, &args.decode.steps, &code);
    if (c == NULL)
        return code;
    code = explain_all(&args, c);
    config_free(c);
    return code;
}
