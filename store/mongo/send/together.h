/* mongo/send/together.h - writes the updates of a chunk as a few updates of many documents. chunk.c calls it.
 *
 * Why      : a server parses and plans one update of fifty documents once, which is two to four times as fast
 *            as fifty updates.
 * Alike    : updates that differ only in their document become one update of all these documents.
 * Differing: updates that differ in their numbers, too, become one update by a pipeline, which has a row of
 *            numbers for each `_id`. Only sums of int64 qualify, all of them 0 or more and below 2^62, at the
 *            same paths, with the same $set.
 * Exact    : both have the guard of the single updates. A pipeline adds as $inc does. An int64 that overflows
 *            would become a double, so its filter leaves out documents with a sum of 2^62 or more. $inc
 *            refuses a null, and a path through a number or a text; so does the pipeline, by adding a text.
 *            An update that was left out or refused is not applied: chunk.c sends it by itself.
 * MongoDB  : takes such pipelines from 4.2 on.
 * Limits   : TOGETHER_PATHS_MAX numbers of an update by a pipeline. The command has up to twice the bytes of
 *            the chunk.
 */
#pragma once

#include "store/mongo/send/updates.h"

#define TOGETHER_ALIKE_MIN  4  /* fewer alike updates go one by one */
#define TOGETHER_DIFFER_MIN 10 /* fewer differing updates go one by one */
#define TOGETHER_DIFFER_MAX 50 /* a server searches the row of a document in all rows */
#define TOGETHER_PATHS_MAX  64

struct mongo_together {
    size_t count;                          /* updates of the command */
    size_t many;                           /* of these, updates of many documents */
    size_t pipelines;                      /* of these, pipelines */
    bool is_pipeline[MONGO_CHUNK_UPDATES]; /* by index in the command */
};

/* Writes an update command for the whole chunk: updates of many documents without upsert, and the other
 * updates as upserts. The caller destroys it. `pipelines` false: without pipelines. */
void mongo_together_write(const struct mongo_chunk *c, bool pipelines, bson_t *command,
                          struct mongo_together *t);
