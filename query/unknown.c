#include "query/unknown.h"

#include "base/suggest.h"
#include "base/text.h"

bool unknown_name(struct err *e, const char *what, struct slice given, const char *const names[])
{
    char quoted[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    struct text list = {0};
    for (size_t i = 0; names[i] != NULL; i++)
        text_printf(&list, "%s%s", i > 0 ? ", " : names[1] == NULL ? "is only " : "are ", names[i]);
    err_set(e, EX_USAGE, "unknown %s %s%s: there %s", what, suggest_quote(given, quoted),
            suggest_hint(given, names, hint), names[0] != NULL ? list.ptr : "is none");
    text_fini(&list);
    return false;
}

bool unknown_dimension(struct err *e, const struct report *r, struct slice given)
{
    const char *names[REPORT_DIMENSIONS_MAX + 1] = {0};
    for (size_t d = 0; d < r->dimension_count; d++)
        names[d] = r->dimensions[d].name;
    struct dimension d;
    unknown_name(e, "dimension", given, names);
    err_prefix(e, "report %s", r->name);
    if (!dimension_parse(&d, given))
        return false;
    const struct err unknown = *e;
    return err_set(e, EX_USAGE, "%s; a report with `by: [%s]` has it", unknown.text, d.name);
}
