/* mongo/send/saturate.h - saturates sums that would exceed int64. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Applies an update that the server refused because a sum would exceed int64: the sum stays at the end of
 * int64. *done false: it was refused for another reason. */
bool mongo_saturate(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                    const bson_t *logged, bool *done, struct err *e) MUST_CHECK;
