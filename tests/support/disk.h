/* disk.h - an embedded store on a disk of which a test is the master: always the same batches, one file, and
 * fault_vfs.h below.
 */
#pragma once

#include "store/store.h"
#include "tests/support/batcher.h"
#include "tests/support/fixture.h"
#include "tests/support/model.h"
#include "tests/support/scratch.h"

#define DISK_BATCHES 6

extern struct scratch disk_scratch;
extern struct report disk_reports[FIXTURE_COUNT];
extern char disk_path[128], disk_url[160];

/* For a group of tests, and before each of them: no faults, no file. */
int disk_setup(void **state);
int disk_teardown(void **state);
int disk_clean(void **state);

/* The path of the file that SQLite or the store has beside it: "-wal", "-shm", "-lock". A static buffer. */
const char *disk_beside(const char *suffix);
/* The store `url` for writing; must be there. */
struct store *disk_open(const char *at);
/* Batch `i`, always the same, into either or both: most are live, one covers many hours. */
void disk_add_batch(struct batcher *b, struct model *m, int i);
/* Batch `i` into the store. `b` is empty before and afterwards. */
void disk_apply(struct store *st, struct batcher *b, int i);
/* All batches, with the rows of the first three folded. */
void disk_fill(struct store *st);
/* Does the store hold the first `count` batches, by every length of slot? */
void disk_check_counts(struct store *st, int count);
