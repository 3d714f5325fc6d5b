#include "ingest/derive/host_net.h"

#include <arpa/inet.h>
#include <stdio.h>

enum host_family host_address(struct slice text, unsigned char address[HOST_ADDRESS_BYTES])
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    char name[INET6_ADDRSTRLEN];
    if (text.len == 0 || text.len >= sizeof name || memchr(text.ptr, '\0', text.len) != NULL)
        return HOST_NO_ADDRESS;
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    if (inet_pton(AF_INET, name, address) == 1)
        return HOST_V4;
    if (inet_pton(AF_INET6, name, address) != 1)
        return HOST_NO_ADDRESS;
    if (memcmp(address, mapped, sizeof mapped) != 0)
        return HOST_V6;
    memmove(address, address + sizeof mapped, HOST_ADDRESS_BYTES - sizeof mapped);
    return HOST_V4;
}

size_t host_net(struct slice text, char out[HOST_NET_BYTES])
{
    unsigned char address[HOST_ADDRESS_BYTES];
    char name[INET6_ADDRSTRLEN];
    enum host_family family = host_address(text, address);
    int bits = family == HOST_V4 ? HOST_NET_V4_BITS : HOST_NET_V6_BITS;
    if (family == HOST_NO_ADDRESS)
        return 0;
    memset(address + bits / 8, 0, (size_t)(HOST_ADDRESS_BYTES - bits / 8));
    inet_ntop(family == HOST_V4 ? AF_INET : AF_INET6, address, name, sizeof name);
    return (size_t)snprintf(out, HOST_NET_BYTES, "%s/%d", name, bits);
}
