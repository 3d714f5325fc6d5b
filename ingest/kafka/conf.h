/* kafka/conf.h - which properties of librdkafka a user may set, and to what.
 *
 * Refused : what librdkafka does not know or take; what has a key of its own here; and what tallyd must set
 *           itself for exactness.
 * Limits  : values that only work together (a key and its password), or a file that a value names, are found
 *           wrong when the consumer is made.
 * Version : librdkafka 2.0 or newer.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#define KAFKA_TOPIC_MAX 249 /* bytes of a topic's name */

struct kafka_property {
    char *name, *value;
};

/* False with EX_CONFIG, "found …, expected …". `is_secret`: the text must not show the value. */
bool kafka_conf_check(const char *name, const char *value, bool is_secret, struct err *e) MUST_CHECK;
