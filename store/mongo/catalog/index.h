/* mongo/catalog/index.h - the indexes of all collections. */
#pragma once

#include "store/mongo/handle/handle.h"

/* At start: of all collections; one that differs is told, and left alone. */
bool mongo_create_indexes(struct mongo_store *m, struct err *e);
