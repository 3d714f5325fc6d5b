/* mongo/admin/shard.h - shard keys: prints or sets them for a task. */
#pragma once

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"

/* Enables sharding for the database. Call it before sharding collections. */
bool mongo_admin_enable_sharding(struct mongo_admin_run *r, struct err *e) MUST_CHECK;
bool mongo_admin_shard(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e) MUST_CHECK;
