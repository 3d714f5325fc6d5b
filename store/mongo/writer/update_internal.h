/* update_internal.h - shared by update.c, which writes series and documents, and update_books.c. */
#pragma once

#include "store/mongo/handle/handle.h"

/* An update under construction. */
struct update {
    struct mongo_store *m;
    struct mongo_log *log;
    const char *collection;
    size_t report;
    int64_t now_ms;
    bson_t inc, min, max, unset;
};

void mongo_begin_update(struct update *u);
/* Writes the update { c, f, u } to the log. `set` may be NULL. */
void mongo_end_update(struct update *u, const bson_t *filter, const bson_t *set);

/* Writes the books of the report itself: events of the series `other`, and of expired buckets. */
void mongo_write_report_books(struct update *u, const struct batch *batch, int64_t other);
/* Writes the books of the sources. */
void mongo_write_books(struct update *u, const struct batch *batch);
