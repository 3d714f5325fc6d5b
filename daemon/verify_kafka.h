/* verify_kafka.h - reads topics again for the judge (verify.h): every partition from where it was first
 * counted to where the store stands. */
#pragma once

#include "daemon/verify.h"
#include "ingest/kafka.h"

/* Recount those of `positions` that are partitions of a topic of the configuration, and set given[i]. What
 * cannot be read again, since its records are deleted by now, is named on standard error and not given. */
bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  bool *given, size_t count, struct err *e) MUST_CHECK;
