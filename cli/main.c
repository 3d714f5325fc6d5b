/* tallyd: counts log events into ready-to-chart documents, exactly once. */
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/show.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const char usage[] =
    "usage: tallyd COMMAND [OPTIONS] …\n"
    "\n"
    "  import FILE…   count log files (plain, gzip, zstd, bzip2, xz, or - for standard input)\n"
    "  run            count live sources and serve the page and API\n"
    "  query REPORT   read counts back: by any step of time, or the top series\n"
    "  top            watch a running daemon in this terminal\n"
    "  verify FILE…   recount files naively and compare every bucket of the store\n"
    "  check          check a configuration\n"
    "  detect FILE    propose the configuration of a source for a file\n"
    "  explain [LINE] show the fields of a line and what counts it, or why it is rejected\n"
    "  reload         have a service read its configuration again\n"
    "  job            show or run background jobs: rollup, top, expire\n"
    "  backfill REPORT  count for a report what was counted before it was configured\n"
    "  forget WHAT    take a file, or a report, out of the store again\n"
    "  admin          back up and restore a store; show what a MongoDB database needs\n"
    "\n"
    "`tallyd COMMAND --help` tells more. Without -c FILE everything has a default: reports `site` and "
    "`pages`\n"
    "over Apache's common, combined and vhost_combined lines, in tallyd.db of the working directory.\n"
    "\n"
    "  tallyd import /var/log/apache2/access.log*\n"
    "  tallyd query pages --filter path=/index.html --from -1h --step minute\n";

static const struct listed {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"admin", cmd_admin},   {"backfill", cmd_backfill}, {"check", cmd_check},
                {"detect", cmd_detect}, {"explain", cmd_explain},   {"forget", cmd_forget},
                {"import", cmd_import}, {"job", cmd_job},           {"query", cmd_query},
                {"reload", cmd_reload}, {"run", cmd_run},           {"top", cmd_top},
                {"verify", cmd_verify}};

/* NULL: there is none of this name. */
static const struct listed *find_command(const char *name)
{
    size_t i = 0;
    while (i < COUNT_OF(commands) && strcmp(name, commands[i].name) != 0)
        i++;
    return i < COUNT_OF(commands) ? &commands[i] : NULL;
}

/* Output that could not be written is a failure. A command that ends with EX_IOERR has reported its own. */
static int finish(int status)
{
    int error = fflush(stdout) == 0 ? 0 : errno;
    if ((error == 0 && !ferror(stdout)) || status == EX_IOERR)
        return status;
    if (status == EX_OK)
        options_end_by_pipe();
    fprintf(stderr, "tallyd: cannot write all of it to standard output%s%s\n", error != 0 ? ": " : "",
            error != 0 ? strerror(error) : "");
    return status != EX_OK ? status : EX_IOERR;
}

/* Names the command that was meant, if one is near, or has a command of this name. */
static int refuse_command(const char *given)
{
    static const char *const of_admin[] = {"backup", "copy",    "indexes",   "restore",
                                           "shard",  "upgrade", "validator", NULL};
    const char *names[COUNT_OF(commands) + 1] = {NULL};
    char shown[SHOW_BYTES], hint[SUGGEST_HINT_BYTES];
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        names[i] = commands[i].name;
    if (slice_find(slice_text(given), of_admin) >= 0)
        snprintf(hint, sizeof hint, " (did you mean \"admin %s\"?)", given);
    else
        suggest_hint(slice_text(given), names, hint);
    fprintf(stderr, "tallyd: unknown command \"%s\"%s; `tallyd --help` lists all\n", show(given, shown),
            hint);
    return EX_USAGE;
}

/* Refuse an option that stands before its command. */
static int refuse_option(const char *option, char **behind)
{
    char shown[SHOW_BYTES];
    while (*behind != NULL && find_command(*behind) == NULL)
        behind++;
    fprintf(stderr, "tallyd: found %s first, expected options behind the command: `tallyd %s %s …`\n",
            show(option, shown), *behind != NULL ? *behind : "COMMAND", shown);
    return EX_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* Print the help of the whole, or of one command. */
static int help(const char *of)
{
    if (of == NULL) {
        fputs(usage, stdout);
        return 0;
    }
    const struct listed *c = find_command(of);
    char *argv[] = {(char[]){"tallyd"}, (char[]){"--help"}, NULL};
    return c != NULL ? finish(c->run(2, argv)) : refuse_command(of);
}

int main(int argc, char **argv)
{
    log_init();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe becomes an error of write(2), and does not end the process */
    if (!failpoint_init()) {
        fputs("tallyd: TALLYD_FAILPOINT names no place of base/failpoint.h\n", stderr);
        return EX_USAGE;
    }
    if (argc < 2) {
        fputs(usage, stderr);
        return EX_USAGE;
    }
    if (is_help(argv[1]))
        return help(argv[2]);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("tallyd " TALLYD_VERSION);
        return 0;
    }
    const struct listed *c = find_command(argv[1]);
    if (c != NULL)
        return finish(c->run(argc - 1, argv + 1));
    return argv[1][0] == '-' ? refuse_option(argv[1], argv + 2) : refuse_command(argv[1]);
}
