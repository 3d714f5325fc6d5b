/* What the files of mongo/admin/admin.h share: what is done for one collection, printed or carried out. */
#pragma once

#include "store/mongo/admin/admin.h"
#include "store/mongo/catalog/catalog.h"

struct mongo_admin_run {
    struct mongo_store *m;
    const struct mongo_task *task;
    struct text *out;
    bool is_there;   /* the server */
    bool is_sharded; /* a cluster: it is a mongos */
    bool has_failed;
    struct err failure; /* the first */
};

/* ---- mongo/admin/admin.c */

/* As a shell takes it. */
void mongo_admin_json(struct text *out, const bson_t *document);
/* "db.getSiblingDB(…)": the database, whichever the shell is in. */
void mongo_admin_database(struct mongo_admin_run *r);
/* Is a key found in a server the one that is wanted? It may give back 1, 1.0 or NumberLong(1). */
bool mongo_admin_is_key(const bson_t *wanted, const bson_iter_t *found);

/* ---- mongo/admin/index.c */

bool mongo_admin_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e);
/* A line of the shell. */
void mongo_admin_create_index(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                              const bson_t *key, int64_t ttl_s);

/* ---- mongo/admin/shard.c */

/* Of the database, before its collections. */
bool mongo_admin_enable_sharding(struct mongo_admin_run *r, struct err *e);
bool mongo_admin_shard(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e);

/* ---- mongo/admin/validator.c */

bool mongo_admin_validate(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e);
