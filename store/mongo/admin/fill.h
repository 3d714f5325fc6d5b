/* mongo/admin/fill.h - fills an empty database with a copy of another store (store/fill.h), and tells whether
 * a database stood still while it was read (store_moment()). mongo/open.c calls it.
 *
 *   ledger    { …, restoring: { since: ISODate(…), copy: true }, writers: { w0: { inc, lease, … } } }
 *   reports   { _id: "pages" }   no more, until the copy is whole: by this its collections are found
 *
 * Mark   : writers refuse a ledger with `restoring`, and readers do. The last step takes `restoring` away and
 *          sets all positions, in one update.
 * Slot   : documents are written under the numbers of slot w0, as by a writer, without logs: a copy that was
 *          killed begins anew. The lease of w0 keeps a second copy off.
 * Errors : those of store/fill.h.
 */
#pragma once

#include "store/mongo/handle/handle.h"

struct store *mongo_open_fill(const char *uri, const struct store_options *options,
                              const struct report *reports, size_t report_count, struct err *e) MUST_CHECK;
/* Does the work of store_moment(). */
bool mongo_moment(struct store *st, struct text *moment, struct text *left_out, struct err *e) MUST_CHECK;
