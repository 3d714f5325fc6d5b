/* traffic.c - writes the access log of an imaginary site: a benchmark's file, or a demo's live stream.
 *
 * The benchmark (--lines) is one day exactly, four times as busy at its height in the afternoon as at its
 * lowest before dawn; the same seed gives the same bytes. The demo (--live) first catches up on the past and
 * then keeps pace with the clock. site.c makes the lines; this file decides when things
 * happen.
 */
#define _DEFAULT_SOURCE 1

#include "site.h"
#include "wall.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum {
    DAY_S = 86400,
    LATE_S_MAX = 120, /* one line in a hundred is written up to this long after its request began */
    TICK_MS = 50,
    GAP_MS_MAX = 5000, /* a live clock that jumped further than this (suspend, step) is not caught up with */
    OUT_BYTES = 1 << 20,
};

struct options {
    bool live;
    uint64_t lines, seed;
    int64_t start_s;
    double rate; /* lines a second, on average, when live */
    int64_t backfill_s;
};

struct out {
    size_t used;
    char bytes[OUT_BYTES];
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* A reader that went away, or Ctrl-C, is how a demo ends: no error. */
static void out_flush(struct out *ou)
{
    size_t done = 0;

    while (done < ou->used) {
        ssize_t n = write(STDOUT_FILENO, ou->bytes + done, ou->used - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EPIPE || (errno == EINTR && stopped)) {
            exit(EX_OK);
        } else if (errno != EINTR) {
            perror("traffic: write");
            exit(EX_IOERR);
        }
    }
    ou->used = 0;
}

/* One line that is written at `now_s`; its request may have begun earlier, but never before `oldest_s`. */
static void out_add(struct out *ou, struct site *st, int64_t now_s, int64_t oldest_s)
{
    int64_t at_s = now_s;

    if (site_random(st) % 100 == 0)
        at_s -= 1 + (int64_t)(site_random(st) % LATE_S_MAX);
    if (at_s < oldest_s)
        at_s = oldest_s;
    if (ou->used + SITE_LINE_BYTES_MAX > sizeof(ou->bytes))
        out_flush(ou);
    ou->used += site_encode(st, at_s, ou->bytes + ou->used);
}

/* The share of a day's traffic that has come by second `t`: the integral of 1 - 0.6 × cos(2π(t - 4 h) ÷ day),
 * whose extremes are 1.6 and 0.4. */
static double day_share(double t)
{
    const double turn = 2 * acos(-1.0), low_s = 4 * 3600.0;
    return t / DAY_S - 0.6 / turn * (sin(turn * (t - low_s) / DAY_S) + sin(turn * low_s / DAY_S));
}

static void write_day(const struct options *op, struct site *st, struct out *ou)
{
    uint64_t written = 0;

    for (int64_t second = 0; second < DAY_S && !stopped; second++) {
        bool last = second == DAY_S - 1;
        uint64_t due = last ? op->lines : (uint64_t)((double)op->lines * day_share((double)second + 1));
        for (; written < due; written++)
            out_add(ou, st, op->start_s + second, op->start_s);
    }
}

/* Several periods that share no multiple, and noise: a chart by the second moves, and one by the minute too.
 */
static double live_rate(const struct options *op, struct site *st, double t)
{
    double noise = (double)(site_random(st) >> 11) / 9007199254740992.0 - 0.5;
    return op->rate * (1 + 0.3 * sin(t / 211) + 0.2 * sin(t / 61) + 0.1 * sin(t / 7) + 0.4 * noise);
}

/* The same steps make up the past, at full speed, and the present. */
static void write_live(const struct options *op, struct site *st, struct out *ou)
{
    int64_t now_ms = wall_ms(), at_ms = now_ms - op->backfill_s * 1000;
    double due = 0;

    while (!stopped) {
        for (; at_ms < now_ms && !stopped; at_ms += TICK_MS) {
            due += live_rate(op, st, (double)at_ms / 1000) * TICK_MS / 1000;
            for (; due >= 1; due--)
                out_add(ou, st, at_ms / 1000, 0);
        }
        out_flush(ou);
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
        now_ms = wall_ms();
        if (now_ms - at_ms > GAP_MS_MAX || now_ms < at_ms - GAP_MS_MAX)
            at_ms = now_ms;
    }
}

static const char help[] =
    "traffic - write Apache combined log lines of an imaginary site to standard output\n"
    "\n"
    "  traffic --lines N [--seed N] [--start TIME]     one day of N lines, then end\n"
    "  traffic --live [--rate N] [--backfill SECONDS]  the past, then live until Ctrl-C\n"
    "\n"
    "  --lines N           lines to write, spread over exactly 24 hours\n"
    "  --start TIME        first moment of that day (default 2026-01-05T00:00:00Z)\n"
    "  --live              write at the pace of the clock\n"
    "  --rate N            lines a second on average when live (default 200)\n"
    "  --backfill SECONDS  past traffic to write first, at full speed (default 3600)\n"
    "  --seed N            the same seed and --lines give the same bytes (default 1)\n"
    "  --help              this text\n";

static _Noreturn void usage_error(const char *what, const char *value)
{
    fprintf(stderr, "traffic: %s%s%s (see traffic --help)\n", what, value ? ": " : "", value ? value : "");
    exit(EX_USAGE);
}

static uint64_t number_parse(const char *text, uint64_t min, uint64_t max, const char *option)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < min || number > max) {
        fprintf(stderr, "traffic: %s: '%s' is not a whole number from %llu to %llu\n", option, text,
                (unsigned long long)min, (unsigned long long)max);
        exit(EX_USAGE);
    }
    return number;
}

