#include "daemon/service/stop.h"

#include <signal.h>
#include <stddef.h>
#include <sysexits.h>
#include <unistd.h>

static atomic_bool stopping, reloading;
static atomic_int caught;
static atomic_uint timeout_s;

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* The second signal, SIGINT or SIGTERM, has its default effect. */
static void on_stop(int number)
{
    handle(SIGINT, SIG_DFL, 0);
    handle(SIGTERM, SIG_DFL, 0);
    atomic_store(&caught, number);
    atomic_store(&stopping, true);
    alarm(atomic_load(&timeout_s));
}

static void on_deadline(int number)
{
    static const char line[] = "level=error event=stop_timeout reason=\"run.stop_timeout is over; the next "
                               "run reads again what was not stored\"\n";
    (void)number;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _exit(EX_IOERR);
    _exit(EX_TEMPFAIL);
}

static void on_reload(int number)
{
    (void)number;
    atomic_store(&reloading, true);
}

const atomic_bool *stop_catch(void)
{
    handle(SIGINT, on_stop, 0);
    handle(SIGTERM, on_stop, 0);
    return &stopping;
}

int stop_signal(void)
{
    return atomic_load(&caught);
}

void stop_within(int64_t timeout_ms)
{
    atomic_store(&timeout_s, (unsigned)((timeout_ms + 999) / 1000));
    handle(SIGALRM, on_deadline, 0);
}

void stop_catch_reload(void)
{
    handle(SIGHUP, on_reload, SA_RESTART);
}

bool stop_take_reload(void)
{
    return atomic_exchange(&reloading, false);
}
