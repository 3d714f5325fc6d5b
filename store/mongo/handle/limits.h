/* mongo/handle/limits.h - how much is sent to MongoDB at once. */
#pragma once

#include <stddef.h>

/* A batch is carried out over so many connections; each has two chunks of its log at hand: as they were taken
 * from it, and as a command. */
#define MONGO_CONNECTIONS_DEFAULT 4
#define MONGO_CONNECTIONS_MAX     64
#define MONGO_CONNECTION_BYTES    ((size_t)2 << 20)

/* A chunk of a log is no larger, whatever the server takes. */
#define MONGO_CHUNK_UPDATES 1000
#define MONGO_CHUNK_BYTES   (MONGO_CONNECTION_BYTES / 2)
