/* local_socket.h - sockets at a path of this computer (unix(7)), to which only one user may connect. Their
 * packets arrive whole (SOCK_SEQPACKET).
 *
 * Paths  : up to PATH_MAX bytes, though an address holds 107.
 * Owner  : the caller closes the descriptors, and unlinks the path of one that listens.
 */
#pragma once

#include "base/err.h"

/* Listen at a path, and replace what is there. -1: `e` says why, EX_CANTCREAT. */
int local_socket_listen(const char *path, struct err *e) MUST_CHECK;
/* -1: errno says why. */
int local_socket_connect(const char *path);
