/* part.h - the memory of a part (batch.h): what a shard fills and a store reads. Its shard owns it, and lends
 * it to the writer from shard_seal() to shard_give_back(). Nothing here fails.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/report.h"

#define PART_SKETCH_CHUNK_BYTES ((size_t)64 << 10) /* sketches ask for memory by so much */

void part_init(struct part *p, uint32_t shard, const struct report *reports, size_t report_count);
void part_fini(struct part *p);
/* Empties it, and keeps its memory. */
void part_clear(struct part *p);
/* The bytes that it takes. */
size_t part_bytes(const struct part *p);
