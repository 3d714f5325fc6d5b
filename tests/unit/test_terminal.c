/* The terminal is given back as it was: its settings, and what signals do. */
#include "base/check.h"
#include "cli/top/terminal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#define SIGNALS 32 /* all but those of real time */

enum outcome { GOOD, NO_TERMINAL, NOT_TAKEN, NOT_HANDLED, HANDLED_STILL, OTHER_SETTINGS };

static void on_signal(int number)
{
    (void)number;
}

static void look(struct sigaction actions[SIGNALS])
{
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &actions[i]);
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    const int flags =
        (int)SA_RESETHAND | SA_RESTART | SA_SIGINFO; /* there are some that the C library adds */
    return a->sa_handler == b->sa_handler && (a->sa_flags & flags) == (b->sa_flags & flags);
}

/* In a process of its own, whose terminal `name` is. */
static enum outcome take_and_give(const char *name)
{
    struct sigaction before[SIGNALS], during[SIGNALS], after[SIGNALS], mine = {.sa_handler = on_signal};
    struct termios settings = {0}, settings_after = {0};
    setsid();
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) != 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
        tcgetattr(fd, &settings) != 0)
        return NO_TERMINAL;
    signal(SIGQUIT, SIG_IGN);
    sigaction(SIGWINCH, &mine, NULL);
    look(before);
    terminal_give(); /* nothing yet */
    if (!terminal_take())
        return NOT_TAKEN;
    look(during);
    terminal_give();
    look(after);
    if (is_same(&before[SIGTSTP], &during[SIGTSTP]) || is_same(&before[SIGWINCH], &during[SIGWINCH]))
        return NOT_HANDLED;
    for (int i = 1; i < SIGNALS; i++) {
        if (!is_same(&before[i], &after[i]))
            return HANDLED_STILL;
    }
    tcgetattr(fd, &settings_after);
    return settings.c_lflag == settings_after.c_lflag &&
                   memcmp(settings.c_cc, settings_after.c_cc, sizeof settings.c_cc) == 0
               ? GOOD
               : OTHER_SETTINGS;
}

static void test_signals_are_as_they_were(void **state)
{
    int status, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    (void)state;
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit((int)take_and_give(ptsname(master)));
    assert_int_equal(waitpid(child, &status, 0), child);
    close(master);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signals_are_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
