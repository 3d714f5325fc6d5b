#include "tests/support/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* pthread_create() itself: so does the linker's --wrap name it. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    const char *allowed = getenv("TALLYD_THREADS");
    if (allowed != NULL && strcmp(allowed, "none") == 0) {
        fputs("This unit test makes a thread: add it to THREADED in the Makefile.\n", stderr);
        abort();
    }
    return __real_pthread_create(thread, attributes, run, context);
}
