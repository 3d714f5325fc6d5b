/* samples.h - a few rejected lines of each reason, for a person to look at. */
#pragma once

#include "base/slice.h"
#include "ingest/reject.h"

#include <stdint.h>

#define SAMPLE_BYTES 160
#define SAMPLES_MAX  3 /* of a reason */

struct sample {
    struct reject why;
    int64_t offset;
    char line[SAMPLE_BYTES]; /* its beginning, made printable */
};

/* Zeros at first. */
struct samples {
    struct sample list[REJECT_COUNT][SAMPLES_MAX];
    int count[REJECT_COUNT];
};

/* Keep a copy of the line, unless there are enough of its reason. */
void samples_add(struct samples *s, struct slice line, int64_t offset, struct reject why);
/* Keep those of `more` that there is room for. */
void samples_merge(struct samples *s, const struct samples *more);
