/* mongo/job/drop.h - drops a generation of a report: its documents, its series, its part of books and jobs.
 *
 * Order  : the report in `reports` is marked (`dropping`), everything else is deleted, then the report. From
 *          the mark on readers do not see it, and writers refuse it (mongo/open.c). Scans under way fail,
 *          since nothing is deleted until their next look at the mark (mongo/doc/watermarks.h). A drop that
 *          was killed is finished by the next one.
 * Writers: refused while a writer lives that counts this generation.
 */
#pragma once

#include "store/forget.h"
#include "store/mongo/handle/handle.h"

/* store_drop() */
bool mongo_drop(struct store *st, const char *report, int generation, bool dry_run,
                struct store_dropped *dropped, struct err *e) MUST_CHECK;
/* Drop what collections there are of this key, which nobody reads. `report`: its sketches name some. */
bool mongo_drop_collections(struct mongo_store *m, const struct report *report, const char *key,
                            struct err *e) MUST_CHECK;
