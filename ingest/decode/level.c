#include "ingest/decode/level.h"

#include <string.h>

static bool is_space(char byte, bool or_feed)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || (or_feed && byte == '\n');
}

static void skip_space(struct level *l, bool or_feed)
{
    while (l->p < l->end && is_space(*l->p, or_feed))
        l->p++;
}

/* After a value that is not in an array: does the text or the line end here? */
static bool take_end(struct level *l)
{
    skip_space(l, false);
    l->is_done = l->p == l->end;
    return l->is_done || *l->p == '\n';
}

bool level_take_separator(struct level *l)
{
    l->has_begun = true;
    if (!l->in_array)
        return take_end(l);
    skip_space(l, true);
    if (l->p == l->end || (*l->p != ',' && *l->p != ']'))
        return false;
    l->in_array = *l->p++ == ',';
    return l->in_array || take_end(l);
}

bool level_find_value(struct level *l, bool *broken)
{
    skip_space(l, true);
    *broken = false;
    if (!l->has_begun && !l->in_array && l->end - l->p >= 3 && memcmp(l->p, "\xEF\xBB\xBF", 3) == 0) {
        l->p += 3;
        skip_space(l, true);
    }
    if (l->p < l->end && *l->p == '[' && !l->in_array) {
        l->in_array = true;
        l->p++;
        skip_space(l, true);
        if (l->p < l->end && *l->p == ']') {
            *broken = !level_take_separator(l);
            return false;
        }
    }
    l->is_done = l->p == l->end && !l->in_array;
    return !l->is_done;
}

const char *level_skip_broken(struct level *l, const char *at)
{
    for (const char *p = at; p < l->end && (p = memchr(p, '\n', (size_t)(l->end - p))) != NULL; p++) {
        if (l->end - p >= 2 && (p[1] == '{' || p[1] == '[')) {
            l->in_array &= p[1] == '{';
            l->has_begun = true;
            l->p = p + 1;
            return p;
        }
    }
    l->is_done = true;
    return l->end;
}
