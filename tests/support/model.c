#include "tests/support/model.h"

#include "aggregate/batch.h"
#include "base/mem.h"

#include <stdlib.h>

void model_free(struct model *m)
{
    free(m->counts);
    *m = (struct model){0};
}

void model_add(struct model *m, size_t report, const char *key, int64_t at_ms, const int64_t *values)
{
    m->counts = xgrow(m->counts, &m->capacity, m->count + 1, sizeof *m->counts);
    struct model_count *c = &m->counts[m->count++];
    *c = (struct model_count){.report = report, .key = key, .at_ms = at_ms};
    memcpy(c->values, values, sizeof c->values);
}

int64_t model_sum(const struct model *m, size_t report, model_fn *wants, void *context, int64_t from_ms,
                  int64_t to_ms, size_t measure)
{
    int64_t sum = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct model_count *c = &m->counts[i];
        if (c->report == report && c->at_ms >= from_ms && c->at_ms < to_ms &&
            (wants == NULL || wants(context, slice_text(c->key))))
            sum = value_add(sum, c->values[measure]);
    }
    return sum;
}

bool model_is(void *key_text, struct slice key)
{
    return slice_is(key, key_text);
}
