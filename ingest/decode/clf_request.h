/* clf_request.h - splits a logged request line, if it is HTTP.
 *
 *   GET /a?b HTTP/1.1    method, target (spaces and all), path, protocol
 *   GET /a?b             HTTP/0.9: no protocol
 *   \x16\x03\x01, -, …   anything else: none of these fields
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"

#include <stdbool.h>
#include <string.h>

struct clf_request {
    const char *target;     /* one space after the method's end */
    const char *target_end; /* one space before the protocol; without a protocol, the request's end */
};

/* The first byte that is not of the method at the request's start; `p`: there is no method. */
const char *clf_request_method_end(const char *p, const char *end);
/* The space between target and protocol; NULL: the request does not end with "HTTP/…". */
const char *clf_request_protocol_space(const char *target, const char *end);

struct slice clf_request_authority_path(const char *target, const char *end);

/* The path of a target whose query begins at `query`, or which ends there: the target itself, or what follows
 * the server's name in an absolute address (RFC 9112, 3.2.2), "/" if nothing does. It is a part of the
 * target. */
static inline struct slice clf_request_path_before(const char *target, const char *query)
{
    if (UNLIKELY(target < query && *target != '/'))
        return clf_request_authority_path(target, query);
    return slice_of(target, (size_t)(query - target));
}

/* The path of a target whose query is not known. */
static inline struct slice clf_request_path(const char *target, const char *end)
{
    const char *query = target < end ? memchr(target, '?', (size_t)(end - target)) : NULL;
    return clf_request_path_before(target, query != NULL ? query : end);
}

static inline bool clf_request_split(const char *p, const char *end, struct clf_request *out)
{
    const char *method = end - p > 4 && memcmp(p, "GET ", 4) == 0 ? p + 3 : clf_request_method_end(p, end);
    if (UNLIKELY(method == p || end - method < 2 || *method != ' '))
        return false;
    out->target = method + 1;
    bool usual = end - p > 13 && memcmp(end - 9, " HTTP/", 6) == 0 && end[-2] == '.' && end[-3] != ' ' &&
                 end[-1] != ' ';
    const char *space = usual ? end - 9 : clf_request_protocol_space(method + 1, end);
    out->target_end = space != NULL && space > out->target ? space : end;
    return out->target_end != end || *out->target == '/';
}
