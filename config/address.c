#include "config/address.h"

#include "base/units.h"
#include "ingest/kafka/conf.h"
#include "store/sqlite/sqlite.h"

#include <arpa/inet.h>
#include <stdio.h>

#define HOST_BYTES_MAX 253
#define PORT_MAX       65535

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_numeric_host(struct slice host, int family)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char binary[sizeof(struct in6_addr)];
    if (host.len >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(host));
    return inet_pton(family, text, binary) == 1;
}

/* Is it a name, an IPv4 address, or an IPv6 address in brackets? */
static bool is_host(struct slice host)
{
    bool name = false;
    if (host.len == 0 || host.len > HOST_BYTES_MAX)
        return false;
    if (host.ptr[0] == '[')
        return host.ptr[host.len - 1] == ']' &&
               is_numeric_host(slice_of(host.ptr + 1, host.len - 2), AF_INET6);
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
        if (!letter && !is_digit(c) && c != '.')
            return false;
        name = name || letter;
    }
    return name || is_numeric_host(host, AF_INET);
}

bool address_is_listen(struct slice text)
{
    const char *colon = memrchr(text.ptr, ':', text.len);
    if (colon == NULL)
        return false;
    size_t host_len = (size_t)(colon - text.ptr);
    struct slice port = slice_of(colon + 1, text.len - host_len - 1);
    int64_t number;
    return units_take_digits(&port, &number) && port.len == 0 && number <= PORT_MAX &&
           is_host(slice_of(text.ptr, host_len));
}

static bool is_broker(struct slice text)
{
    bool has_port = text.len > 0 && memrchr(text.ptr, ':', text.len) != NULL && text.ptr[text.len - 1] != ']';
    return has_port ? address_is_listen(text) : is_host(text);
}

bool address_is_brokers(struct slice text)
{
    for (const char *comma; (comma = memchr(text.ptr, ',', text.len)) != NULL;) {
        size_t len = (size_t)(comma - text.ptr);
        if (!is_broker(slice_of(text.ptr, len)))
            return false;
        text = slice_of(comma + 1, text.len - len - 1);
    }
    return is_broker(text);
}

bool address_is_topic(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !is_digit(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return text.len > 0 && text.len <= KAFKA_TOPIC_MAX && !slice_is(text, ".") && !slice_is(text, "..");
}

bool address_is_store(struct slice text)
{
    static const char *const schemes[] = {"sqlite:", "mongodb://", "mongodb+srv://"};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (text.len > len && memcmp(text.ptr, schemes[i], len) == 0)
            return i > 0 || sqlite_is_path(slice_of(text.ptr + len, text.len - len));
    }
    return slice_is(text, "mem:");
}

struct slice address_scheme(struct slice url)
{
    const char *colon = memchr(url.ptr, ':', url.len);
    return colon == NULL ? url : slice_of(url.ptr, (size_t)(colon - url.ptr) + 1);
}

const char *address_store_hint(struct slice url, char hint[SUGGEST_HINT_BYTES])
{
    static const char *const forms[] = {"sqlite:", "mongodb:", "mem:", NULL};
    struct slice scheme = address_scheme(url);
    if (slice_is(scheme, "sqlite:") && url.len > scheme.len)
        return " (a PATH begins with neither `:` nor `file:`)";
    if (slice_find(scheme, forms) >= 0)
        return "";
    if (suggest_hint(scheme, forms, hint)[0] == '\0' && url.len > 0 && url.len <= SUGGEST_TEXT_MAX &&
        memchr(url.ptr, ':', url.len) == NULL)
        snprintf(hint, SUGGEST_HINT_BYTES, " (did you mean \"sqlite:%.*s\"?)", SLICE_ARGS(url));
    return hint;
}
