/* listen.h - opens a socket that listens on "HOST:PORT". Called by server.c. */
#pragma once

#include "base/err.h"

#define LISTEN_TEXT_BYTES 80

/* -1 on failure. EX_UNAVAILABLE: another program listens there; EX_NOPERM: not permitted; EX_CONFIG: not an
 * address of this machine. `actual` gets the numeric address, with the port that port 0 became. */
int listen_open(const char *address, char actual[LISTEN_TEXT_BYTES], struct err *e) MUST_CHECK;
/* Is `actual` an address that only this machine can reach? */
bool listen_is_loopback(const char *actual);
