/* mongo/admin/run.h - one run of a task: what is done for each collection, printed or carried out. */
#pragma once

#include "store/mongo/admin/task.h"
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

/* As a shell takes it. */
void mongo_admin_json(struct text *out, const bson_t *document);
/* "db.getSiblingDB(…)": the database, whichever the shell is in. */
void mongo_admin_database(struct mongo_admin_run *r);
/* Is a key found in a server the one that is wanted? It may give back 1, 1.0 or NumberLong(1). */
bool mongo_admin_is_key(const bson_t *wanted, const bson_iter_t *found);
