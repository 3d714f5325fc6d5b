#include "store/store.h"

#include <string.h>

void store_close(struct store *st)
{
    if (st != NULL)
        st->close(st);
}

int store_find_report(const struct store *st, struct slice name)
{
    for (size_t i = 0; i < st->report_count; i++) {
        if (slice_is(name, st->reports[i].name))
            return (int)i;
    }
    return -1;
}
