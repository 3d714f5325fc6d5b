/* mongo/admin/index.h - the indexes of a collection: prints or makes them for a task. */
#pragma once

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"

bool mongo_admin_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e) MUST_CHECK;
/* Prints the shell's command that makes an index. */
void mongo_admin_create_index(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                              const bson_t *key, int64_t ttl_s);
