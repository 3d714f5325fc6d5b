/* address.h - is this text an address that the daemon can use? */
#pragma once

#include "aggregate/batch.h"
#include "base/slice.h"

/* Kafka allows 249; but "kafka:TOPIC~999" must be an identity of a source. */
#define ADDRESS_TOPIC_MAX (RANGE_SOURCE_BYTES < 260 ? RANGE_SOURCE_BYTES - 11 : 249)

/* "127.0.0.1:8080", "localhost:0", "[::1]:8080" */
bool address_is_listen(struct slice text);
/* The same, several with commas between them, with or without ports. */
bool address_is_brokers(struct slice text);
/* A name that Kafka lets a topic have. */
bool address_is_topic(struct slice text);
/* "sqlite:PATH" or "mem:" */
bool address_is_store(struct slice text);
/* What of a URL may be shown, since it holds no password: "mongodb:"; all of it where there is none. */
struct slice address_scheme(struct slice url);
