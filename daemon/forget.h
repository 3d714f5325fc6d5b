/* forget.h - takes a file's counts out of a store: counts the file's lines again up to its position, as they
 * were counted then, and takes the same cells out. `tallyd forget` calls it.
 *
 * Exact  : before anything is written, the books of the recount must equal the stored ones: lines, rejects by
 *          reason, events counted and filtered by each report. So decoding and filters are those of then.
 * Refused: a file that is away or was changed; a report that counted only a part of the file, or has min, max
 *          or last; late events, and series that went to `other`: nothing tells which ones.
 * Order  : the file is counted once, before anything is written. A server's store then takes it out piece by
 *          piece, each counted once more, from its end to its begin (store/forget.h). A packed file is read
 *          from its start for each piece.
 * Memory : one shard, as a thread of an import; some hundred bytes for each piece.
 */
#pragma once

#include "aggregate/books.h"
#include "config/config.h"
#include "store/reader.h"

#include <stdatomic.h>

struct forget {
    const struct config *config;       /* limits as when the file was counted */
    const struct position *position;   /* the source to forget */
    const char *path;                  /* where its lines are now */
    const struct decode *decode;       /* as when it was counted */
    const struct constants *constants; /* fields of its events; NULL: none */
    const atomic_bool *stop;           /* EX_TEMPFAIL once it is true; the same command resumes */
    bool dry_run;                      /* do everything but the commit */
    struct books books;                /* result: what was taken out; books_fini() frees it */
};

/* Pre: the handle is a STORE_WRITE one with every report of the store. */
bool forget_file(struct forget *f, struct store *st, struct err *e) MUST_CHECK;
