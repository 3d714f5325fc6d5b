/* fuzz_decode.h - decodes a fuzzed message by a chain, and checks every event and reject: fields lie in
 * memory that is there, numbers are within their limits, rejects have a reason and a column, and it comes to
 * an end.
 */
#pragma once

#include "aggregate/exponential.h"
#include "base/check.h"
#include "base/civil.h"
#include "ingest/decode/chain.h"
#include "ingest/scan.h"

#include <time.h>

/* The limit is of a program without sanitizers, which make a line some five times as slow. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_US_PER_KIB 300
#endif
#endif
#ifndef FUZZ_US_PER_KIB
#define FUZZ_US_PER_KIB 100
#endif

static inline bool fuzz_is_within(struct slice part, struct slice whole)
{
    return part.ptr >= whole.ptr && slice_end(part) <= slice_end(whole);
}

/* A distribution has the numbers that it says, and all of them fall in slots. */
static inline void fuzz_check_distribution(const struct distribution *many)
{
    static struct arena memory;
    struct histogram h = {0};
    if (memory.chunk_bytes == 0)
        arena_init(&memory, (size_t)64 << 10);
    exponential_add(&h, &memory, histogram_layout(EVENT_SCALE, HISTOGRAM_SCHEMA, 0), many);
    ASSERT(histogram_count(&h) == many->count && many->count <= DISTRIBUTION_COUNT_MAX);
    arena_reset(&memory);
}

static inline void fuzz_check_event(const struct event *ev, const struct decode *d)
{
    static volatile char sum; /* so that every byte is read, and must be there */
    ASSERT(ev->at_ms >= 0 && ev->at_ms < CIVIL_END_MS);
    ASSERT((ev->odd & ~ev->present) == 0);
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        struct slice s = ev->field[f];
        for (size_t k = 0; k < s.len; k++)
            sum = (char)(sum ^ s.ptr[k]);
        ASSERT(decode_provides(d, f));
        ASSERT(event_is_odd(ev, f) == scan_has_odd_bytes(s.ptr, slice_end(s)));
        if (!field_is_number(f) || !event_has_number(ev, f))
            continue;
        if (event_distribution(ev, f) != NULL)
            fuzz_check_distribution(event_distribution(ev, f));
        int64_t max = f == FIELD_STATUS ? 999 : f == FIELD_BYTES ? EVENT_NUMBER_MAX : EVENT_DECIMAL_MAX;
        ASSERT(ev->number[f] <= max && ev->number[f] >= (field_scale(f) == 1 ? 0 : -max));
    }
}

static inline void fuzz_decode_up_to(struct chain *c, const struct decode *d, const struct record *r,
                                     size_t results_max)
{
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    size_t results = 0;
    chain_start(c, r);
    while ((what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END) {
        ASSERT(++results <= results_max);
        if (what == CHAIN_EVENT)
            fuzz_check_event(&ev, d);
        else if (what == CHAIN_REJECT)
            ASSERT((unsigned)why.reason < REJECT_COUNT && why.column >= 1 && why.column <= bytes.len + 1);
        if (d->step_count == 1 && what != CHAIN_DIRECTIVE)
            ASSERT(fuzz_is_within(bytes, chain_text(c, 0)));
    }
    chain_flush(c);
}

static inline void fuzz_decode(struct chain *c, const struct decode *d, const struct record *r)
{
    fuzz_decode_up_to(c, d, r, r->value.len + 1);
}

static inline int64_t fuzz_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* As fuzz_decode(); also checks that no line took more than FUZZ_US_PER_KIB, or as much for less than a KiB.
 * The best of some times counts. */
static inline void fuzz_decode_in_time(struct chain *c, const struct decode *d, const struct record *r)
{
    int64_t limit_ns = FUZZ_US_PER_KIB * 1000 * (int64_t)(r->value.len / 1024 + 1), ns = INT64_MAX;
    for (size_t i = 0; i < r->value.len; i++)
        limit_ns += r->value.ptr[i] == '\n' ? FUZZ_US_PER_KIB * 1000 : 0;
    for (int tries = 0; tries < 10 && ns > limit_ns; tries++) {
        int64_t start = fuzz_cpu_ns();
        fuzz_decode(c, d, r);
        ns = fuzz_cpu_ns() - start;
    }
    ASSERT(ns <= limit_ns);
}

/* Makes the chain of one step that makes events. */
static inline struct chain *fuzz_chain_of(struct decode *d, const char *step, const char *time,
                                          size_t line_max)
{
    struct err e;
    decode_init(d);
    bool good = decode_add_step(d, slice_text(step), &e) &&
                (time == NULL || decode_set_time(d, slice_text(time), &e)) && decode_finish(d, &e);
    ASSERT(good);
    return chain_new(d, line_max);
}

#define FUZZ_LINE_MAX  65536
#define FUZZ_STEPS_MAX 8

/* Decodes a message by a chain of each of these steps; by the first `in_time` of them within the limit. A
 * target calls it with the same steps always. */
static inline void fuzz_steps(const char *const *steps, size_t count, size_t in_time, struct slice message)
{
    static struct decode decodes[FUZZ_STEPS_MAX];
    static struct chain *chains[FUZZ_STEPS_MAX];
    struct record r = {.value = message, .timestamp_ms = -1};
    ASSERT(count <= FUZZ_STEPS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (chains[i] == NULL)
            chains[i] = fuzz_chain_of(&decodes[i], steps[i], NULL, FUZZ_LINE_MAX);
        (i < in_time ? fuzz_decode_in_time : fuzz_decode)(chains[i], &decodes[i], &r);
    }
}
