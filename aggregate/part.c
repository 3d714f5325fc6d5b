#include "aggregate/part.h"

#include "base/mem.h"

#include <stdlib.h>

void part_init(struct part *p, uint32_t shard, const struct report *reports, size_t report_count)
{
    *p = (struct part){.shard = shard, .report_count = report_count};
    p->reports = xcalloc(report_count, sizeof *p->reports);
    for (size_t i = 0; i < report_count; i++)
        p->reports[i].cells.stride = report_cell_bytes(&reports[i]);
    arena_init(&p->sketch_memory, PART_SKETCH_CHUNK_BYTES);
    books_init(&p->books, report_count);
}

void part_fini(struct part *p)
{
    for (size_t i = 0; i < p->report_count; i++) {
        free(p->reports[i].cells.data);
        free(p->reports[i].added);
    }
    free(p->reports);
    arena_fini(&p->sketch_memory);
    text_fini(&p->raw);
    books_fini(&p->books);
}

void part_clear(struct part *p)
{
    for (size_t i = 0; i < p->report_count; i++) {
        p->reports[i].cells.count = 0;
        p->reports[i].added_count = 0;
    }
    arena_reset(&p->sketch_memory);
    text_clear(&p->raw);
    books_clear(&p->books);
}

size_t part_bytes(const struct part *p)
{
    size_t bytes = p->raw.capacity + arena_bytes(&p->sketch_memory);
    for (size_t i = 0; i < p->report_count; i++)
        bytes += p->reports[i].cells.capacity * p->reports[i].cells.stride;
    return bytes;
}
