#include "daemon/lend.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

void lend_init(struct lend *l)
{
    const struct store *st = l->engine->options.store;
    l->reports = xcalloc(st->report_count, sizeof *l->reports);
    for (size_t i = 0; i < st->report_count; i++)
        l->reports[i].cells.stride = report_cell_bytes(&st->reports[i]);
    books_init(&l->books, st->report_count);
}

void lend_fini(struct lend *l)
{
    free(l->reports);
    books_fini(&l->books);
}

bool lend_apply(void *context, const struct batch *batch, struct err *e)
{
    struct lend *l = context;
    struct batch whole = *batch;
    struct part part, *parts = &part;
    ASSERT(batch->part_count <= 1 && batch->range_count == 1);
    for (int i = 0; i < BOOK_REPORT_COUNT; i++)
        *books_report(&l->books, l->report, i) = batch->books->entries[BOOK_SOURCE_COUNT + i];
    whole.books = &l->books;
    if (batch->part_count == 1) {
        part = *batch->parts[0];
        l->reports[l->report] = part.reports[0];
        part.report_count = l->books.report_count;
        part.reports = l->reports;
        whole.parts = &parts;
    }
    return engine_lend(l->engine, &whole, l->may_wait, l->context, e);
}
