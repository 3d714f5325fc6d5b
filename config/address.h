/* address.h - is this text an address that the daemon can use? */
#pragma once

#include "base/slice.h"

/* "127.0.0.1:8080", "localhost:0", "[::1]:8080" */
bool address_is_listen(struct slice text);
/* The same, several with commas between them, with or without ports. */
bool address_is_brokers(struct slice text);
/* A name that Kafka lets a topic have. */
bool address_is_topic(struct slice text);
/* "sqlite:PATH", "mongodb://…" or "mem:" */
bool address_is_store(struct slice text);
/* What of a URL may be shown, since it holds no password: "mongodb:"; all of it where there is none. */
struct slice address_scheme(struct slice url);
