#include "query/estimate.h"

/* How far a figure is off at most, by schema from the highest down: 2^(2^-schema / 2) - 1. */
static const char *const off[HISTOGRAM_SCHEMA_MAX - HISTOGRAM_SCHEMA_MIN + 1] = {
    "0.15", "0.28", "0.55", "1.1", "2.2", "4.5", "9", "19", "41", "100", "300", "1,500", "25,500"};

void estimate_note(const struct report *r, struct text *out)
{
    if (r->one_in == 1)
        return;
    text_printf(out,
                "%s counts one event in %u, so its figures are estimates: a count C has the standard error "
                "sqrt(%u C), and that of a sum is at least as large a share of it",
                r->name, r->one_in, r->one_in - 1);
}

void estimate_note_width(const struct report *r, uint32_t histograms, enum span longest, struct text *out)
{
    const size_t before = out->len;
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        if ((histograms >> i & 1) == 0 || !measure_widens(m, longest))
            continue;
        text_printf(
            out,
            "%s%s was read by %s, where its buckets are wider: its quantiles, min and max are at most "
            "%s %% off, and share(...) takes the numbers in its limit's bucket as lying evenly there",
            out->len > before ? "; " : "", m->name, span_name(longest),
            off[HISTOGRAM_SCHEMA_MAX - m->layouts[longest]->schema]);
    }
}
