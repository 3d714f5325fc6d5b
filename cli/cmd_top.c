#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/top/live_view.h"
#include "cli/top/terminal.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#define EVERY_MS 1000

static const char usage[] =
    "usage: tallyd top [OPTIONS]\n"
    "\n"
    "Watches a running daemon in this terminal: its rate, rejected lines and lag, the last hour by minute,\n"
    "status classes (if a report is `by: [status_class]` or `by: [status]`), and the top series with share\n"
    "and trend against the hour before. It redraws each second; q ends it. Without a terminal it prints one\n"
    "picture and ends.\n"
    "\n"
    "      --url URL           the daemon (default: http://127.0.0.1:8080)\n"
    "      --cacert FILE       for https://: PEM file with certificates that may have signed the daemon's\n"
    "      --report NAME       the report whose series are shown (default: pages, else the first with "
    "series)\n"
    "      --measure NAME      the measure that ranks them (default: the report's first); the name of\n"
    "                          a histogram ranks by p99, with a chart of p50 beside that of p99\n"
    "  -h, --help              this text\n";

static int parse_arguments(struct live *l, int argc, char **argv)
{
    const struct option_word words[] = {{"url", .text = &l->daemon.url},
                                        {"cacert", .text = &l->daemon.cacert},
                                        {"report", .text = &l->report},
                                        {"measure", .text = &l->measure}};
    const struct command command = {"top", usage, words, COUNT_OF(words), NULL};
    int code = options_parse(&command, &argc, &argv);
    if (code != 0)
        return code;
    if (argc > 0)
        return options_bad_usage("top", "it takes no operands: the daemon is --url, the report --report");
    return client_is_url(l->daemon.url) ? 0 : options_bad_usage("top", "--url: expected http://HOST:PORT");
}

static bool print_once(const struct live *l, struct err *e)
{
    const char *columns = getenv("COLUMNS");
    struct live_view view = {.columns = columns != NULL ? atoi(columns) : 0};
    struct text out = {0};
    if (view.columns <= 0)
        view.columns = 80;
    live_draw(l, &view, &out);
    bool good = options_print(&out, e);
    text_fini(&out);
    return good;
}

static bool draw(const struct live *l, const char *error)
{
    struct live_view view = {.on_screen = true, .error = error};
    struct text out = {0};
    terminal_size(&view.columns, &view.rows);
    live_draw(l, &view, &out);
    bool good = terminal_write(out.ptr, out.len);
    text_fini(&out);
    return good;
}

/* Wait until the next figures are due, and handle keys. False: quit. */
static bool wait_and_redraw(const struct live *l, const char *error, int64_t until_ms)
{
    int64_t left_ms;
    while ((left_ms = until_ms - clock_mono_ms(&clock_system)) > 0) {
        char key = 0;
        switch (terminal_wait(left_ms, &key)) {
        case TERMINAL_GONE:
            return false;
        case TERMINAL_KEY:
            if (key == 'q' || key == 'Q')
                return false;
            break;
        case TERMINAL_REDRAW:
            if (!draw(l, error))
                return false;
            break;
        default:
            break;
        }
    }
    return true;
}

/* Show figures until the operator quits. If the daemon goes away, keep asking: it may come back. */
static bool watch(struct live *l, struct err *e)
{
    if (!terminal_take())
        return err_set(e, EX_IOERR, "the terminal cannot be used: %s", strerror(errno));
    int64_t next_ms = clock_mono_ms(&clock_system);
    bool good = true, going = true;
    while (going) {
        const char *error = good ? NULL : e->text;
        next_ms += EVERY_MS;
        if (next_ms < clock_mono_ms(&clock_system))
            next_ms = clock_mono_ms(&clock_system) + 1; /* the answer was slow, but look for keys once */
        going = draw(l, error) && wait_and_redraw(l, error, next_ms);
        if (going)
            good = live_ask(l, e);
    }
    terminal_give();
    return true;
}

int cmd_top(int argc, char **argv)
{
    struct live l = {.daemon.url = "http://127.0.0.1:8080"};
    struct err e;
    int code = parse_arguments(&l, argc, argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    setlocale(LC_CTYPE, "");
    bool good =
        live_start(&l, &e) && live_ask(&l, &e) && (terminal_is_there() ? watch(&l, &e) : print_once(&l, &e));
    live_fini(&l);
    return good ? EX_OK : options_complain("top", &e);
}
