/* world.h - the surroundings of a store's test: a fresh store of one kind, reports, and batches for it.
 *
 *   for each kind:  set world_kind, then run the tests with world_setup() and world_teardown()
 */
#pragma once

#include "store/backend/backend.h"
#include "store/reader.h"
#include "store/writer.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"

#define WORLD_SHARDS 3

struct world_kind {
    const char *name;
    const char *scheme; /* scheme of its URL */
    bool on_disk;       /* on disk or in a server: the store outlives its handle */
    enum report_layout layout;
    struct prealloc_options prealloc;
};

extern struct world_kind world_kinds[];
/* The number of kinds to test, which are the first of world_kinds: those without a server. If
 * TALLYD_TEST_MONGODB=mongodb://HOST:PORT names a server, the kinds in MongoDB instead; if TALLYD_TEST_KIND
 * names one of these, that kind only. */
size_t world_kind_count(void);
extern const struct world_kind *world_kind;
bool world_is_in_server(void);
/* The end of the times that cells of its reports can hold. */
int64_t world_end_ms(void);

struct world {
    struct clock clock; /* the system's, but for the monotonic time that the test let pass */
    char dir[64];       /* emptied and removed at the end */
    char url[160];      /* URL of the store */
    struct report reports[FIXTURE_COUNT];
    struct store *store; /* open for writing */
    struct batcher *batcher;
    int64_t next; /* offset at which the next batch of the source "access" begins */
};

/* Lets monotonic time pass for the store, so that nobody waits for it. */
void world_pass(struct world *w, int64_t ms);

int world_setup(void **state);
int world_teardown(void **state);

/* Closes the store, as the end of a process would, and opens it again; shards start anew with it. */
void world_reopen(struct world *w);
/* Applies the batcher's content as the next `bytes` of "access"; must succeed. */
void world_apply(struct world *w, int64_t bytes);
/* Counts one hit of `bytes` in shard 0. */
void world_hit(struct world *w, size_t report, const char *key, const char *at, int64_t bytes);

/* A measure, summed over the rows of a scan of [from_ms, to_ms). */
int64_t world_sum(struct store *st, size_t report, enum span resolution, struct series_set series,
                  int64_t from_ms, int64_t to_ms, size_t measure);
extern const struct series_set world_every_series;
struct series_set world_one_series(struct store *st, size_t report, const char *key);
/* 0: there is no such entry. */
int64_t world_book(struct store *st, const char *source, const char *report, const char *entry);
