/* mongo/handle/names.h - the numbers by which one handle names the series of a report. Documents do not have
 * these numbers: a document names its series by metadata.
 *
 * Shape : numbers from 1 in order of first sight; 0 is `other`. Keys as in batch.h.
 * Limits: the caller of mongo_names_add() limits the count.
 */
#pragma once

#include "base/arena.h"
#include "base/check.h"
#include "base/index.h"
#include "base/slice.h"

#include "store/mongo/handle/kind.h"
#include "store/prealloc.h"

#include <stdbool.h>
#include <stdint.h>

struct mongo_name {
    uint64_t hash;
    struct slice key;
    bool is_stored; /* the database has it */
    struct prealloc_state ahead[MONGO_KINDS_MAX];
    /* The bucket of the last document that this handle wrote, by kind: minutes since 1970, plus 1; 0:
     * none. */
    uint32_t written[MONGO_KINDS_MAX];
};

struct mongo_names {
    struct mongo_name *names; /* of numbers 1, 2, … */
    size_t count, capacity;
    size_t stored; /* all numbers up to this one are stored */
    struct index index;
    struct arena keys;
};

void mongo_names_init(struct mongo_names *n);
void mongo_names_fini(struct mongo_names *n);
/* 0: not found. */
uint32_t mongo_names_find(const struct mongo_names *n, struct slice key);
uint32_t mongo_names_add(struct mongo_names *n, struct slice key);

static inline struct mongo_name *mongo_names_at(const struct mongo_names *n, uint32_t number)
{
    ASSERT(number >= 1 && number <= n->count); /* 0 is no name: `other` */
    return &n->names[number - 1];
}
