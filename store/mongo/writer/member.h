/* mongo/writer/member.h - names of members about a partition, in the ledger and in seats. Cannot fail. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The key of a partition in `partitions`; the caller frees it. */
char *mongo_partition_key(const struct range *range);
/* The path of a member: "partitions.kafka:access/0.next"; valid until the next call. */
const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name);
