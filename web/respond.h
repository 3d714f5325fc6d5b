/* respond.h - sends a reply as an HTTP response: common headers, gzip, 304, streams. Called by server.c.
 *
 * Caching: clients revalidate an asset at each use. They also revalidate answers about a period that has
 *          ended, since a late event may change them; shared caches must not store these. Nothing else is
 *          cached.
 * Threads: the thread of the connection.
 */
#pragma once

#include "web/reply.h"

#include <microhttpd.h>

/* Takes ownership of the body and the stream. `last`: the connection ends with this response. */
enum MHD_Result respond(struct MHD_Connection *con, struct reply *rp, bool last);
