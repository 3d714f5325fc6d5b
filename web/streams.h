/* streams.h - sends the newest rows of a question each second as server-sent events, to any number of
 * browsers. Called by server.c and respond.c.
 *
 *   event: rows
 *   data: {"report":"site","measures":["hits"],"step":"minute",…,"values":[[…],[…],["…:10:07:00Z",31]]}
 *
 *   event: status
 *   data: {"version":…}
 *
 * Words   : report, measure, filter, step (default: minute), week_start and tz, as query_set() takes them.
 * Rows    : the present step and the two before it; by second, the last two minutes. They have the format of
 *           /api/v1/query. If the store cannot be read, an SSE comment says so instead.
 * Cost    : streams with the same words in the same order share one question. One thread asks each question
 *           once a second. An expensive question is asked less often, so that it takes at most a fifth of the
 *           thread's time (STREAMS_SHARE); the others wait while it is asked. If all questions together would
 *           take more than that share, all are asked less often.
 * Slow    : a client that has not taken a frame when the next one is ready misses frames, and then gets the
 *           newest.
 * Deadline: query.timeout for each time that a question is asked.
 * Limits  : streams_max at once; a further one gets a 503. STREAMS_ROWS_BYTES of rows.
 * Threads : any; one thread uses a stream at a time. One thread calls streams_start() and streams_end().
 */
#pragma once

#include "web/reply.h"

#include <stdbool.h>

#define STREAMS_INTERVAL_MS 1000
#define STREAMS_ROWS_BYTES  (128 << 10)
#define STREAMS_BYTES \
    (2 * (STREAMS_ROWS_BYTES + (32 << 10))) /* of a stream: two frames, with a status each */
#define STREAMS_SHARE 5                     /* divisor: at most a fifth of the thread's time */

struct api;
struct streams;
struct stream;

/* Callbacks that make a client wait until stream_read() has bytes again. */
struct streams_clients {
    void (*suspend)(void *client); /* called within stream_read() */
    void (*resume)(void *client);  /* called from another thread */
};

/* Borrows `api`. NULL: the thread cannot be started. */
struct streams *streams_start(struct api *api, const struct streams_clients *clients, size_t streams_max);
/* Resumes all waiting clients; every stream ends with its next read. */
void streams_end(struct streams *s);
/* Call once no stream is open any more. NULL is fine. */
void streams_free(struct streams *s);

/* An api_fn: replies with a stream, or with the reason why there is none. */
void stream_answer(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp);
/* NULL: `rp` has the reason. */
struct stream *stream_open(struct streams *s, const struct parameter *parameters, size_t count,
                           struct reply *rp);
void stream_close(struct stream *st);
/* Returns the bytes put into `buf`; 0: none now, and `client` was suspended; -1: the end. */
long stream_read(struct stream *st, void *client, char *buf, size_t size);
