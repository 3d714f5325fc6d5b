/* verify/kafka.h - reads topics again for the recount (verify.h): each partition from where it was first
 * counted to the store's position, as far as its records still exist.
 *
 * Retention : records before the first offset are gone.
 * Compaction: records in between may be gone. If offsets are missing and the books have more events than were
 *             found, compaction is taken as the reason. If the topic's cleanup.policy has no compaction, only
 *             transactions leave offsets out. These were not counted, so missing events are a difference.
 */
#pragma once

#include "ingest/kafka/kafka.h"
#include "verify/verify.h"

/* Recount the positions that are partitions of a configured topic, and describe the result of each in
 * `sources`. The other positions are left as they are. */
bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  struct verify_source *sources, size_t count, struct err *e) MUST_CHECK;
