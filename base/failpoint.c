#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILPOINT_NAME(id, name) name,
static const char *const names[] = {FAILPOINT_TABLE(FAILPOINT_NAME)};
#undef FAILPOINT_NAME

static int wanted = -1;
static bool stops;
static atomic_long passes_left;

bool failpoint_init(void)
{
    const char *text = getenv("TALLYD_FAILPOINT");
    if (text == NULL || *text == '\0')
        return true;
    size_t len = strcspn(text, ":");
    for (int i = 0; i < FAILPOINT_COUNT; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
            wanted = i;
    }
    const char *pass = text[len] == ':' ? text + len + 1 : "1";
    stops = strcmp(pass, "stop") == 0;
    passes_left = strtol(pass, NULL, 10);
    return wanted >= 0 && (stops || passes_left > 0);
}

void failpoint(enum failpoint place)
{
    if ((int)place != wanted)
        return;
    if (stops) {
        kill(getpid(), SIGSTOP);
        return;
    }
    if (atomic_fetch_sub(&passes_left, 1) != 1)
        return;
    kill(getpid(), SIGKILL);
    while (true)
        pause();
}
