/* mongo/doc/unrolled.h - which longer documents lack batches: seats say it (mongo/writer/longer.h).
 *
 * Read : seats first, then documents. A bucket within a period that is named here is read from the fine
 *        document of the period, which has every batch that is done; other buckets from any document.
 * Age  : seats are read at most once a second, so an answer may lack what was done in the second before.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The path in a seat: "unrolled.20260105". */
#define MONGO_UNROLLED_BYTES 32
const char *mongo_unrolled_path(const struct mongo_unrolled *u, char buf[MONGO_UNROLLED_BYTES]);
/* The last batch of a seat that some longer documents lack; 0: none does. */
int64_t mongo_last_unrolled(const bson_t *seat);
/* The number of periods of which they lack batches. */
uint64_t mongo_count_unrolled(const bson_t *seat);
/* The periods of all seats, by answers that are a second old at most. NULL: they could not be read. */
const struct mongo_unrolled_seen *mongo_see_unrolled(struct mongo_store *m, struct err *e) MUST_CHECK;
/* Do longer documents of a report lack anything from `from_ms` up to `to_ms`? `fine`: of its fine
 * documents. */
bool mongo_is_unrolled(const struct mongo_unrolled_seen *seen, enum span fine, int64_t from_ms,
                       int64_t to_ms);
