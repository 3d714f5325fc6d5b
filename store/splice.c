#include "store/splice.h"

#include "store/writer.h"

bool store_splice_begin(struct store *st, const char *report, const struct watermarks *watermarks,
                        struct err *e)
{
    ASSERT(st->writer != NULL && st->report_count == 1);
    return st->writer->splice != NULL
               ? st->writer->splice->begin(st, report, watermarks, e)
               : err_set(e, EX_UNAVAILABLE,
                         "in this kind of store a report takes only the whole place of another one: count it "
                         "again without --from and --to");
}

bool store_splice_end(struct store *st, const struct store_book *books, size_t count, const char *by,
                      const char *report, bool drops_old, struct store_replaced *done, struct err *e)
{
    return st->writer->splice->end(st, books, count, by, report, drops_old, done, e);
}
