/* workers.h - answers questions on threads of its own, in the order of arrival. Called by server.c.
 *
 * Why     : a thread of libmicrohttpd serves many connections. A question there would stop them all, also
 *           those that ask whether the daemon is well.
 * Limits  : WORKERS_COUNT questions at once; the others wait. Each connection has one question at most.
 * Priority: the threads are nicer than those that count (WORKERS_NICE), so questions slow down each other,
 *           not the counting. If the system forbids that, they are not.
 * End     : a job's deadline ends it while it waits and while it runs. workers_end() cancels all.
 * Threads : any may add. The threads of the workers call run() and done().
 */
#pragma once

#include "base/deadline.h"

#define WORKERS_COUNT 4
#define WORKERS_NICE  10

/* Owned by the caller until done() is called; its memory may be released from then on. */
struct job {
    struct job *next;
    struct deadline deadline;
    void (*run)(struct job *job);  /* looks at the deadline first */
    void (*done)(struct job *job); /* run() has returned */
};

struct workers;

/* NULL: the threads cannot be started. */
struct workers *workers_start(void);
/* False: workers_end() was called, and nobody will run the job. */
bool workers_add(struct workers *w, struct job *job);
/* Cancels the deadlines of all jobs and waits until each is done. */
void workers_end(struct workers *w);
/* NULL is fine. Pre: workers_end() */
void workers_free(struct workers *w);
