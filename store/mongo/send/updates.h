/* mongo/send/updates.h - a chunk: some updates of a batch's log, and how a command has them. chunk.c and
 * together.c write commands with it. Threads: one per chunk, which has its own client. */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_chunk {
    struct mongo_client *client;
    const struct mongo_open *of; /* the batch that the updates are from */
    bool one_by_one;             /* send no updates of many documents */
    enum mongo_pipelines pipelines;
    char collection[MONGO_NAME_BYTES];
    struct text raw; /* updates, concatenated */
    size_t at[MONGO_CHUNK_UPDATES];
    const char *ids[MONGO_CHUNK_UPDATES]; /* `_id`s within `raw`, while the chunk is applied */
    size_t count;
    size_t made;     /* documents that the chunk made */
    bool is_ahead;   /* all updates only preallocate documents */
    bool finds_new;  /* the chunk before made many documents: worth looking for new ones */
    bool makes_most; /* the chunk before made most of its documents */
};

/* An update of the log, within `raw`. A bson_t points into itself: it cannot be returned. */
void mongo_chunk_update(const struct mongo_chunk *c, size_t i, bson_t *update);
/* Begins an update command. The caller appends the updates, and ends their array. */
void mongo_chunk_begin_command(const struct mongo_chunk *c, bson_t *command, bson_t *updates);
/* Appends { q, u, upsert } of an update, as it is in the log. */
void mongo_chunk_write_upsert(const struct mongo_chunk *c, size_t i, bool upsert, bson_t *one);
/* Appends { u } of an update. */
void mongo_chunk_append_change(const struct mongo_chunk *c, size_t i, bson_t *one);
