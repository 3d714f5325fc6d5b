#include "daemon/commands.h"

#include "daemon/budget.h"
#include "daemon/options.h"
#include "daemon/setup.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] = "usage: tallyd check [-c FILE] [--print]\n"
                            "\n"
                            "Says whether a configuration is good. If it is not, every problem is printed\n"
                            "with its file, line and column, and the exit status is 78.\n"
                            "\n"
                            "  -c, --config FILE  the configuration; without it, the built-in one\n"
                            "      --print        show what is in effect, defaults and all, as YAML,\n"
                            "                     and how much memory its limits let `run` take\n"
                            "  -h, --help         this text\n";

/* --document, the page docs/CONFIG.md, is for `make docs` and not in the help. */
enum { OPTION_PRINT = 256, OPTION_DOCUMENT };

static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                        {"print", no_argument, NULL, OPTION_PRINT},
                                        {"document", no_argument, NULL, OPTION_DOCUMENT},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static int finish(struct text *out)
{
    bool good = fwrite(out->ptr, 1, out->len, stdout) == out->len && fflush(stdout) == 0;
    text_fini(out);
    if (!good)
        perror("tallyd check: cannot write");
    return good ? EX_OK : EX_IOERR;
}

/* Good for `import` and `verify`, but no set of sources that `run` could count. */
static void note_sources(const struct config *c, const char *prefix, struct text *out)
{
    size_t others = 0;
    for (size_t i = 0; i < c->source_count; i++)
        others += c->sources[i].type != SOURCE_KAFKA;
    if (others > 1 || (others > 0 && setup_has_topics(c)))
        text_printf(
            out,
            "%snote: `tallyd run` counts one file or standard input, or any number of topics: not these "
            "%zu sources at once\n",
            prefix, c->source_count);
}

static int check(const char *file, bool print)
{
    struct text out = {0};
    int code = EX_OK;
    struct config *c = options_load(file, NULL, &code);
    if (c == NULL)
        return code;
    if (print) {
        config_print(c, &out);
        note_sources(c, "# ", &out);
        budget_print(c, &out);
    } else {
        text_printf(&out, "%s: configuration is good\n", file == NULL ? "built-in" : file);
        note_sources(c, "", &out);
    }
    config_free(c);
    return finish(&out);
}

int cmd_check(int argc, char **argv)
{
    const char *file = NULL;
    struct text out = {0};
    bool print = false;
    int option;
    optind = 0;
    while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            file = optarg;
            break;
        case OPTION_PRINT:
            print = true;
            break;
        case OPTION_DOCUMENT:
            config_document(&out);
            return finish(&out);
        case 'h':
            text_puts(&out, usage);
            return finish(&out);
        default:
            fputs(usage, stderr);
            return EX_USAGE;
        }
    }
    if (optind == argc)
        return check(file, print);
    fprintf(stderr, "tallyd check: found \"%s\", expected options only\n%s", argv[optind], usage);
    return EX_USAGE;
}
