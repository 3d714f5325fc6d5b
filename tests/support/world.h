/* world.h - what a test of a store stands in: a fresh store of one kind, reports, and batches for it.
 *
 *   for each kind:  run the tests with world_setup() and world_teardown(), world_kind set before
 */
#pragma once

#include "store/backend/backend.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"

#define WORLD_SHARDS 3

struct world_kind {
    const char *name;
    const char *scheme; /* of its URL */
    bool on_disk;       /* or in a server: it outlives the handle */
    enum report_layout layout;
    struct prealloc_options prealloc;
};

extern struct world_kind world_kinds[];
/* The kinds without a server. If TALLYD_TEST_MONGODB=mongodb://HOST:PORT names one, the kinds in MongoDB
 * instead, and if TALLYD_TEST_KIND names a kind, that kind only. */
size_t world_kind_count(void);
extern const struct world_kind *world_kind;
bool world_is_in_server(void);
/* Cells of its reports hold times before this. */
int64_t world_end_ms(void);

struct world {
    char dir[64];  /* emptied and removed at the end */
    char url[160]; /* of the store */
    struct report reports[FIXTURE_COUNT];
    struct store *store; /* open for writing */
    struct batcher *batcher;
    int64_t next; /* of the source "access" */
};

int world_setup(void **state);
int world_teardown(void **state);

/* Close the store, as the end of a process would, and open it again; shards start anew with it. */
void world_reopen(struct world *w);
/* Apply what the batcher holds as the next `bytes` of "access"; must succeed. */
void world_apply(struct world *w, int64_t bytes);
/* Count one hit of `bytes` in shard 0. */
void world_hit(struct world *w, size_t report, const char *key, const char *at, int64_t bytes);

/* A measure, summed over what a scan of [from, to) brings. */
int64_t world_sum(struct store *st, size_t report, enum span slot, struct series_set series, int64_t from_ms,
                  int64_t to_ms, size_t measure);
extern const struct series_set world_every_series;
struct series_set world_one_series(struct store *st, size_t report, const char *key);
/* 0 where there is no such entry. */
int64_t world_book(struct store *st, const char *source, const char *report, const char *entry);
