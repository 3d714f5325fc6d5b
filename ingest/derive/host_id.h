/* host_id.h - a pseudonym of a client for one day: it tells clients apart within a day, not from one day to
 * the next, and cannot be made without the key.
 *
 *   the first 16 hexadecimal digits of HMAC-SHA256(key, "2010-10-10 192.0.2.17")
 *
 * Day     : of the event, in UTC. Host: as it was logged.
 * Errors  : EX_OSFILE: GLib, which has the hash, is not installed.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

#define HOST_ID_BYTES 16

/* Loads what host_id() needs. */
bool host_id_open(struct err *e) MUST_CHECK;
/* Tells one key from another, and neither says the key nor makes an id: as host_id(), of a text that begins
 * with no day. Pre: host_id_open(). */
void host_id_fingerprint(struct slice key, char out[HOST_ID_BYTES]);
/* Pre: host_id_open(). */
void host_id(struct slice key, int64_t day, struct slice host, char out[HOST_ID_BYTES]);
