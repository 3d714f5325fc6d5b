/* mongo/doc/periods.h - the periods that a batch has counts of. The writer makes it for each batch; a handle
 * owns it. Cannot fail.
 *
 * Order: add the starts of hours in any order, any number of times. Then floor them to longer and longer
 *        spans: each call of mongo_periods_floor() leaves the starts of such spans, sorted, without
 *        duplicates.
 */
#pragma once

#include "store/mongo/handle/handle.h"

void mongo_periods_clear(struct mongo_periods *p);
void mongo_periods_add(struct mongo_periods *p, int64_t ms);
void mongo_periods_floor(struct mongo_periods *p, enum span span);
