#include "ingest/derive/hide.h"

#include "base/units.h"

#define V4_PARTS       4
#define V4_DIGITS      3
#define V6_GROUPS_KEPT 3
#define V6_COLONS      7

/* The text that is written; it begins as a copy of nothing. */
struct hidden {
    struct slice text;
    struct arena *memory;
    char *out; /* NULL: nothing had to be hidden yet */
    size_t len;
    size_t read; /* bytes of `text` that are written or left out */
    size_t *column, moved;
};

static void copy_to(struct hidden *h, const char *to)
{
    size_t n = (size_t)(to - h->text.ptr) - h->read;
    memcpy(h->out + h->len, h->text.ptr + h->read, n);
    h->len += n;
    h->read += n;
}

/* Writes `text` in place of the bytes from `from` to `to`. */
static void put_instead(struct hidden *h, const char *from, const char *to, const char *text)
{
    if (h->out == NULL)
        h->out = arena_add(h->memory, h->text.len);
    copy_to(h, from);
    size_t before = h->read, n = strlen(text), left = (size_t)(to - from) - n;
    memcpy(h->out + h->len, text, n);
    h->len += n;
    h->read = (size_t)(to - h->text.ptr);
    if (h->column != NULL && *h->column > h->read)
        h->moved += left;
    else if (h->column != NULL && *h->column > before + n)
        h->moved += *h->column - before - n;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_of_run(char c)
{
    return c == ':' || c == '.' || units_hex_digit(c) >= 0;
}

/* Finds the last part of an IPv4 address that begins at `p`. */
static bool find_last_part(const char *p, const char *end, const char **from, const char **to)
{
    for (int part = 0; part < V4_PARTS; part++) {
        int digits = 0;
        *from = p;
        for (; p < end && is_digit(*p) && digits <= V4_DIGITS; p++)
            digits++;
        if (digits == 0 || digits > V4_DIGITS || (part < V4_PARTS - 1 && (p == end || *p != '.')))
            return false;
        *to = p;
        p += part < V4_PARTS - 1;
    }
    return true;
}

static void hide_v4(struct hidden *h, const char *p, const char *end)
{
    const char *from, *to;
    for (bool was_digit = false; p < end; was_digit = is_digit(*p), p++) {
        if (was_digit || !is_digit(*p) || !find_last_part(p, end, &from, &to))
            continue;
        if (to - from > 1 || *from != '0')
            put_instead(h, from, to, "0");
        p = to - 1;
    }
}

static bool is_v6(const char *p, const char *end)
{
    int colons = 0;
    bool has_gap = false;
    for (; p < end; p++) {
        colons += *p == ':' || (*p == '.' && colons == V6_COLONS - 1);
        has_gap |= *p == ':' && p + 1 < end && p[1] == ':';
    }
    return has_gap || colons >= V6_COLONS;
}

/* Keeps the first groups, up to a gap. */
static void hide_v6(struct hidden *h, const char *p, const char *end)
{
    int groups = 0;
    for (; p < end && groups < V6_GROUPS_KEPT; p++) {
        if (*p == '.')
            break;
        if (*p != ':')
            continue;
        groups++;
        if (p + 1 < end && p[1] == ':')
            break;
    }
    const char *from = p > h->text.ptr + h->read && p[-1] == ':' && groups == V6_GROUPS_KEPT ? p - 1 : p;
    if (end - from > 2 || (end - from == 2 && memcmp(from, "::", 2) != 0))
        put_instead(h, from, end, "::");
}

struct slice hide_addresses(struct slice text, struct arena *memory, size_t *column)
{
    struct hidden h = {.text = text, .memory = memory, .column = column};
    const char *p = text.ptr, *end = slice_end(text);
    while (p < end) {
        if (!is_of_run(*p)) {
            p++;
            continue;
        }
        const char *from = p;
        bool has_separators = false;
        for (; p < end && is_of_run(*p); p++)
            has_separators |= *p == ':' || *p == '.';
        if (!has_separators)
            continue;
        if (is_v6(from, p))
            hide_v6(&h, from, p);
        else
            hide_v4(&h, from, p);
    }
    if (h.out == NULL)
        return text;
    copy_to(&h, end);
    if (column != NULL)
        *column -= h.moved;
    return slice_of(h.out, h.len);
}
