/* kafka/conf.h - checks the properties of librdkafka that a user sets. The configuration calls it.
 *
 * Refused : properties and values that librdkafka does not know; properties with a key of their own in
 *           tallyd.yaml; properties that tallyd must set itself for exactness.
 * Limits  : values that only work together (a key and its password), and files that values name, are checked
 *           only when the consumer is made.
 * Version : librdkafka 2.0 or newer.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#define KAFKA_TOPIC_MAX 249 /* bytes of a topic's name */

struct kafka_property {
    char *name, *value;
};

/* False: EX_CONFIG, "found …, expected …". `is_secret`: the error must not show the value. */
bool kafka_conf_check(const char *name, const char *value, bool is_secret, struct err *e) MUST_CHECK;
