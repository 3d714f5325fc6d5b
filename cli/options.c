#include "cli/options.h"

#include "base/check.h"
#include "base/suggest.h"
#include "config/config_read.h"
#include "daemon/count/pipeline.h"
#include "daemon/setup.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_LONG    256 /* greater than any letter */
#define LETTERS_BYTES (2 * OPTIONS_MAX + 3)

/* Make the arguments of getopt_long(). A long option's value is FIRST_LONG plus its index in `words`; a
 * letter's is itself. */
static void for_getopt(const struct command *c, struct option longs[OPTIONS_MAX + 2],
                       char letters[LETTERS_BYTES])
{
    size_t n = 0;
    letters[n++] = ':'; /* getopt_long() prints nothing, and returns ':' for an option without its value */
    ASSERT(c->word_count <= OPTIONS_MAX);
    for (size_t i = 0; i < c->word_count; i++) {
        const struct option_word *w = &c->words[i];
        longs[i] = (struct option){w->name, w->flag != NULL ? no_argument : required_argument, NULL,
                                   FIRST_LONG + (int)i};
        if (w->letter != 0)
            letters[n++] = w->letter;
        if (w->letter != 0 && w->flag == NULL)
            letters[n++] = ':';
    }
    longs[c->word_count] = (struct option){"help", no_argument, NULL, 'h'};
    longs[c->word_count + 1] = (struct option){NULL, 0, NULL, 0};
    letters[n++] = 'h';
    letters[n] = '\0';
}

/* The option that getopt_long() found; NULL: the command has none. */
static const struct option_word *find_word(const struct command *c, int found)
{
    if (found >= FIRST_LONG)
        return &c->words[found - FIRST_LONG];
    size_t i = 0;
    while (i < c->word_count && (c->words[i].letter == 0 || c->words[i].letter != found))
        i++;
    return i < c->word_count ? &c->words[i] : NULL;
}

static bool take_threads(const char *name, const char *value, long *threads, struct err *e)
{
    char *end;
    *threads = strtol(value, &end, 10);
    return (*end == '\0' && *threads >= 1 && *threads <= PIPELINE_THREADS_MAX) ||
           err_set(e, EX_USAGE, "--%s takes a number from 1 to %d", name, PIPELINE_THREADS_MAX);
}

static bool take_decode(const char *name, const char *value, struct option_decode *decode, struct err *e)
{
    decode->text = value;
    return setup_parse_decode(value, &decode->steps, e) || err_prefix(e, "--%s", name);
}

static bool take_word(const struct command *c, const struct option_word *w, struct err *e)
{
    if (w->take != NULL)
        return w->take(c->context, w->name, optarg, e);
    if (w->threads != NULL)
        return take_threads(w->name, optarg, w->threads, e);
    if (w->decode != NULL)
        return take_decode(w->name, optarg, w->decode, e);
    if (w->flag != NULL)
        *w->flag = true;
    else
        *w->text = optarg;
    return true;
}

/* Report the word that getopt_long() stopped at: a long option, or one letter of several. */
static int refuse(const struct command *c, int found, const char *word)
{
    char letter[] = {'-', (char)optopt, '\0'}, hint[SUGGEST_HINT_BYTES] = "";
    const char *names[OPTIONS_MAX + 1] = {NULL};
    struct err e;
    bool is_long = strncmp(word, "--", 2) == 0;
    for (size_t i = 0; i < c->word_count; i++)
        names[i] = c->words[i].name;
    if (found == '?' && is_long)
        suggest_hint(slice_of(word + 2, strcspn(word + 2, "=")), names, hint);
    if (found == '?')
        err_set(&e, EX_USAGE, "unknown option %s%s", is_long ? word : letter, hint);
    else
        err_set(&e, EX_USAGE, "%s needs a value", is_long ? word : letter);
    return options_complain(c->name, &e);
}

int options_parse(const struct command *c, int *argc, char ***argv)
{
    struct option longs[OPTIONS_MAX + 2];
    char letters[LETTERS_BYTES];
    struct err e;
    for_getopt(c, longs, letters);
    for (int found; (found = getopt_long(*argc, *argv, letters, longs, NULL)) != -1;) {
        const struct option_word *w = find_word(c, found);
        if (found == 'h') {
            fputs(c->usage, stdout);
            return fflush(stdout) == 0 ? OPTIONS_DONE : EX_IOERR;
        }
        if (w == NULL)
            return refuse(c, found, (*argv)[optind - 1]);
        if (!take_word(c, w, &e))
            return options_bad_usage(c->name, e.text);
    }
    *argc -= optind;
    *argv += optind;
    return 0;
}

int options_complain(const char *command, const struct err *e)
{
    fprintf(stderr, "%stallyd %s: %s", log_error_prefix(), command, e->text);
    if (e->code == EX_USAGE)
        fprintf(stderr, "; `tallyd %s --help` tells more", command);
    fputc('\n', stderr);
    return e->code;
}

int options_bad_usage(const char *command, const char *what)
{
    struct err e;
    err_set(&e, EX_USAGE, "%s", what);
    return options_complain(command, &e);
}

void options_end_by_pipe(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1 || (out.revents & POLLERR) == 0)
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

void options_show_lines(struct text *out)
{
    struct text raw = *out;
    *out = (struct text){0};
    for (size_t at = 0; at < raw.len;) {
        const char *end = memchr(raw.ptr + at, '\n', raw.len - at);
        size_t len = end != NULL ? (size_t)(end - raw.ptr) - at : raw.len - at;
        text_show(out, slice_of(raw.ptr + at, len));
        if (end != NULL)
            text_putc(out, '\n');
        at += len + (end != NULL);
    }
    text_fini(&raw);
}

bool options_print(const struct text *out, struct err *e)
{
    if (fwrite(out->ptr, 1, out->len, stdout) == out->len && fflush(stdout) == 0)
        return true;
    int error = errno;
    options_end_by_pipe();
    return err_set(e, EX_IOERR, "cannot write to standard output: %s", strerror(error));
}

void options_print_lines(const char *lines, const char *prefix)
{
    for (size_t len; lines != NULL && *lines != '\0'; lines += len) {
        struct text shown = {0};
        len = strcspn(lines, "\n");
        text_show(&shown, slice_of(lines, len));
        len += lines[len] == '\n';
        fprintf(stderr, "%s%s\n", prefix, shown.ptr);
        text_fini(&shown);
    }
}

struct config *options_load(const char *file, const char *store_url, int *code)
{
    struct text problems = {0};
    struct err e;
    struct config *c = file == NULL ? config_default() : config_load(file, &problems, code);
    if (c == NULL)
        options_print_lines(problems.ptr, log_error_prefix());
    text_fini(&problems);
    if (c == NULL || store_url == NULL || config_set_store(c, store_url, &e))
        return c;
    fprintf(stderr, "%stallyd: --store: %s\n", log_error_prefix(), e.text);
    *code = EX_USAGE;
    config_free(c);
    return NULL;
}

struct config *options_load_to_decode(const char *file, const char *store_url, struct decode *decode,
                                      int *code)
{
    struct config *c = options_load(file, store_url, code);
    struct err e;
    if (c == NULL)
        return NULL;
    if (decode != NULL)
        decode->derive = &c->derive;
    if (derive_open(&c->derive, &e) && registry_open(&c->registry, &clock_system, &e))
        return c;
    fprintf(stderr, "%s%s: %s\n", log_error_prefix(), file != NULL ? file : "built-in", e.text);
    *code = e.code;
    config_free(c);
    return NULL;
}
