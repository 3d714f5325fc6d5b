/* api.h - the answers of the HTTP API, without HTTP itself. Called by server.c and prom_api.c.
 *
 *   /api/v1/query     takes the parameters of query_set(); `format` is json unless it says csv or table
 *   /api/v1/top       takes the parameters of ranking_set(): the largest series, with share and trend
 *   /api/v1/series    takes the parameters of values_set(): the values of a dimension with a prefix
 *   /api/v1/stream    takes the words of streams.h: the newest rows each second
 *   /api/v1/reports   the reports: [{"name":"pages","dimensions":["path"],"measures":["hits",…],
 *                     "expressions":["count",…]},…]
 *   /api/v1/status    the daemon's status (status.h)
 *   /api/v1/rejects   why records were rejected since the start, with samples (rejects.h)
 *   /metrics          the status for Prometheus (metrics.h)
 *   /healthz          is it alive? 200 "ok", or 503 and why not
 *   /readyz           does it consume, does the store take batches, is the lag within its limit? As /healthz;
 *                     behind "ok" a line for each warning
 *
 * Errors : {"error":"…"}: 400 wrong question; 401, 403 by server.c; 422 a limit is exceeded; 503 a retry may
 *          succeed (the store is locked, or was never written); 500 any other.
 * Threads: any.
 */
#pragma once

#include "query/query.h"
#include "stats/rejects.h"
#include "stats/status.h"
#include "web/readers.h"
#include "web/reply.h"

struct streams; /* streams.h */

struct api {
    struct readers readers;
    pthread_mutex_t limits_lock;
    struct query_limits limits; /* may change while the server runs */
    struct quota memory;        /* of all questions under way: query.memory_max */
    struct missed_cache missed;
    const struct clock *clock;
    struct status *status;
    struct rejects *rejects;
    struct streams *streams;
};

typedef void api_fn(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp);

api_fn api_query, api_top, api_series, api_reports, api_status, api_rejects, api_metrics, api_health,
    api_ready;

/* The time for a question from now on. */
int64_t api_timeout_ms(struct api *api);
/* The present limits of a question. */
struct query_limits api_limits(struct api *api);
/* Initializes a question without parameters, with the present limits and time. Its format is JSON. */
void api_begin(struct api *api, struct query *q);
/* Is the question wrong or too expensive? False: the error is another, such as an unreachable store. */
bool api_is_of_question(const struct err *e);
/* Makes the reply an error. */
void api_error(struct reply *rp, unsigned code, struct slice text);
void api_fail(struct reply *rp, const struct err *e);
