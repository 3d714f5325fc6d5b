#include "query/where.h"

#include "base/pattern.h"
#include "base/suggest.h"
#include "ingest/decimal.h"
#include "query/unknown.h"

bool where_parse(struct where *w, const struct report *r, struct slice condition, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    struct slice name;
    if (!condition_split(condition, &name, &w->op, &w->text) || w->text.len == 0)
        return err_set(e, EX_USAGE,
                       "where: found %s, expected a dimension, one of = != < <= > >=, and a value: "
                       "path=/blog/*|/news/*, status>=500",
                       suggest_quote(condition, quoted));
    const int found = report_find_dimension(r, name);
    if (found < 0)
        return unknown_dimension(e, r, name);
    w->dimension = (size_t)found;
    return w->op == OP_EQ || w->op == OP_NE || condition_number(w->text, &w->number) ||
           err_set(
               e, EX_USAGE,
               "where: found %s, expected a number after < <= > >=, with at most 6 digits after the point: "
               "status>=500",
               suggest_quote(condition, quoted));
}

static bool compares(const struct where *w, int64_t number)
{
    switch (w->op) {
    case OP_LT:
        return number < w->number;
    case OP_LE:
        return number <= w->number;
    case OP_GT:
        return number > w->number;
    case OP_GE:
        return number >= w->number;
    case OP_EQ:
    case OP_NE:
        break;
    }
    ASSERT(false);
    return false;
}

bool where_holds(const struct where *w, struct slice text)
{
    int64_t number;
    if (w->op == OP_EQ || w->op == OP_NE)
        return pattern_any(w->text, text) == (w->op == OP_EQ);
    return decimal_parse(text, &number) == DECIMAL_OK && compares(w, number);
}
