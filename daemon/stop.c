#include "daemon/stop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_bool stopping;
static atomic_int caught;

static void on_signal(int number)
{
    atomic_store(&caught, number);
    atomic_store(&stopping, true);
}

const atomic_bool *stop_catch(void)
{
    /* SA_RESETHAND: the second signal has its default effect. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stopping;
}

int stop_signal(void)
{
    return atomic_load(&caught);
}
