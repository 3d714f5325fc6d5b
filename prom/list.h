/* list.h - lists metrics, labels, label values and series as JSON. Called by web/prom_api.c.
 *
 * Selects: `selectors` restrict a list, as Prometheus' match[] does; without selectors it has everything.
 *          Times do not restrict it: it has all that was ever counted.
 * Limits : the first `max` labels, values or series found; `*is_cut`: there are more. The budget (budget.h).
 * Errors : EX_USAGE: a selector is wrong; EX_UNAVAILABLE: the budget is spent; the store's.
 */
#pragma once

#include "base/text.h"
#include "prom/select.h"

struct list_ask {
    const struct slice *selectors; /* texts in PromQL */
    size_t selector_count;
    uint64_t max;
    uint64_t rows_max; /* query.rows_max, which sets the budget */
};

/* ["__name__","path"] */
bool list_labels(struct store *st, const struct list_ask *ask, struct text *out, bool *is_cut,
                 struct err *e) MUST_CHECK;
/* ["/a","/b"] */
bool list_values(struct store *st, struct slice label, const struct list_ask *ask, struct text *out,
                 bool *is_cut, struct err *e) MUST_CHECK;
/* [{"__name__":"pages:hits","path":"/a"},…] */
bool list_series(struct store *st, const struct list_ask *ask, struct text *out, bool *is_cut,
                 struct err *e) MUST_CHECK;
/* {"pages:hits":[{"type":"counter","help":"report pages by path: count","unit":""}],…}; `metric` NULL: all.
 * At most `max` metrics. */
void list_metadata(const struct store *st, struct slice metric, uint64_t max, struct text *out);
