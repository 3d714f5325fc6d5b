#include "store/writer.h"

#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct store_writer_ops *writer_of(const struct store *st)
{
    ASSERT(st->writer != NULL); /* opened by STORE_WRITE */
    return st->writer;
}

static void check_batch(const struct store *st, const struct batch *batch)
{
    ASSERT(!batch->backfills || st->writer->backfills);
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *r = &batch->ranges[i];
        ASSERT(r->from >= 0 && r->from <= r->to && r->source[0] != '\0');
        ASSERT(batch->books[i].report_count == st->report_count);
    }
    for (size_t p = 0; p < batch->part_count; p++) {
        ASSERT(batch->parts[p]->report_count == st->report_count);
        for (size_t r = 0; r < st->report_count; r++)
            ASSERT(batch->parts[p]->reports[r].cells.stride == report_cell_bytes(&st->reports[r]));
    }
}

struct claim {
    struct range *ranges;
    size_t count;
};

static bool take_position(void *context, const struct position *position)
{
    const struct claim *c = context;
    for (size_t i = 0; i < c->count; i++) {
        struct range *r = &c->ranges[i];
        if (strcmp(r->source, position->range.source) != 0 ||
            strcmp(r->partition, position->range.partition) != 0)
            continue;
        *r = position->range;
        r->from = r->to;
    }
    return true;
}

bool store_meet(struct store *st, struct err *e)
{
    return writer_of(st)->meet == NULL || writer_of(st)->meet(st, e);
}

bool store_claim(struct store *st, struct range *ranges, size_t count, struct err *e)
{
    struct claim c = {ranges, count};
    for (size_t i = 0; i < count; i++) {
        ASSERT(ranges[i].source[0] != '\0');
        ranges[i].from = ranges[i].to = -1;
    }
    return writer_of(st)->claim != NULL ? st->writer->claim(st, ranges, count, e)
                                        : st->reader->positions(st, take_position, &c, e);
}

bool store_settle(struct store *st, struct err *e)
{
    return writer_of(st)->settle == NULL || st->writer->settle(st, e);
}

bool store_apply(struct store *st, const struct batch *batch, struct err *e)
{
    const struct store_writer_ops *writer = writer_of(st);
    check_batch(st, batch);
    return writer->apply(st, batch, e);
}

bool store_housekeep(struct store *st, bool all, struct err *e)
{
    return writer_of(st)->housekeep(st, all, e);
}

bool store_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired, struct err *e)
{
    *expired = (struct expired){0};
    return writer_of(st)->expire(st, now_ms, trusts_clock, expired, e);
}

bool store_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e)
{
    ASSERT(report < st->report_count);
    return writer_of(st)->move_back(st, report, now_ms, e);
}

const char *store_late_entry(enum span span, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "late.%s", span_name(span));
    return buf;
}

const char *store_gap_entry(int64_t from, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "gap.%" PRId64, from);
    return buf;
}

const char *store_latest_entry(const struct range *r, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "latest.%" PRId64 ".%" PRId64, r->latest_from, r->latest_ms);
    return buf;
}
