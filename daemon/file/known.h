/* known.h - what the store knows of files: how far each is counted, how it begins, and whether a daemon
 * follows it. The follower reads it before it looks for files, and notes what its batches change.
 *
 * Head   : a log is often seen first when it has one line, and its name in the store ("file:187:…") says no
 *          more than that line. So the position of a followed file also has the hash of its first
 *          IDENTITY_PREFIX_BYTES_MAX bytes, as its only witness: the number of bytes, and their hash.
 * State  : the book entry STORE_STATE_ENTRY: enum range_state, plus KNOWN_HOST times a number of the host
 *          whose daemon follows the file. Several hosts may count logs of one path into one database.
 * Memory : some 200 bytes a file, and its names.
 */
#pragma once

#include "base/index.h"
#include "ingest/file/identity.h"
#include "store/reader.h"

#define KNOWN_HOST RANGE_STATES

struct known_file {
    char *source, *label; /* its name in the store, and the path under which it was counted last; owned */
    int64_t to;           /* offset up to which it is counted */
    uint64_t tail_hash;   /* of the tail_len bytes before that */
    uint32_t tail_len;
    struct identity first; /* by its name; length 0: its name says nothing of its content */
    struct identity head;  /* of as many first bytes as the store knows */
    int64_t latest_ms;     /* of its last range (aggregate/batch.h) */
    enum range_state state;
    int64_t host; /* 0: any */
};

struct known {
    struct known_file *files;
    size_t count, capacity;
    struct index by_source;
};

bool known_read(struct known *k, struct store *st, struct err *e) MUST_CHECK;
/* A batch with this range was stored. */
void known_note(struct known *k, const struct range *r);
void known_fini(struct known *k);
/* NULL: the store has no such source. Valid until the next file is noted. */
struct known_file *known_find(const struct known *k, const char *source);
/* The empty range at the file's position. */
void known_range(const struct known_file *f, struct range *r);
