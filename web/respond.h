/* respond.h - sends a reply as an HTTP response: common headers, gzip, 304, streams. Called by server.c.
 *
 * Caching: clients revalidate an asset at each use. They also revalidate answers about a period that has
 *          ended, since a late event may change them; shared caches must not store these. Nothing else is
 *          cached.
 * Threads: one at a time for a connection; the connection is suspended if it is not its own.
 */
#pragma once

#include "web/clients.h"
#include "web/reply.h"

#include <microhttpd.h>

/* Makes the response: packs it and finds its tag, which takes time. Takes ownership of the body and the
 * stream. `last`: the connection ends with this response. NULL: libmicrohttpd fails. */
struct MHD_Response *respond_make(struct MHD_Connection *con, struct reply *rp, bool last);
/* As respond_make(), for an answer of any length: its bytes are reserved, and released once they are sent. If
 * there is no room for them the reply becomes a 503. */
struct MHD_Response *respond_reserve(struct MHD_Connection *con, struct reply *rp, struct clients *clients);
/* Sends the response, and releases it. Only a thread of libmicrohttpd may. NULL: ends the connection. */
enum MHD_Result respond_send(struct MHD_Connection *con, unsigned code, struct MHD_Response *response);
