/* streams.h - answers that go on: the newest rows of a question each second, for any number of browsers, as
 * server-sent events.
 *
 *   event: rows
 *   data: {"report":"site","measures":["hits"],"step":"minute",…,"values":[[…],[…],["…:10:07:00Z",31]]}
 *
 *   event: status
 *   data: {"version":…}
 *
 * Words   : report, measure, filter and step (minute, if none is given) as query_set() takes them. The rows
 *           are the step at hand and the two before it, by second those of two minutes, as /api/v1/query
 *           answers them. Where the store cannot be read, a comment says so instead of them.
 * Cost    : streams of the same words in the same order share one question, which is asked once a second
 *           however many they are; a dear one less often, so that it takes at most STREAMS_SHARE of the time
 *           of the one thread that asks them. The others keep their second, but wait while it is asked. Where
 *           all together would take more than that share, all are asked less often.
 * Slow    : who has not taken a frame when the next is there misses some, and then gets the newest.
 * Limits  : streams_max at once; a further one is a 503.
 * Threads : any; a stream belongs to the thread that has it. streams_start() and streams_end() by one.
 */
#pragma once

#include "web/reply.h"

#include <stdbool.h>

#define STREAMS_INTERVAL_MS 1000
#define STREAMS_SHARE       5 /* a fifth */

struct api;
struct streams;
struct stream;

/* How a client is told to wait until stream_read() has something again. */
struct streams_clients {
    void (*suspend)(void *client); /* within stream_read() */
    void (*resume)(void *client);  /* from another thread */
};

/* `api` is borrowed. NULL: there is no thread to be had. */
struct streams *streams_start(struct api *api, const struct streams_clients *clients, size_t streams_max);
/* Every stream ends with its next read, and all that wait are resumed. */
void streams_end(struct streams *s);
/* Once no stream is open any more. NULL is fine. */
void streams_free(struct streams *s);

/* An api_fn: the stream, or why there is none. */
void stream_answer(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp);
/* NULL with the reason in `rp`. */
struct stream *stream_open(struct streams *s, const struct parameter *parameters, size_t count,
                           struct reply *rp);
void stream_close(struct stream *st);
/* Bytes put into `buf`; 0: none now, and `client` was suspended; -1: the end. */
long stream_read(struct stream *st, void *client, char *buf, size_t size);
