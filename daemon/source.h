/* source.h - opens a file as a source: finds out which one it is, and goes on where the store says.
 *
 *   never seen           counted from its first byte
 *   seen, grown          counted from where it was left          (also after it was renamed or compressed)
 *   seen, no longer      nothing to count
 *   same path, new start another file under an old name: counted from its first byte, and said
 *   seen, now shorter, or changed before the position: refused (EX_DATAERR); --source-id counts it anew
 */
#pragma once

#include "ingest/file/reader.h"
#include "store/store.h"

struct source {
    struct input *in;
    struct reader *reader;
    struct range range; /* names it; `to` is where it goes on */
    bool is_known;      /* some of it was counted before */
    bool is_empty;      /* no byte yet, so no identity: nothing to do */
    char note[640];     /* for the user: what was recognised; "" for nothing special */
};

struct source_options {
    size_t line_max;
    enum last_line last_line;
    const char *source_id;         /* NULL: by content */
    const struct input *before;    /* NULL, or the file at this path whose place it took */
    const atomic_bool *stop;       /* NULL, or what interrupts a read */
    struct store *later_positions; /* NULL, or what was counted after `positions` (by a dry run) */
};

/* `positions` is where a store stands: asked only for its positions; NULL knows nothing. On failure nothing
 * stays open. */
bool source_open(struct source *src, const char *path, struct store *positions,
                 const struct source_options *options, struct err *e) MUST_CHECK;
void source_close(struct source *src);
/* The same, but for its input, which is the caller's from now on. */
struct input *source_leave(struct source *src);
