/* verify/kafka.h - reads topics again for the recount (verify.h): each partition from where it was first
 * counted to the store's position, as far as its records still exist.
 *
 * Retention : records before the first offset are gone.
 * Compaction: if the topic is compacted, records in between may be gone, too. Then missing events are no
 *             difference if offsets are missing. If no event is missing, records may have been deleted before
 *             they were counted: the partition is not whole, either. In any other topic, only transactions
 *             leave offsets out, and these never held an event: there, each missing event is a difference.
 */
#pragma once

#include "ingest/kafka/kafka.h"
#include "verify/verify.h"

/* Recounts each position that is a partition of a configured topic, and describes the result in the entry of
 * `sources` with the same index; both have `count` entries. The other entries are left as they are. Errors
 * are those of the broker; a difference is none. */
bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  struct verify_source *sources, size_t count, struct err *e) MUST_CHECK;
