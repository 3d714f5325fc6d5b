/* write.h - writes answers as the JSON of Prometheus' HTTP API. Called by web/prom_api.c and list.c.
 *
 *   {"resultType":"scalar","result":[1431856800,"2"]}
 *   {"resultType":"vector","result":[{"metric":{"path":"/a"},"value":[1431856800,"31"]},…]}
 *   {"resultType":"matrix","result":[{"metric":{"path":"/a"},"values":[[1431856800,"31"],…]},…]}
 *
 * Times   : seconds since 1970, with three decimals if they are not whole.
 * Numbers : as number.h writes them.
 */
#pragma once

#include "base/text.h"
#include "prom/eval.h"

/* False: the answer exceeds `bytes_max` (0: no limit), and is cut behind the series that exceeded it. */
bool write_answer(const struct eval_answer *a, uint64_t bytes_max, struct text *out);
void write_labels(const struct labels *l, struct text *out);
