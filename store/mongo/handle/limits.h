/* mongo/handle/limits.h - how much is sent to MongoDB at once. */
#pragma once

#include <stddef.h>

/* Connections over which a batch is applied. Each has two chunks of the log in memory: as it was logged, and
 * as a command. */
#define MONGO_CONNECTIONS_DEFAULT 4
#define MONGO_CONNECTIONS_MAX     64
#define MONGO_CONNECTION_BYTES    ((size_t)2 << 20)

/* A server takes documents of 16 MiB. The ledger has up to some 300 bytes for each partition and each file
 * that is followed, and a seat for each that its writer counts: from this size on a handle warns of it. */
#define MONGO_LEDGER_BYTES_MAX  ((size_t)16 << 20)
#define MONGO_LEDGER_BYTES_FULL ((size_t)12 << 20)

/* The largest chunk of a log, whatever the server takes. */
#define MONGO_CHUNK_UPDATES 1000
#define MONGO_CHUNK_BYTES   (MONGO_CONNECTION_BYTES / 2)
