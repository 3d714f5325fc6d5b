/* splice.h - has a report take the place of another one for a range of times only: it keeps the other one's
 * counts before and after. `tallyd backfill NEW --take OLD --from --to` calls it by way of backend/splice.h,
 * on a STORE_WRITE handle that has the report NEW alone. Every function may fail.
 *
 * Begin  : the counts of the report are set aside. From then on store_fill() adds counts (fill.h). The caller
 *          reads positions and books afterwards: the end fails if another writer counted since.
 * Commit : nobody sees any of it before store_splice_end() returns. After an error the caller closes the
 *          handle: nothing was changed.
 * Killed : as if it had never begun. In a server the next call deletes what is left.
 * Errors : those of store_replace() (forget.h). EX_TEMPFAIL: another writer lives, or has counted since.
 *          EX_UNAVAILABLE: this kind of store cannot do it.
 */
#pragma once

#include "store/fill.h"
#include "store/forget.h"

struct store_splice_ops {
    bool (*begin)(struct store *st, const char *report, const struct watermarks *watermarks, struct err *e);
    bool (*end)(struct store *st, const struct store_book *books, size_t count, const char *by,
                const char *report, bool drops_old, struct store_replaced *done, struct err *e);
};

/* `report`: the one whose place it takes. `watermarks`: the report's expiry watermarks from then on. */
bool store_splice_begin(struct store *st, const char *report, const struct watermarks *watermarks,
                        struct err *e) MUST_CHECK;
/* Set these entries of the report's books, then do what store_replace() does. */
bool store_splice_end(struct store *st, const struct store_book *books, size_t count, const char *by,
                      const char *report, bool drops_old, struct store_replaced *done,
                      struct err *e) MUST_CHECK;
