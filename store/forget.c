#include "store/forget.h"

#include "store/writer.h"

static bool ops_of(const struct store *st, const struct store_forget_ops **ops, struct err *e)
{
    ASSERT(st->writer != NULL); /* opened by STORE_WRITE */
    *ops = st->writer->forget;
    return *ops != NULL ||
           err_set(e, EX_UNAVAILABLE, "this kind of store takes nothing out again: only SQLite stores do");
}

bool store_forget_begin(struct store *st, const struct range *of, struct err *e)
{
    const struct store_forget_ops *ops;
    return ops_of(st, &ops, e) && ops->begin(st, of, e);
}

bool store_forget(struct store *st, const struct batch *batch, const bool *reports, struct err *e)
{
    return st->writer->forget->take(st, batch, reports, e);
}

bool store_forget_end(struct store *st, const struct range *of, struct err *e)
{
    return st->writer->forget->end(st, of, e);
}

void store_forget_undo(struct store *st)
{
    if (st->writer->forget != NULL)
        st->writer->forget->undo(st);
}

bool store_drop(struct store *st, const char *report, int generation, bool dry_run,
                struct store_dropped *dropped, struct err *e)
{
    const struct store_forget_ops *ops;
    *dropped = (struct store_dropped){0};
    return ops_of(st, &ops, e) && ops->drop(st, report, generation, dry_run, dropped, e);
}
