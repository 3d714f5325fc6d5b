/* host_net.h - the network of a client's address: so much of it that counts by it show where requests come
 * from, and not from whom.
 *
 *   192.0.2.17         →  192.0.2.0/24
 *   ::ffff:192.0.2.17  →  192.0.2.0/24
 *   2001:db8:1:2::3    →  2001:db8:1::/48
 */
#pragma once

#include "base/slice.h"

#define HOST_NET_BYTES     64
#define HOST_NET_V4_BITS   24
#define HOST_NET_V6_BITS   48
#define HOST_ADDRESS_BYTES 16

enum host_family { HOST_NO_ADDRESS, HOST_V4, HOST_V6 };

/* Reads an address, in the first 4 or all 16 bytes of `address`. An IPv4 address that is mapped into IPv6 is
 * one of IPv4. */
enum host_family host_address(struct slice text, unsigned char address[HOST_ADDRESS_BYTES]);
/* Prints the network of an address. Returns the length of the text; 0: `text` is no address. */
size_t host_net(struct slice text, char out[HOST_NET_BYTES]);
