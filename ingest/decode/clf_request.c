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

const char *clf_request_protocol_space(const char *target, const char *end)
{
    const char *space = memrchr(target, ' ', (size_t)(end - target));
    return space != NULL && end - space > 5 && memcmp(space, " HTTP/", 6) == 0 ? space : NULL;
}
