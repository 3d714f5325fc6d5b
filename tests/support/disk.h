/* disk.h - an SQLite store on a disk whose faults a test controls (fault_vfs.h): one file, and always the
 * same batches. */
#pragma once

#include "store/reader.h"
#include "store/writer.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"
#include "tests/support/model.h"
#include "tests/support/scratch.h"

#define DISK_BATCHES 6

extern struct scratch disk_scratch;
extern struct report disk_reports[FIXTURE_COUNT];
extern char disk_path[128], disk_url[160];

/* Setup and teardown of a group of tests; disk_clean() goes before each test: no faults, no file. */
int disk_setup(void **state);
int disk_teardown(void **state);
int disk_clean(void **state);

/* The path of a file beside the store's: `suffix` is "-wal", "-shm" or "-lock". A static buffer. */
const char *disk_beside(const char *suffix);
/* Opens the store at the URL `at` for writing; must succeed. */
struct store *disk_open(const char *at);
/* Adds batch `i`, always the same, to `b`, `m` or both (NULL: not to it). One batch covers three days, the
 * others two minutes. */
void disk_add_batch(struct batcher *b, struct model *m, int i);
/* Applies batch `i` to the store. `b` is empty before and afterwards. */
void disk_apply(struct store *st, struct batcher *b, int i);
/* Applies all batches, and folds the rows of the first three. */
void disk_fill(struct store *st);
/* Fails the test unless the store holds exactly the first `count` batches, in every resolution. */
void disk_check_counts(struct store *st, int count);
