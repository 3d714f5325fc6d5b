/* prom_api.h - the part of Prometheus' HTTP API that clients such as Grafana and promtool use for charts.
 * Called by server.c.
 *
 *   /prometheus/api/v1/query, query_range          an expression at an instant, over a range (prom/eval.h)
 *   /prometheus/api/v1/labels, label/NAME/values, series, metadata                       (prom/list.h)
 *   /prometheus/api/v1/status/buildinfo, rules, alerts, query_exemplars, targets, …      constant answers
 *   /prometheus/-/healthy, /-/ready                                                      as /healthz, /readyz
 *
 * Answers : {"status":"success","data":…}
 * Errors  : {"status":"error","errorType":"…","error":"…"}: 400 bad_data: a parameter or a regular
 *           expression is wrong; 422 execution: the expression is wrong, or a limit is exceeded; 503
 *           unavailable, or timeout (query.timeout); 500 internal.
 * Source  : https://prometheus.io/docs/prometheus/latest/querying/api/
 * Threads : any.
 */
#pragma once

#include "web/api.h"

#define PROM_API_PREFIX "/prometheus/"

/* Answers what needs no store: constants and states. Pre: as below. False: the path is none of them. */
bool prom_api_answer_at_once(struct api *api, const char *path, struct reply *rp);
/* Pre: `path` begins with PROM_API_PREFIX. False: no such path. */
bool prom_api_answer(struct api *api, const char *path, const struct parameter *parameters, size_t count,
                     struct reply *rp);
