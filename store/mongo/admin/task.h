/* mongo/admin/task.h - one task of `tallyd admin`. */
#pragma once

#include "store/store.h"

enum mongo_admin { ADMIN_INDEXES, ADMIN_SHARD, ADMIN_VALIDATOR };

struct mongo_task {
    enum mongo_admin what;
    bool apply; /* carry it out; else print it, which needs no server */
    enum store_validation validation;
    const struct report *reports;
    size_t report_count;
    bool weeks;                    /* include documents of weeks */
    bool ttl;                      /* as in store_options */
    const struct raw *const *raws; /* as in store_options */
    size_t raw_count;
};
