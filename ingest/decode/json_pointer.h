/* json_pointer.h - splits JSON pointers (RFC 6901): "/a~1b/0" is the member "a/b", then the element 0.
 */
#pragma once

#include "base/slice.h"

/* Is it "" or "/…", and does 0 or 1 follow every '~'? */
static inline bool json_pointer_is_good(struct slice pointer)
{
    if (pointer.len > 0 && pointer.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] == '~' && (i + 1 == pointer.len || (pointer.ptr[i + 1] | 1) != '1'))
            return false;
    }
    return true;
}

/* Takes the first name off a pointer; the name is as written. Pre: json_pointer_is_good(), and not "". */
static inline struct slice json_pointer_take(struct slice *pointer)
{
    const char *from = pointer->ptr + 1, *end = pointer->ptr + pointer->len;
    const char *slash = from < end ? memchr(from, '/', (size_t)(end - from)) : NULL;
    const char *to = slash != NULL ? slash : end;
    *pointer = slice_of(to, (size_t)(end - to));
    return slice_of(from, (size_t)(to - from));
}
