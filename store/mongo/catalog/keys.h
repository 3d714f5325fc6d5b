/* mongo/catalog/keys.h - finds a generation of a report in `reports`. Its `_id` there is its key, which names
 * its collections (mongo/handle/report.h). `tallyd admin` and the jobs that drop a generation or have it take
 * another's place call it.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* A generation of a report, as `reports` has it. */
struct mongo_found_report {
    char key[MONGO_NAME_BYTES];
    int generation;
    bool is_dropping; /* it is dropped in part: mongo/job/drop.h */
    bool is_decimal;  /* numbers with fractions are decimals: mongo/doc/decimal.h */
    size_t count;     /* generations of this name; 0: there is none, and the other members are empty */
};

/* Find a generation of a report. */
bool mongo_find_report(struct mongo_store *m, const char *name, int generation,
                       struct mongo_found_report *found, struct err *e) MUST_CHECK;
/* Find the newest generation of a report. */
bool mongo_find_newest(struct mongo_store *m, const char *name, struct mongo_found_report *found,
                       struct err *e) MUST_CHECK;
