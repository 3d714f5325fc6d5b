/* respond.h - a reply as an HTTP response: headers that go with everything, gzip, 304, streams.
 *
 * Caching: assets are checked for a newer one each time; so are answers about a period that has ended,
 *          since a late event may still change them, and only for this client. Nothing else is kept.
 * Threads: that of the connection.
 */
#pragma once

#include "web/reply.h"

#include <microhttpd.h>

/* Takes the body and the stream. `last`: the connection ends with it. */
enum MHD_Result respond(struct MHD_Connection *con, struct reply *rp, bool last);
