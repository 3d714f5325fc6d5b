/* mongo/catalog/index.h - the indexes of all collections. */
#pragma once

#include "store/mongo/handle/handle.h"

/* At start: makes the indexes of all collections. A different index is logged, and left alone. */
bool mongo_create_indexes(struct mongo_store *m, struct err *e) MUST_CHECK;
