/* options.h - what every command has in common: its options, its configuration, and what it says when one of
 * them is wrong.
 *
 * Options : long ones, and letters of some, as getopt_long() takes them; --help, -h is every command's. One
 *           that is given again has its last value, unless `take` is called for it.
 * Status  : 0: go on; OPTIONS_DONE: --help was answered; else the exit status, and standard error says why.
 */
#pragma once

#include "config/config.h"

#define OPTIONS_MAX  16
#define OPTIONS_DONE (-1)

/* False with what is wrong: it is told as EX_USAGE. */
typedef bool option_fn(void *context, const char *name, const char *value, struct err *e);

/* One of them; of `flag`, `text` and `take` one is given. */
struct option_word {
    const char *name;
    char letter; /* 0: none */
    bool *flag;  /* it has no argument: set */
    const char **text;
    option_fn *take; /* with the command's context */
};

struct command {
    const char *name, *usage; /* "import" */
    const struct option_word *words;
    size_t word_count;
    void *context;
};

/* What is left in *argv are the operands. */
int options_parse(const struct command *c, int *argc, char ***argv);

/* Say why a command ends; returns the exit status. Of wrong usage, where to find the right one. */
int options_complain(const char *command, const struct err *e);
int options_bad_usage(const char *command, const char *what);

/* Say it on standard output. False, EX_IOERR: it did not arrive. */
bool options_print(const struct text *out, struct err *e) MUST_CHECK;
/* What was said did not arrive: where its reader has seen enough, as head(1), end silently by SIGPIPE. */
void options_end_by_pipe(void);

/* The configuration of `-c file` (NULL: the built-in one) with the store of `--store url` (NULL: its own).
 * NULL: what is wrong was printed on standard error, and *code is the exit status. */
struct config *options_load(const char *file, const char *store_url, int *code);
