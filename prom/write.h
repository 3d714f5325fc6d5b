/* write.h - answers as Prometheus' HTTP API writes them.
 *
 *   {"resultType":"scalar","result":[1431856800,"2"]}
 *   {"resultType":"vector","result":[{"metric":{"path":"/a"},"value":[1431856800,"31"]},…]}
 *   {"resultType":"matrix","result":[{"metric":{"path":"/a"},"values":[[1431856800,"31"],…]},…]}
 *
 * Times   : seconds since 1970, with three decimals where they are not whole.
 * Numbers : texts, the shortest that read back as the same, without exponents; NaN, +Inf, -Inf.
 */
#pragma once

#include "base/text.h"
#include "prom/eval.h"

/* False: it has more than `bytes_max`, and is cut behind the series that passed it. 0: any. */
bool write_answer(const struct eval_answer *a, uint64_t bytes_max, struct text *out);
void write_number(double value, struct text *out);
void write_labels(const struct labels *l, struct text *out);
