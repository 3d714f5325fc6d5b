/* mongo/admin/task.h - one task of `tallyd admin`. */
#pragma once

#include "store/store.h"

enum mongo_admin { ADMIN_INDEXES, ADMIN_SHARD, ADMIN_VALIDATOR };

struct mongo_task {
    enum mongo_admin what;
    bool apply; /* else printed: also without a server, as for a new database */
    enum store_validation validation;
    const struct report *reports;
    size_t report_count;
    bool weeks;                    /* documents of weeks are wanted */
    bool ttl;                      /* as in store_options */
    const struct raw *const *raws; /* as in store_options */
    size_t raw_count;
};
