/* mongo/writer/prealloc.h - documents before they are needed. */
#pragma once

#include "store/mongo/handle/handle.h"

/* A document that the batch counts in, those of a series in order of time. */
struct mongo_touch {
    uint32_t series;
    int64_t start_ms, last_ms; /* of its span; of its last cell */
    int64_t hits;
    bool is_last; /* of its series, in the batch */
};

/* Notes in m->making.ahead whether the next document of the series is due. True: this one is most likely
 * there. */
bool mongo_touch(struct mongo_store *m, size_t report, size_t kind, const struct mongo_touch *t);
/* Makes what is noted: no more is. */
void mongo_write_ahead(struct mongo_store *m, size_t report, size_t kind, int64_t now_ms,
                       struct mongo_log *log);
