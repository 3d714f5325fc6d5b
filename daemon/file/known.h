/* known.h - what the store knows of files: how far each is counted, how it begins, and whether a daemon
 * follows it. The follower reads it when it looks for files.
 *
 * Head   : a log is often seen first when it has one line, and its name in the store ("file:187:…") says no
 *          more than that line. So the position of a followed file also has the hash of its first
 *          IDENTITY_PREFIX_BYTES_MAX bytes, as its only witness: the number of bytes, and their hash.
 * State  : the book entry STORE_STATE_ENTRY: enum range_state, plus KNOWN_HOST times a number of the host
 *          whose daemon follows the file. Several hosts may count logs of one path into one database.
 */
#pragma once

#include "base/index.h"
#include "ingest/file/identity.h"
#include "store/reader.h"

#define KNOWN_HOST 256

struct known_file {
    struct range range;    /* `from` and `to`: up to there it is counted */
    struct identity first; /* by its name; length 0: its name says nothing of its content */
    struct identity head;  /* of as many first bytes as the store knows */
    enum range_state state;
    int64_t host; /* 0: any */
};

struct known {
    struct known_file *files;
    size_t count, capacity;
    struct index by_source;
};

bool known_read(struct known *k, struct store *st, struct err *e) MUST_CHECK;
void known_fini(struct known *k);
/* NULL: the store has no such source. */
struct known_file *known_find(const struct known *k, const char *source);
