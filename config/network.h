/* network.h - which keys of a configuration name other computers. The units allow the addresses of this
 * computer only, until the drop-in network.conf opens the network; systemd drops packets in silence. So `run`
 * and `check` say it. Cannot fail.
 *
 * Names: no name is resolved. A host is taken for another computer unless it is `localhost`, a loopback
 *        address or the path of a socket.
 */
#pragma once

#include "config/config.h"

/* The units set this variable of the environment to this value, and network.conf sets another one. */
#define NETWORK_VARIABLE "TALLYD_NETWORK"
#define NETWORK_CLOSED   "localhost"

typedef void network_fn(void *context, const char *key, struct slice host);
/* Calls `fn` with the first such host of each key. NULL: the configuration's own store, listen address. */
void network_each_elsewhere(const struct config *c, const char *store_url, const char *listen, network_fn *fn,
                            void *context);
