#include "store/fill.h"

bool store_fill(struct store *st, const struct batch *batch, struct err *e)
{
    ASSERT(st->fill != NULL && batch->range_count == 0); /* opened by STORE_FILL */
    for (size_t p = 0; p < batch->part_count; p++)
        ASSERT(batch->parts[p]->report_count == st->report_count);
    return st->fill->fill(st, batch, e);
}

bool store_finish(struct store *st, const struct store_content *content, struct err *e)
{
    ASSERT(st->fill != NULL);
    for (size_t i = 0; i < content->book_count; i++)
        ASSERT(content->books[i].report < st->report_count || content->books[i].report == STORE_NO_REPORT);
    return st->fill->finish(st, content, e);
}
