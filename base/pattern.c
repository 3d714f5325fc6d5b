#include "base/pattern.h"

/* Does one alternative match? The pieces between stars are searched from left to right, each once, so it
 * never backtracks. */
static bool matches(struct slice text, struct slice pattern)
{
    if (memchr(pattern.ptr, '*', pattern.len) == NULL)
        return slice_equal(text, pattern);
    struct slice head = slice_cut(&pattern, '*');
    if (text.len < head.len || memcmp(text.ptr, head.ptr, head.len) != 0)
        return false;
    text = slice_of(text.ptr + head.len, text.len - head.len);
    while (memchr(pattern.ptr, '*', pattern.len) != NULL) {
        struct slice piece = slice_cut(&pattern, '*');
        const char *at = memmem(text.ptr, text.len, piece.ptr, piece.len);
        if (at == NULL)
            return false;
        text.len -= (size_t)(at - text.ptr) + piece.len;
        text.ptr = at + piece.len;
    }
    return slice_ends(text, pattern);
}

bool pattern_any(struct slice patterns, struct slice text)
{
    while (patterns.len > 0) {
        struct slice pattern = slice_cut(&patterns, '|');
        if (pattern.len > 0 && matches(text, pattern))
            return true;
    }
    return false;
}
