/* fill.h - fills an empty store with the content of another one. `tallyd admin copy` does it
 * (backend/copy.h), on a STORE_FILL handle (store.h). Every function with a struct err may fail.
 *
 * Mark   : opened so, a store has a mark: until store_finish(), every command refuses it as an unfinished
 *          copy. Opening it for STORE_FILL again deletes what the unfinished copy left.
 * Exact  : counts, series, positions, books and expiry watermarks become those of the source, so counting
 *          goes on in the target where the source ended. Only the order of series may differ.
 * Newest : newest events (aggregate/recent.h) come in batches of their own, `of_newest`, of a cell for each
 *          series and day. Cells of other batches have none.
 * Expiry : the watermarks are given when the store is opened (store_options.watermarks). Cells before a
 *          watermark stand for whole longer buckets: the time buckets that have expired are left out.
 * Errors : those of store.h. EX_CANTCREAT, from store_open(): the target is not empty. EX_TEMPFAIL: another
 *          copy began into the same target.
 */
#pragma once

#include "aggregate/batch.h"
#include "store/store.h"

/* An entry of the books, as book_fn of reader.h lists it. */
struct store_book {
    const char *source, *partition; /* "": of the report itself */
    const char *entry;
    size_t report; /* index in store.reports; STORE_NO_REPORT: of the source itself */
    int64_t value;
};

#define STORE_NO_REPORT SIZE_MAX

/* The content of a store beside counts and series. */
struct store_content {
    const struct range *positions; /* from = to = the next offset to count */
    size_t position_count;
    const struct store_book *books; /* without expiry watermarks; those of one partition stand together */
    size_t book_count;
};

/* The filling operations of a kind of store. */
struct store_fill_ops {
    bool (*fill)(struct store *st, const struct batch *batch, struct err *e);
    bool (*finish)(struct store *st, const struct store_content *content, struct err *e);
};

/* Add the series and cells of a batch without ranges. Its parts may name the series `other` (batch.h). */
bool store_fill(struct store *st, const struct batch *batch, struct err *e) MUST_CHECK;
/* Write the rest, and take the mark away, in one step. Call it once, last. */
bool store_finish(struct store *st, const struct store_content *content, struct err *e) MUST_CHECK;
