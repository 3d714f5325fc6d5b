/* host.h - is a request addressed to this daemon, or did another site's name lead a browser here?
 *
 * Why  : a page of evil.example may point its own name at 127.0.0.1 and then read what it finds there as
 *        its own ("DNS rebinding"). The Host header still bears the foreign name.
 * Taken: localhost, any literal IP address, and the host that the server listens on; with or without a
 *        port.
 */
#pragma once

#include "base/slice.h"

/* The host of "HOST", "HOST:PORT", "[IPV6]" and "[IPV6]:PORT", without brackets; empty where it is none. */
struct slice host_name(struct slice address);
/* The port's digits; empty where there is none. */
struct slice host_port(struct slice address);
/* May a request with this Host header be answered by a server that listens on `listen`? */
bool host_allowed(struct slice header, struct slice listen);
