/* mongo/writer/prealloc.h - preallocates documents, as store/prealloc.h decides. writer/update.c calls it. */
#pragma once

#include "store/mongo/handle/handle.h"

/* A document that the batch counts in. Documents of a series come in order of time. */
struct mongo_touch {
    uint32_t series;
    int64_t start_ms, last_ms; /* start of its period; time of its last cell */
    int64_t hits;
    bool is_last; /* it is the last one of its series in the batch */
};

/* Adds the next document of the series to m->making.ahead if it is due. Returns true if document `t` most
 * likely exists. */
bool mongo_touch(struct mongo_store *m, size_t report, size_t kind, const struct mongo_touch *t);
/* Writes the updates that make the documents in m->making.ahead, and empties that. */
void mongo_write_ahead(struct mongo_store *m, size_t report, size_t kind, int64_t now_ms,
                       struct mongo_log *log);
/* Says in the database that documents of a report may hold zeros, before any does: readers then take a bucket
 * of zeros for none. Nothing is done for a report without a plain count. */
bool mongo_note_zeros(struct mongo_store *m, size_t report, struct err *e) MUST_CHECK;
