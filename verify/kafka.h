/* verify/kafka.h - reads topics again for the judge (verify.h): every partition from where it was first
 * counted to where the store stands, as far as it is still there.
 *
 * Retention : records before the first offset are gone.
 * Compaction: records in between may be. Where offsets are missing, and the books have more events than were
 *             found, that is what became of them, unless the topic's cleanup.policy knows no compaction: then
 *             only transactions leave offsets out, of which nothing was counted, and it is a difference.
 */
#pragma once

#include "ingest/kafka/kafka.h"
#include "verify/verify.h"

/* Recount those of `positions` that are partitions of a topic of the configuration, and say what became of
 * each in `sources`; the others are left as they are. */
bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  struct verify_source *sources, size_t count, struct err *e) MUST_CHECK;
