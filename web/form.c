#include "web/form.h"

#include "base/units.h"

#include <strings.h>

bool form_type_is(const char *content_type, const char *type)
{
    size_t len = strlen(type);
    return content_type != NULL && strncasecmp(content_type, type, len) == 0 &&
           (content_type[len] == '\0' || content_type[len] == ';' || content_type[len] == ' ');
}

/* Decodes [from, end) to *to, which moves behind the result. */
static struct slice decode(const char *from, const char *end, char **to)
{
    char *start = *to;
    for (; from < end; from++) {
        int high = *from == '%' && end - from > 2 ? units_hex_digit(from[1]) : -1;
        int low = high >= 0 ? units_hex_digit(from[2]) : -1;
        *(*to)++ = low >= 0 ? (char)(high << 4 | low) : *from == '+' ? ' ' : *from;
        from += low >= 0 ? 2 : 0;
    }
    return slice_of(start, (size_t)(*to - start));
}

size_t form_decode(struct text *body, struct parameter *list, size_t max)
{
    size_t count = 0;
    const char *at = body->ptr, *end = slice_end(text_slice(body));
    char *to = body->ptr;
    while (at < end) {
        const char *ampersand = memchr(at, '&', (size_t)(end - at)),
                   *stop = ampersand != NULL ? ampersand : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at)), *name_end = equals != NULL ? equals : stop;
        if (count < max) {
            list[count].name = decode(at, name_end, &to);
            list[count].value = decode(equals != NULL ? equals + 1 : stop, stop, &to);
        }
        count++;
        at = stop + 1;
    }
    return count;
}
