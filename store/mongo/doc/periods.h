/* mongo/doc/periods.h - which periods a batch has counts of.
 *
 * Order: hours are added in any order, each as often as it likes; then floored by longer and longer spans: so
 *        they are sorted, each once.
 */
#pragma once

#include "store/mongo/handle/handle.h"

void mongo_periods_clear(struct mongo_periods *p);
void mongo_periods_add(struct mongo_periods *p, int64_t ms);
void mongo_periods_floor(struct mongo_periods *p, enum span span);
