/* threads.h - finds unit tests that make threads and are not known to.
 *
 * `make check-all` runs only tests with threads under ThreadSanitizer: those that the Makefile lists. It
 * gives the others TALLYD_THREADS=none, with which a thread ends the program. Every unit test is linked with
 * this in place of pthread_create(). Threads that a library makes do not count: the sanitizer does not watch
 * its code. */
#pragma once

#include <pthread.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
