/* mongo/send/saturate.h - sums that would be beyond int64. */
#pragma once

#include "store/mongo/handle/handle.h"

/* An update that the server refuses, because a sum would be beyond int64: *done, or it is refused for another
 * reason. */
bool mongo_saturate(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                    const bson_t *logged, bool *done, struct err *e);
