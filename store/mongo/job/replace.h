/* mongo/job/replace.h - has a report take the place of another: it becomes its newest generation. The command
 * `tallyd backfill REPORT --take OLD` calls it.
 *
 *   reports   { _id: "again", name: "errors", generation: 2, … }     after it took the place of `errors`
 *
 * Atomic : one update of the report's document in `reports` gives it its new name and generation. Documents,
 *          books and jobs stay under the key that they had, since a collection cannot be renamed in the same
 *          step. A reader that was opened before it shows the old one, a later one the new one.
 * Key    : a new report that would get a key which is in use is refused (mongo/open.c).
 * Writers: refused while another writer lives. One that begins meanwhile counts in the generation that it
 *          found, and ends when it looks at `reports` the next time (mongo/ledger/peers.h).
 */
#pragma once

#include "store/forget.h"

/* store_replace(). The old generation is dropped by mongo_drop(), after the update. Killed in between,
 * `tallyd forget` drops it. */
bool mongo_replace(struct store *st, const char *by, const char *report, bool drops_old,
                   struct store_replaced *done, struct err *e) MUST_CHECK;
