/* host.h - checks that a request is addressed to this daemon: another site's name may lead a browser here.
 * Called by server.c; listen.c uses it to split addresses.
 *
 * Why   : a page of evil.example may point its own name at 127.0.0.1 and then read the daemon's answers as
 *         its own ("DNS rebinding"). The Host header still bears the foreign name.
 * Allows: localhost, any literal IP address, and the host that the server listens on; with or without a
 *         port.
 */
#pragma once

#include "base/slice.h"

/* The host of "HOST", "HOST:PORT", "[IPV6]" or "[IPV6]:PORT", without brackets; empty: not an address. */
struct slice host_name(struct slice address);
/* The port's digits; empty: no port. */
struct slice host_port(struct slice address);
/* May a request with this Host header be answered by a server that listens on `listen`? */
bool host_allowed(struct slice header, struct slice listen);
