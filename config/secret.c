#include "config/secret.h"

#include <string.h>

void secret_hide_password(struct slice url, struct text *out)
{
    const char *end = slice_end(url), *from = memmem(url.ptr, url.len, "://", 3);
    const char *colon = NULL, *at = NULL;
    /* the last @ before the path: a careless password may have one, too */
    for (const char *p = from != NULL ? from + 3 : end; p < end && *p != '/' && *p != '?'; p++) {
        if (*p == ':' && colon == NULL)
            colon = p;
        if (*p == '@')
            at = p;
    }
    if (at == NULL || colon == NULL || colon > at) {
        text_add(out, url.ptr, url.len);
        return;
    }
    text_add(out, url.ptr, (size_t)(colon + 1 - url.ptr));
    text_puts(out, SECRET_HIDDEN);
    text_add(out, at, (size_t)(end - at));
}

bool secret_is_property(const char *name)
{
    static const char *const marks[] = {"password", "secret", "ssl.key.pem", "oauthbearer.config", "jaas"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strstr(name, marks[i]) != NULL)
            return true;
    }
    return false;
}
