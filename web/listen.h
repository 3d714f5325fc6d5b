/* listen.h - a socket that listens on "HOST:PORT", and what it really listens on. */
#pragma once

#include "base/err.h"

#define LISTEN_TEXT_BYTES 80

/* -1 on failure: EX_UNAVAILABLE where somebody listens there already, EX_CONFIG where it is no address of
 * this machine. `actual` is the numeric address, with the port that port 0 became. */
int listen_open(const char *address, char actual[LISTEN_TEXT_BYTES], struct err *e) MUST_CHECK;
/* Is such an address one that only this machine reaches? */
bool listen_is_loopback(const char *actual);
