/* mongo/doc/periods.h - the periods that a batch has counts of.
 *
 * Order: add hours in any order, any number of times. Then floor them to longer and longer resolutions: each
 *        call of mongo_periods_floor() leaves the periods sorted, without duplicates.
 */
#pragma once

#include "store/mongo/handle/handle.h"

void mongo_periods_clear(struct mongo_periods *p);
void mongo_periods_add(struct mongo_periods *p, int64_t ms);
void mongo_periods_floor(struct mongo_periods *p, enum span span);
