/* clients.h - the connections: which of them must go so that others are served. Called by server.c.
 *
 * Places  : connections_max. A new connection beyond that takes the place of the one that has waited longest
 *           for a request to be complete, so slow or idle clients starve nobody. Those whose bytes nobody has
 *           read yet stay, and those that came within CLIENTS_NEW_MS. There are CLIENTS_SPARE places
 *           more: while connections_max requests are under way, only states and metrics are answered.
 * Address : at most connections_per_address connections from one address. Loopback addresses have no such
 *           limit: a proxy there speaks for many.
 * Time    : timeout_ms for a whole request, waiting for its first byte included; as much for a response, and
 *           a second more for each CLIENTS_SLOWEST bytes of it. Streams and questions under way have other
 *           limits (streams.h, base/deadline.h).
 * Memory  : all responses that are being sent share sending_max bytes. If one does not fit, those that have
 *           been sent for longest, and for at least CLIENTS_GRACE_MS, are dropped.
 * Drop    : shuts the socket down; libmicrohttpd then ends the connection.
 * Threads : any. A thread of its own looks for what has taken too long.
 */
#pragma once

#include "base/deadline.h"

#include <sys/socket.h>

#define CLIENTS_SPARE    16
#define CLIENTS_SLOWEST  32768
#define CLIENTS_GRACE_MS 1000
#define CLIENTS_NEW_MS   20

struct clients_options {
    size_t connections_max;
    size_t per_address_max; /* 0: no limit */
    uint64_t sending_max;   /* bytes */
    int64_t timeout_ms;
    const struct clock *clock;
};

struct clients;
struct client;

/* NULL: the thread cannot be started. */
struct clients *clients_start(const struct clients_options *options);
/* NULL is fine. Pre: every client was removed, and no byte is reserved. */
void clients_free(struct clients *c);
/* Waits for up to `for_ms` until each response that is under way has been sent. */
void clients_settle(struct clients *c, int64_t for_ms);
/* May a connection from this address be accepted? */
bool clients_take(struct clients *c, const struct sockaddr *address);
/* Adds a connection, which waits for its first request. The socket is open until clients_remove(). */
struct client *clients_add(struct clients *c, int socket, const struct sockaddr *address);
void clients_remove(struct client *cl);
/* Are all places taken by requests under way, so that only states and metrics are answered? */
bool clients_are_busy(struct clients *c);

/* Each says what the connection does from now on. */
void client_waits(struct client *cl); /* for a whole request */
void client_works(struct client *cl); /* until its question is answered, or as long as its stream goes on */
void client_sends(struct client *cl, uint64_t bytes);

/* Reserves bytes for a response; waits for up to two CLIENTS_GRACE_MS until they are free. False: they are
 * not. */
bool clients_reserve(struct clients *c, uint64_t bytes, struct deadline *deadline);
void clients_release(struct clients *c, uint64_t bytes);
