#include "cli/top/terminal.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define TAKE "\033[?1049h\033[?25l"
#define GIVE "\033[0m\033[?25h\033[?1049l"

static struct termios before, during;
static volatile sig_atomic_t taken, redraw;

/* Signal handlers call these two: use only async-signal-safe functions. */
static void enter(void)
{
    taken = 1; /* set first: a signal may come in between */
    tcsetattr(STDIN_FILENO, TCSANOW, &during);
    if (write(STDOUT_FILENO, TAKE, sizeof TAKE - 1) < 0)
        redraw = 1; /* the next frame notices the error */
}

static void leave(void)
{
    if (!taken)
        return;
    taken = 0;
    if (write(STDOUT_FILENO, GIVE, sizeof GIVE - 1) < 0)
        redraw = 1; /* nobody is left to report it to */
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Restore the terminal, then end: SA_RESETHAND has restored the signal's default action, which follows when
 * this returns. */
static void on_end(int number)
{
    leave();
    raise(number);
}

/* In the background the terminal belongs to another process. */
static bool is_in_background(void)
{
    pid_t front = tcgetpgrp(STDIN_FILENO);
    return front >= 0 && front != getpgrp();
}

static void on_pause(int number)
{
    int error = errno;
    bool was_taken = taken;
    (void)number;
    leave();
    do
        raise(SIGSTOP);
    while (is_in_background());
    if (was_taken)
        enter();
    redraw = 1;
    errno = error;
}

static void on_resize(int number)
{
    (void)number;
    redraw = 1;
}

static const struct {
    int number;
    void (*handler)(int);
} handled[] = {{SIGINT, on_end},  {SIGTERM, on_end},   {SIGHUP, on_end},     {SIGQUIT, on_end},
               {SIGABRT, on_end}, {SIGSEGV, on_end},   {SIGBUS, on_end},     {SIGFPE, on_end},
               {SIGILL, on_end},  {SIGTSTP, on_pause}, {SIGWINCH, on_resize}};

/* previous handlers */
static struct sigaction handled_before[COUNT_OF(handled)], ttou_before;

static void handle(int number, void (*handler)(int), struct sigaction *old)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = handler == on_end ? (int)SA_RESETHAND : 0};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, old);
}

bool terminal_is_there(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
}

bool terminal_take(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    during = before;
    during.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    during.c_cc[VMIN] = 1;
    during.c_cc[VTIME] = 0;
    for (size_t i = 0; i < COUNT_OF(handled); i++)
        handle(handled[i].number, handled[i].handler, &handled_before[i]);
    enter();
    /* allows restoring the terminal from the background, but not taking it over there */
    handle(SIGTTOU, SIG_IGN, &ttou_before);
    return taken;
}

void terminal_give(void)
{
    if (!taken)
        return;
    leave();
    sigaction(SIGTTOU, &ttou_before, NULL);
    for (size_t i = 0; i < COUNT_OF(handled); i++)
        sigaction(handled[i].number, &handled_before[i], NULL);
}

void terminal_size(int *columns, int *rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

/* A signal between the check of `redraw` and poll() takes effect with the next figures. */
enum terminal_event terminal_wait(int64_t for_ms, char *key)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    ASSERT(for_ms >= 0);
    int n = redraw ? 0 : poll(&keys, 1, (int)for_ms);
    if (redraw) {
        redraw = 0;
        return TERMINAL_REDRAW;
    }
    if (n == 0 || (n < 0 && errno == EINTR))
        return TERMINAL_TIME;
    return n > 0 && read(STDIN_FILENO, key, 1) == 1 ? TERMINAL_KEY : TERMINAL_GONE;
}

bool terminal_write(const char *bytes, uint64_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (uint64_t)n;
    }
    return true;
}
