/* threads.h - the unit tests that make no threads are not run under ThreadSanitizer by `make check-all`. The
 * Makefile lists those that do; it gives the others TALLYD_THREADS=none, with which a thread is a failure. So the
 * list cannot miss a test. Every unit test is linked with this in place of pthread_create(). Threads of libraries
 * do not count: the sanitizer does not watch their code. */
#pragma once

#include <pthread.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
