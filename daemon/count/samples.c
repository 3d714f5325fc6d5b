#include "daemon/count/samples.h"

void samples_add(struct samples *s, struct slice line, int64_t offset, struct reject why)
{
    if (s->count[why.reason] == SAMPLES_MAX)
        return;
    struct sample *sample = &s->list[why.reason][s->count[why.reason]++];
    size_t n = line.len < SAMPLE_BYTES - 1 ? line.len : SAMPLE_BYTES - 1;
    *sample = (struct sample){.why = why, .offset = offset};
    for (size_t i = 0; i < n; i++)
        sample->line[i] = line.ptr[i] >= 0x20 && line.ptr[i] < 0x7f ? line.ptr[i] : '?';
}

void samples_merge(struct samples *s, const struct samples *more)
{
    for (int reason = 0; reason < REJECT_COUNT; reason++) {
        for (int i = 0; i < more->count[reason] && s->count[reason] < SAMPLES_MAX; i++)
            s->list[reason][s->count[reason]++] = more->list[reason][i];
    }
}
