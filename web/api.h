/* api.h - the answers of the HTTP API, apart from HTTP.
 *
 *   /api/v1/query     the parameters of query_set(); `format` is json unless it says csv or table
 *   /api/v1/top       those of ranking_set(): the largest series, with share and trend
 *   /api/v1/series    those of values_set(): the values of a dimension that begin with a prefix
 *   /api/v1/stream    those of streams.h: the newest rows each second
 *   /api/v1/reports   what can be asked for: [{"name":"pages","dimensions":["path"],"measures":["hits",…],
 *                     "expressions":["count",…]},…]
 *   /api/v1/status    how the counting goes (status.h)
 *   /metrics          the same for Prometheus (metrics.h)
 *   /healthz          is it alive? 200 "ok", or 503 and why not
 *   /readyz           does it consume, does the store take it, is the lag bearable? Likewise
 *
 * Errors : {"error":"…"}: 400 a wrong question, 401 and 403 by server.c, 422 the answer passes a limit,
 *          503 later perhaps (the store is locked, or was never written), 500 else.
 * Threads: any.
 */
#pragma once

#include "query/query.h"
#include "stats/status.h"
#include "web/readers.h"
#include "web/reply.h"

struct streams; /* streams.h */

struct api {
    struct readers readers;
    pthread_mutex_t limits_lock;
    struct query_limits limits; /* may change while it serves */
    struct status *status;
    struct streams *streams;
};

typedef void api_fn(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp);

api_fn api_query, api_top, api_series, api_reports, api_status, api_metrics, api_health, api_ready;

/* What a question may cost now. */
struct query_limits api_limits(struct api *api);
/* A question without words yet, with the limits and the time of now, to be answered as JSON. */
void api_begin(struct api *api, struct query *q);
/* Is it the question that is wrong or asks for too much, and not the store that is away? */
bool api_is_of_question(const struct err *e);
/* An answer that is an error. */
void api_error(struct reply *rp, unsigned code, struct slice text);
void api_fail(struct reply *rp, const struct err *e);
