#include "store/store.h"

#include <stdio.h>
#include <string.h>

void store_close(struct store *st)
{
    if (st != NULL)
        st->close(st);
}

const char *store_show(const char *url, char buf[STORE_URL_BYTES])
{
    const char *host = strstr(url, "://"), *at = strrchr(url, '@');
    if (host != NULL && at != NULL)
        snprintf(buf, STORE_URL_BYTES, "%.*s://***%s", (int)(host - url), url, at);
    else
        snprintf(buf, STORE_URL_BYTES, "%s", url);
    return buf;
}

int store_find_report(const struct store *st, struct slice name)
{
    for (size_t i = 0; i < st->report_count; i++) {
        if (slice_is(name, st->reports[i].name))
            return (int)i;
    }
    return -1;
}
