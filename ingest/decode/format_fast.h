/* format_fast.h - the fast path of a compiled format: the fields that most lines have, in any order.
 * format_run.c calls it, and reads what it leaves. format_scan.h has its searches.
 *
 *   ops of the format ─▶ quick ops, one each, with what the loop would otherwise look up
 *
 * Usual   : no odd byte, a field that stands as most do, a literal of at most eight bytes. It never rejects:
 *           an op that is not usual is left to format_run.c, and so is a line of less than 64 bytes.
 * Twins   : format_run.c reads a usual field alike: tests/fuzz/fuzz_format.c.
 * Threads : one at a time, since it shares the clock.
 */
#pragma once

#include "ingest/decode/format_time.h"

struct quick_op {
    uint8_t kind, field;
    uint8_t literal_len;
    bool is_own;          /* the field is not built in: it may be a number */
    uint32_t step;        /* bytes to the next quick op: it may read several ops of the format */
    uint64_t bit;         /* the field's */
    uint64_t first, mask; /* as in struct format_op */
};

struct format_fast {
    bool can_run;                            /* false: the CPU lacks the instructions */
    struct quick_op ops[FORMAT_OPS_MAX + 1]; /* the last one ends the loop */
};

/* A line being read. */
struct format_place {
    size_t op;     /* the next */
    const char *p; /* its first byte */
    const char *start, *end;
    struct event *ev;
    uint64_t present, numeric; /* the event's bits so far */
};

void format_fast_init(struct format_fast *fast, const struct format *f);
/* Reads the fields of usual ops, and moves *at behind them. */
void format_fast_take(const struct format_fast *fast, struct format_clock *clock, struct format_place *at);
