/* mongo/writer/partition.h - partitions that this writer has claimed, and how far each is counted. */
#pragma once

#include "store/mongo/handle/handle.h"

/* NULL: it is not claimed. */
struct mongo_partition *mongo_find_partition(struct mongo_store *m, const struct range *range);
/* They are to be claimed anew. */
void mongo_forget_partitions(struct mongo_store *m);
/* "partitions.kafka:access/0.next"; valid until the next one. */
const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name);

/* Make them ours, and finish for whoever had them what is sealed of them. */
bool mongo_claim(struct store *st, struct range *ranges, size_t count, struct err *e);
/* Those of a batch's partitions that are not. */
bool mongo_claim_for(struct mongo_store *m, const struct batch *batch, struct err *e);
bool mongo_positions(struct store *st, position_fn *fn, void *context, struct err *e);
