#include "ingest/decode/clf_request.h"

/* The bytes of a method: tchar of RFC 9110, 5.6.2. */
static const bool tchar[256] = {
    ['!'] = true,         ['#' ... '\''] = true, ['*'] = true,         ['+'] = true,
    ['-'] = true,         ['.'] = true,          ['0' ... '9'] = true, ['A' ... 'Z'] = true,
    ['^' ... 'z'] = true, ['|'] = true,          ['~'] = true,
};

const char *clf_request_method_end(const char *p, const char *end)
{
    while (p < end && tchar[(unsigned char)*p])
        p++;
    return p;
}

/* The end of "http:" at the target's start; NULL: it has no scheme (RFC 3986, 3.1). */
static const char *scheme_end(const char *p, const char *end)
{
    const char *colon = memchr(p, ':', (size_t)(end - p));
    for (const char *q = p; colon != NULL && q < colon; q++) {
        bool is_letter = (*q | 0x20) >= 'a' && (*q | 0x20) <= 'z', is_digit = *q >= '0' && *q <= '9';
        if (!is_letter && (q == p || (!is_digit && *q != '+' && *q != '-' && *q != '.')))
            return NULL;
    }
    return colon != NULL && colon > p ? colon + 1 : NULL;
}

struct slice clf_request_authority_path(const char *target, const char *end)
{
    const char *slashes = scheme_end(target, end);
    if (slashes == NULL || end - slashes < 2 || memcmp(slashes, "//", 2) != 0)
        return slice_of(target, (size_t)(end - target));
    const char *server = slashes + 2, *slash = memchr(server, '/', (size_t)(end - server));
    return slash != NULL ? slice_of(slash, (size_t)(end - slash)) : slice_of(slashes, 1);
}

const char *clf_request_protocol_space(const char *target, const char *end)
{
    const char *space = memrchr(target, ' ', (size_t)(end - target));
    return space != NULL && end - space > 5 && memcmp(space, " HTTP/", 6) == 0 ? space : NULL;
}
