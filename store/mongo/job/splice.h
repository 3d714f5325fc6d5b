/* mongo/job/splice.h - has a report take the place of another one for a range of times (store/splice.h). The
 * result is a report of its own, a new generation of the other one, with collections of its own.
 *
 *   reports   { _id: "errors~2", name: "errors", generation: 2, dropping: true, … }     until it is whole
 *
 * Hidden : with `dropping`, readers and writers do not see it. If it is killed, the next one drops what is
 *          there, and takes the next generation: so no late request finds a collection of that name.
 *          If it fails it drops it itself.
 * Batches: the counts are batches without ranges: logged, committed, applied and recovered as any other.
 *          The books come last, then one update takes `dropping` away.
 * Writers: refused while another writer lives. If one comes meanwhile, the numbers of its slot show it.
 * Backups: refused while one is taken: it could have the report without its books, which no batch has. If one
 *          begins meanwhile, the ledger shows that, too.
 */
#pragma once

#include "store/mongo/handle/handle.h"
#include "store/splice.h"

/* Nothing is written yet: the caller may still refuse. */
bool mongo_splice_begin(struct store *st, const char *report, const struct watermarks *watermarks,
                        struct err *e) MUST_CHECK;
/* store_splice_end(). The report whose counts it had is dropped after the update, and so is the old
 * generation if that is wanted. Killed in between, `tallyd forget` drops them. */
bool mongo_splice_end(struct store *st, const struct store_book *books, size_t count, const char *by,
                      const char *report, bool drops_old, struct store_replaced *done,
                      struct err *e) MUST_CHECK;
/* Before the handle is closed: drop the result if it is still hidden. It stays, for the next call to drop, if
 * updates failed: one of them may arrive late. */
void mongo_splice_abort(struct mongo_store *m);
