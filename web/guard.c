#include "web/guard.h"

#include "base/base64.h"
#include "base/slice.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define CREDENTIALS_BYTES_MAX 1024

bool guard_is_open(const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0;
}

static bool is_same(struct slice given, const char *token)
{
    size_t len = strlen(token);
    unsigned difference = given.len != len;
    for (size_t i = 0; i < given.len; i++)
        difference |= (unsigned char)given.ptr[i] ^ (unsigned char)token[i % len];
    return difference == 0;
}

static bool is_basic(struct slice text, const char *token)
{
    char bytes[CREDENTIALS_BYTES_MAX];
    size_t len = base64_decode(text, bytes, sizeof bytes);
    const char *colon = memchr(bytes, ':', len);
    return colon != NULL && is_same(slice_of(colon + 1, len - (size_t)(colon + 1 - bytes)), token);
}

/* Sets `rest` to the text behind the scheme's name and spaces. False: the header has another scheme. */
static bool after_scheme(const char *header, const char *scheme, struct slice *rest)
{
    size_t len = strlen(scheme);
    if (strncasecmp(header, scheme, len) != 0 || header[len] != ' ')
        return false;
    *rest = slice_text(header + len + strspn(header + len, " "));
    return true;
}

bool guard_is_foreign(const char *sec_fetch_site, const char *origin, const char *host)
{
    if (sec_fetch_site != NULL && strcmp(sec_fetch_site, "same-origin") != 0 &&
        strcmp(sec_fetch_site, "none") != 0)
        return true;
    const char *authority = origin != NULL ? strstr(origin, "://") : NULL;
    return origin != NULL && (authority == NULL || host == NULL || strcasecmp(authority + 3, host) != 0);
}

bool guard_has_bearer(const char *authorization, const char *token)
{
    struct slice rest;
    return authorization != NULL && token != NULL && after_scheme(authorization, "Bearer", &rest) &&
           is_same(rest, token);
}

bool guard_allows(const char *authorization, const char *token)
{
    struct slice rest;
    if (authorization == NULL)
        return false;
    if (guard_has_bearer(authorization, token))
        return true;
    return after_scheme(authorization, "Basic", &rest) && is_basic(rest, token);
}
