#include "query/estimate.h"

void estimate_note(const struct report *r, struct text *out)
{
    if (r->one_in == 1)
        return;
    text_printf(out,
                "%s counts one event in %u, so its figures are estimates: a count C has the standard error "
                "sqrt(%u C), and that of a sum is at least as large a share of it",
                r->name, r->one_in, r->one_in - 1);
}
