/* address.h - checks whether a text names a place that the daemon can use. config/keys.def's types call
 * it. */
#pragma once

#include "base/slice.h"
#include "base/suggest.h"

/* "127.0.0.1:8080", "localhost:0", "[::1]:8080" */
bool address_is_listen(struct slice text);
/* One or several hosts with commas between them, each with or without a port. */
bool address_is_brokers(struct slice text);
/* A valid name of a Kafka topic. */
bool address_is_topic(struct slice text);
/* "sqlite:PATH", "mongodb://…" or "mem:" */
bool address_is_store(struct slice text);
/* The scheme of a URL with its colon, "mongodb:", which holds no password. A text without a scheme is
 * returned whole, and may hold one. */
struct slice address_scheme(struct slice url);
/* A hint about a text that is no store: a scheme that is near, or about the path of a file; "": none. */
const char *address_store_hint(struct slice url, char hint[SUGGEST_HINT_BYTES]);
