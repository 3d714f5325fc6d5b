/* remote.h - /prometheus/api/v1/read: Prometheus' remote_read over HTTP. Called by server.c.
 *
 *   POST, Content-Type application/x-protobuf: a ReadRequest, packed by Snappy; so is the answer
 *
 * Answers : prom/remote_read.h.
 * Limits  : REMOTE_REQUEST_BYTES of an unpacked request. Half of query.response_max for an answer before it
 *           is packed, since both its forms are in memory together.
 * Errors  : {"error":"…"}: 400 no such request; 422 a limit is exceeded; 503 a retry may succeed; 500
 *           libsnappy is missing, and others.
 * Threads : any.
 */
#pragma once

#include "web/api.h"

#define REMOTE_PATH          "/prometheus/api/v1/read"
#define REMOTE_TYPE          "application/x-protobuf"
#define REMOTE_REQUEST_BYTES ((size_t)64 << 10)

bool remote_is(const char *path);
void remote_answer(struct api *api, struct slice body, struct reply *rp);
