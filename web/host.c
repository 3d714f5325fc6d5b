#include "web/host.h"

#include <arpa/inet.h>
#include <strings.h>

#define HOST_BYTES_MAX 255

/* Finds the length of the host: up to its closing bracket, or to the first colon. False: not an address. */
static bool split(struct slice address, size_t *host_len)
{
    bool bracketed = address.len > 0 && address.ptr[0] == '[';
    const char *end = address.len == 0 ? NULL : memchr(address.ptr, bracketed ? ']' : ':', address.len);
    if (bracketed && end == NULL)
        return false;
    *host_len = end == NULL ? address.len : (size_t)(end - address.ptr) + bracketed;
    return *host_len == address.len || address.ptr[*host_len] == ':';
}

struct slice host_name(struct slice address)
{
    size_t len;
    if (!split(address, &len))
        return slice_of(address.ptr, 0);
    bool bracketed = len > 0 && address.ptr[0] == '[';
    return bracketed ? slice_of(address.ptr + 1, len - 2) : slice_of(address.ptr, len);
}

struct slice host_port(struct slice address)
{
    size_t len;
    if (!split(address, &len) || len == address.len)
        return slice_of(address.ptr, 0);
    return slice_of(address.ptr + len + 1, address.len - len - 1);
}

static bool is_port(struct slice port)
{
    for (size_t i = 0; i < port.len; i++) {
        if (port.ptr[i] < '0' || port.ptr[i] > '9')
            return false;
    }
    return port.len <= 5;
}

static bool is_same(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_literal(struct slice host, bool bracketed)
{
    char text[HOST_BYTES_MAX + 1];
    unsigned char address[sizeof(struct in6_addr)];
    if (host.len > HOST_BYTES_MAX || memchr(host.ptr, '\0', host.len) != NULL)
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return inet_pton(bracketed ? AF_INET6 : AF_INET, text, address) == 1;
}

bool host_allowed(struct slice header, struct slice listen)
{
    struct slice host = host_name(header);
    if (host.len == 0 || !is_port(host_port(header)))
        return false;
    return is_same(host, slice_text("localhost")) || is_same(host, host_name(listen)) ||
           is_literal(host, header.ptr[0] == '[');
}
