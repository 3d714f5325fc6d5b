#include "query/where.h"

#include "base/pattern.h"
#include "base/suggest.h"
#include "ingest/decimal.h"
#include "query/unknown.h"

/* May texts of the dimension be numbers? Those of fields of your own may. */
static bool may_be_number(const struct dimension *d)
{
    return d->kind == DIMENSION_FIELD && (d->field >= FIELD_COUNT || field_is_number(d->field));
}

/* Refuse texts that the dimension cannot have. */
static bool check_texts(const struct where *w, const struct dimension *d, struct err *e)
{
    const bool is_field = d->kind == DIMENSION_FIELD && !pattern_any(w->text, slice_text(DIMENSION_OTHER));
    struct err found;
    return condition_check_texts(is_field ? d->field : FIELD_COUNT, w->op, w->text, &found) ||
           err_set(e, EX_USAGE, "where: %s: %s", d->name, found.text);
}

bool where_parse(struct where *w, const struct report *r, struct slice condition, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    struct slice name;
    const bool is_split = condition_split(condition, &name, &w->op, &w->text);
    if (is_split && w->text.len == 0)
        return err_set(e, EX_USAGE,
                       "where: found %s, expected a value at its end (- stands for absent): "
                       "path=/blog/*|/news/*, status>=500",
                       suggest_quote(condition, quoted));
    if (!is_split)
        return err_set(e, EX_USAGE,
                       "where: found %s, expected a dimension, one of = != < <= > >=, and a value: "
                       "path=/blog/*|/news/*, status>=500",
                       suggest_quote(condition, quoted));
    const int found = report_find_dimension(r, name);
    if (found < 0)
        return unknown_dimension(e, r, name);
    w->dimension = (size_t)found;
    if (w->op == OP_EQ || w->op == OP_NE)
        return check_texts(w, &r->dimensions[found], e);
    if (!condition_number(w->text, &w->number))
        return err_set(
            e, EX_USAGE,
            "where: found %s, expected a number after < <= > >=, with at most 6 digits after the point: "
            "status>=500",
            suggest_quote(condition, quoted));
    return may_be_number(&r->dimensions[found]) ||
           err_set(e, EX_USAGE,
                   "where: found %s, but < <= > >= compare numbers, and %s is a text: %s=… and %s!=… "
                   "compare texts, with * for any part",
                   suggest_quote(condition, quoted), r->dimensions[found].name, r->dimensions[found].name,
                   r->dimensions[found].name);
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
