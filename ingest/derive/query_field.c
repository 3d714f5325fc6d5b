#include "ingest/derive/query_field.h"

#include "base/units.h"

/* Finds the value as it stands in the target. */
static bool find(struct slice target, struct slice name, struct slice *value)
{
    const char *end = slice_end(target), *p = memchr(target.ptr, '?', target.len);
    const char *fragment = p != NULL ? memchr(p, '#', (size_t)(end - p)) : NULL;
    end = fragment != NULL ? fragment : end;
    while (p != NULL) {
        const char *from = p + 1, *next = memchr(from, '&', (size_t)(end - from));
        const char *to = next != NULL ? next : end;
        size_t len = (size_t)(to - from);
        p = next;
        if (len <= name.len || from[name.len] != '=' || memcmp(from, name.ptr, name.len) != 0)
            continue;
        *value = slice_of(from + name.len + 1, len - name.len - 1);
        return value->len > 0;
    }
    return false;
}

static bool has_escapes(struct slice value)
{
    return memchr(value.ptr, '%', value.len) != NULL || memchr(value.ptr, '+', value.len) != NULL;
}

static bool is_percent(const char *p, const char *end)
{
    return *p == '%' && end - p > 2 && units_hex_digit(p[1]) >= 0 && units_hex_digit(p[2]) >= 0;
}

static struct slice undo(struct slice value, bool is_escaped, struct arena *memory)
{
    char *out = arena_add(memory, value.len), *to = out;
    for (const char *p = value.ptr, *end = slice_end(value); p < end; p++) {
        char byte = *p == '+' ? ' ' : *p;
        if (is_percent(p, end)) {
            byte = (char)(units_hex_digit(p[1]) << 4 | units_hex_digit(p[2]));
            p += 2;
            if (byte == '\\' && is_escaped)
                *to++ = '\\';
        }
        *to++ = byte;
    }
    return slice_of(out, (size_t)(to - out));
}

bool query_field(struct slice target, struct slice name, bool is_escaped, struct arena *memory,
                 struct slice *value)
{
    if (!find(target, name, value))
        return false;
    if (has_escapes(*value))
        *value = undo(*value, is_escaped, memory);
    return true;
}
