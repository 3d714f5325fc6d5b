#include "config/network.h"

#include "base/text.h"

#include <string.h>

/* The hosts of a URL, without a user and what follows them. A text without a scheme is a list of hosts
 * itself. */
static struct slice hosts_of(const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *from = scheme != NULL ? scheme + 3 : text;
    size_t len = strcspn(from, "/?#");
    const char *at = memrchr(from, '@', len);
    if (at != NULL) {
        len -= (size_t)(at + 1 - from);
        from = at + 1;
    }
    return slice_of(from, len);
}

/* Cuts the first host from a list, without its port. */
static struct slice next_host(struct slice *list)
{
    struct slice host = slice_trim(slice_cut(list, ','));
    const char *end = host.len > 0 && *host.ptr == '[' ? memchr(host.ptr, ']', host.len) : NULL;
    if (end != NULL)
        return slice_of(host.ptr + 1, (size_t)(end - host.ptr) - 1);
    const char *colon = memchr(host.ptr, ':', host.len);
    return colon != NULL ? slice_of(host.ptr, (size_t)(colon - host.ptr)) : host;
}

static bool is_here(struct slice host)
{
    return host.len == 0 || slice_is(host, "localhost") || slice_is(host, "::1") ||
           slice_begins(host, slice_text("127.")) || slice_begins(host, slice_text("%2F")) ||
           slice_begins(host, slice_text("%2f")); /* the path of a socket */
}

static void find_elsewhere(const char *key, const char *text, network_fn *fn, void *context)
{
    struct slice list = hosts_of(text);
    while (list.len > 0) {
        struct slice host = next_host(&list);
        if (!is_here(host)) {
            fn(context, key, host);
            return;
        }
    }
}

void network_each_elsewhere(const struct config *c, const char *store_url, const char *listen, network_fn *fn,
                            void *context)
{
    const char *store = store_url != NULL ? store_url : c->store.url;
    if (c->kafka.brokers != NULL)
        find_elsewhere("kafka.brokers", c->kafka.brokers, fn, context);
    if (store != NULL && strstr(store, "://") != NULL)
        find_elsewhere("store.url", store, fn, context);
    if (c->registry.server.url != NULL)
        find_elsewhere("registry.url", c->registry.server.url, fn, context);
    if (c->http.enabled)
        find_elsewhere("http.listen", listen != NULL ? listen : c->http.listen, fn, context);
}
