/* mongo/admin/run.h - one run of a task. For each collection, the task is printed or carried out. */
#pragma once

#include "store/mongo/catalog/catalog.h"

struct mongo_task; /* mongo/admin/admin.h */

struct mongo_admin_run {
    struct mongo_store *m;
    const struct mongo_task *task;
    struct text *out;
    bool is_there;                    /* there is a server */
    bool is_sharded;                  /* the server is a mongos: a sharded cluster */
    enum store_validation validation; /* of the task, as far as the server is to have it */
    bson_t options;                   /* of the collections there: mongo_list_options() */
    bool has_options;                 /* of all of them; else each is asked for */
    bool has_failed;
    struct err failure; /* the first failure */
};

/* Prints a document in the shell's notation. */
void mongo_admin_json(struct text *out, const bson_t *document);
/* Prints "db.getSiblingDB(…)", which names the database whichever one the shell uses. */
void mongo_admin_database(struct mongo_admin_run *r);
/* Is the key that a server returned the wanted one? The server may return 1 as 1.0 or NumberLong(1). */
bool mongo_admin_is_key(const bson_t *wanted, const bson_iter_t *found);

/* ---- what is printed or carried out for a collection: mongo/admin/index.c, shard.c and validator.c */

bool mongo_admin_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e) MUST_CHECK;
/* Prints the shell's command that makes an index. */
void mongo_admin_create_index(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                              const bson_t *key, int64_t ttl_s);
/* Enables sharding for the database. Call it before sharding collections. */
bool mongo_admin_enable_sharding(struct mongo_admin_run *r, struct err *e) MUST_CHECK;
bool mongo_admin_shard(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e) MUST_CHECK;
bool mongo_admin_validate(struct mongo_admin_run *r, const struct mongo_collection *c,
                          struct err *e) MUST_CHECK;
