/* schema_step.h - the step of a chain that reads a message by the schema that it was written with, and makes
 * it JSON for the next step. chain.c calls it.
 *
 *   00 00000007 …    a message as serialisers of a schema registry write it: a byte 0, the schema's id in 4
 *                    bytes, and the datum. If the schema is a file's, a message is the datum alone
 *
 * Wait    : as registry.h says, a schema may not be known yet. The caller asks schema_step_knows() first.
 * Owner   : the JSON is in the arena.
 * Threads : one at a time; it remembers the schemas of its last ids, and takes no lock for them.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/record.h"

struct schema_step;

/* Pre: the registry of `d` is open (registry_open()). */
struct schema_step *schema_step_new(const struct decode *d, size_t line_max);
void schema_step_free(struct schema_step *ss);
/* Is the schema of this record known, or has it none? If not, it will be fetched. */
bool schema_step_knows(struct schema_step *ss, const struct record *r);
/* Writes the record as JSON. False: *why says why it does not fit the schema. Pre: schema_step_knows(). */
bool schema_step_unwrap(struct schema_step *ss, const struct record *r, struct arena *memory,
                        struct slice *json, struct reject *why);
