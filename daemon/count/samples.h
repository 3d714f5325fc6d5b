/* samples.h - a few rejected lines of each reason, for the operator to look at. */
#pragma once

#include "base/slice.h"
#include "ingest/reject.h"

#include <stdint.h>

#define SAMPLE_BYTES 160
#define SAMPLES_MAX  3 /* for each reason */

struct sample {
    struct reject why;
    int64_t offset;
    char line[SAMPLE_BYTES]; /* beginning of the line, made printable */
};

/* Initialise with zeros. */
struct samples {
    struct sample list[REJECT_COUNT][SAMPLES_MAX];
    int count[REJECT_COUNT];
};

/* Copy the line, unless there are enough samples of its reason. */
void samples_add(struct samples *s, struct slice line, int64_t offset, struct reject why);
/* Copy the samples of `more` for which there is room. */
void samples_merge(struct samples *s, const struct samples *more);
