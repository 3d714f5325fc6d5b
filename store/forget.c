#include "store/forget.h"

#include "store/writer.h"

static const struct store_forget_ops *ops_of(const struct store *st)
{
    static const struct store_forget_ops none = {0};
    ASSERT(st->writer != NULL); /* opened by STORE_WRITE */
    return st->writer->forget != NULL ? st->writer->forget : &none;
}

static bool refuse(struct err *e)
{
    return err_set(e, EX_UNAVAILABLE, "this kind of store takes no files out again");
}

bool store_forget_begin(struct store *st, const struct range *of, struct err *e)
{
    return ops_of(st)->begin != NULL ? ops_of(st)->begin(st, of, e) : refuse(e);
}

bool store_forget(struct store *st, const struct batch *batch, const bool *reports, struct err *e)
{
    return ops_of(st)->take(st, batch, reports, e);
}

bool store_forgets_by_stripes(const struct store *st)
{
    return ops_of(st)->stripe != NULL;
}

bool store_forget_stripe(struct store *st, const struct batch *batch, const bool *reports, struct err *e)
{
    return ops_of(st)->stripe(st, batch, reports, e);
}

bool store_forget_end(struct store *st, const struct range *of, struct err *e)
{
    return ops_of(st)->end(st, of, e);
}

void store_forget_undo(struct store *st)
{
    if (ops_of(st)->undo != NULL)
        ops_of(st)->undo(st);
}

bool store_drop(struct store *st, const char *report, int generation, bool dry_run,
                struct store_dropped *dropped, struct err *e)
{
    *dropped = (struct store_dropped){0};
    return ops_of(st)->drop != NULL ? ops_of(st)->drop(st, report, generation, dry_run, dropped, e)
                                    : refuse(e);
}

bool store_replace(struct store *st, const char *by, const char *report, bool drops_old,
                   struct store_replaced *done, struct err *e)
{
    return ops_of(st)->replace != NULL
               ? ops_of(st)->replace(st, by, report, drops_old, done, e)
               : err_set(e, EX_UNAVAILABLE, "in this kind of store no report can take another's place");
}
