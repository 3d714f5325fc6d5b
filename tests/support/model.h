/* model.h - the naive recount: every count that was ever added, in a list; a sum walks all of it. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define MODEL_MEASURES 2 /* the measures of fixture.h */

struct model_count {
    size_t report;
    const char *key; /* borrowed */
    int64_t at_ms;
    int64_t values[MODEL_MEASURES];
};

struct model {
    struct model_count *counts;
    size_t count, capacity;
};

/* Is a key included in a sum? */
typedef bool model_fn(void *context, struct slice key);

void model_free(struct model *m);
void model_add(struct model *m, size_t report, const char *key, int64_t at_ms, const int64_t *values);
/* Sums [from_ms, to_ms) over the keys that `wants` includes; NULL: over every key. */
int64_t model_sum(const struct model *m, size_t report, model_fn *wants, void *context, int64_t from_ms,
                  int64_t to_ms, size_t measure);
/* A model_fn: is the key equal to the text `key_text`? */
bool model_is(void *key_text, struct slice key);
