/* mongo/send/new.h - the document that an update of a batch's log makes if there is none. send/chunk.c
 * inserts it: a server takes a thousand new documents in one command several times as fast as upserts.
 *
 *   f: { _id: "20101010/…", "metadata.path": …, "applied.w0": { $not: … } }
 *   u: { $inc: { daily: 3, "hourly.13": 3 }, $set: { "applied.w0": 42 }, $setOnInsert: { v: 1 } }
 *
 *   { _id: "20101010/…", applied: { w0: 42 }, daily: 3, hourly: { 13: 3 }, metadata: { path: … }, v: 1 }
 *
 * Members : `_id` first, then in the order of their names, numbers by their value.
 */
#pragma once

#include <bson/bson.h>

/* Initialises `document`; the caller destroys it. */
void mongo_new_document(const bson_t *update, bson_t *document);
