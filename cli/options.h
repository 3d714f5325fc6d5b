/* options.h - shared by all commands: options, configuration, and complaints about them.
 *
 * Options : long ones, some with a letter, as getopt_long() parses them; every command has --help, -h. If an
 *           option is repeated, its last value counts, unless it has a `take`, which is called each time.
 * Status  : 0: go on; OPTIONS_DONE: --help was answered; else the exit status, and standard error says why.
 */
#pragma once

#include "config/config.h"

#define OPTIONS_MAX  16
#define OPTIONS_DONE (-1)

/* Takes an option's value. False: `e` says what is wrong; it is reported as EX_USAGE. */
typedef bool option_fn(void *context, const char *name, const char *value, struct err *e);

/* The steps of --decode. */
struct option_decode {
    const char *text; /* as given; NULL: the option was not given */
    struct decode steps;
};

/* An option. Exactly one pointer behind `letter` is set. */
struct option_word {
    const char *name;
    char letter; /* 0: no letter */
    bool *flag;  /* set to true; the option has no argument */
    const char **text;
    long *threads; /* 1 to PIPELINE_THREADS_MAX */
    struct option_decode *decode;
    option_fn *take; /* called with the command's context */
};

struct command {
    const char *name, *usage; /* "import" */
    const struct option_word *words;
    size_t word_count;
    void *context;
};

/* Parse the options. *argc and *argv become the operands. */
int options_parse(const struct command *c, int *argc, char ***argv);

/* Print why a command ends; returns the exit status. For wrong usage, point at --help. */
int options_complain(const char *command, const struct err *e);
int options_bad_usage(const char *command, const char *what);

/* Print each of these lines on standard error, with a prefix. NULL: none. */
void options_print_lines(const char *lines, const char *prefix);

/* Make each line of `out` safe for a terminal (show.h). */
void options_show_lines(struct text *out);
/* Print `out` on standard output. False, EX_IOERR: it could not be written. */
bool options_print(const struct text *out, struct err *e) MUST_CHECK;
/* Call when standard output could not be written. If its reader has gone, as head(1) does, end silently by
 * SIGPIPE. */
void options_end_by_pipe(void);

/* Load the configuration of `-c file` (NULL: the built-in one) with the store of `--store url` (NULL: the
 * configured one). NULL: errors were printed on standard error, and *code is the exit status. */
struct config *options_load(const char *file, const char *store_url, int *code);
/* As options_load(), for a command that decodes: also opens what derived fields need, and has `decode`, which
 * an option gave, make them. NULL: no option can. */
struct config *options_load_to_decode(const char *file, const char *store_url, struct decode *decode,
                                      int *code);
