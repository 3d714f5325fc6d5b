#include "ingest/decode/place.h"

#include <stdint.h>

struct place place_of(const struct chain *c, struct slice text)
{
    uintptr_t from = (uintptr_t)text.ptr;
    for (size_t step = 0; step <= chain_step(c); step++) {
        struct slice whole = chain_text(c, step);
        uintptr_t start = (uintptr_t)whole.ptr;
        if (from < start || from + text.len > start + whole.len)
            continue;
        size_t before = from - start;
        return (struct place){true, step, before + 1, before + text.len};
    }
    return (struct place){.is_known = false};
}
