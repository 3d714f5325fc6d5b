/* kafka_internal.h - what consumer and producer of kafka.h share. */
#pragma once

#include "ingest/kafka.h"

/* Logging, the user's properties, the brokers. */
bool kafka_configure(rd_kafka_conf_t *conf, const struct kafka_options *o, struct err *e) MUST_CHECK;