static int64_t time_parse(const char *text)
{
    struct tm tm = {0};
    int len = 0;

    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &len) != 6 ||
        len != 20 || text[len])
        usage_error("--start: not a time like 2026-01-05T00:00:00Z", text);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    struct tm asked = tm;
    time_t at = timegm(&tm);
    if (at < 0 || tm.tm_mday != asked.tm_mday || tm.tm_hour != asked.tm_hour || tm.tm_min != asked.tm_min ||
        tm.tm_sec != asked.tm_sec)
        usage_error("--start: no such time since 1970", text);
    return at;
}

static struct options options_parse(int argc, char **argv)
{
    static const struct option table[] = {
        {"lines", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 's'},
        {"start", required_argument, NULL, 't'}, {"live", no_argument, NULL, 'L'},
        {"rate", required_argument, NULL, 'r'},  {"backfill", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
    };
    struct options op = {.seed = 1, .start_s = 1767571200, .rate = 200, .backfill_s = 3600};

    for (int c; (c = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        if (c == 'l')
            op.lines = number_parse(optarg, 1, 1000000000000, "--lines");
        else if (c == 's')
            op.seed = number_parse(optarg, 0, UINT64_MAX, "--seed");
        else if (c == 't')
            op.start_s = time_parse(optarg);
        else if (c == 'L')
            op.live = true;
        else if (c == 'r')
            op.rate = (double)number_parse(optarg, 1, 1000000, "--rate");
        else if (c == 'b')
            op.backfill_s = (int64_t)number_parse(optarg, 0, 366 * DAY_S, "--backfill");
        else if (c == 'h')
            exit(fputs(help, stdout) == EOF ? EX_IOERR : EX_OK);
        else
            exit(EX_USAGE);
    }
    if (optind < argc)
        usage_error("unexpected argument", argv[optind]);
    if (op.live == (op.lines > 0))
        usage_error("exactly one of --lines and --live is needed", NULL);
    return op;
}

int main(int argc, char **argv)
{
    static struct out out;
    struct options op = options_parse(argc, argv);
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    struct site *st = site_new(op.seed);
    if (op.live)
        write_live(&op, st, &out);
    else
        write_day(&op, st, &out);
    out_flush(&out);
    site_free(st);
    return EX_OK;
}
