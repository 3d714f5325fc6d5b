/* mongo/admin/shard.h - shard keys, as a task has them. */
#pragma once

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"

/* Of the database, before its collections. */
bool mongo_admin_enable_sharding(struct mongo_admin_run *r, struct err *e);
bool mongo_admin_shard(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e);
