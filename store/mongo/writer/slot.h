/* mongo/writer/slot.h - the slot of this writer: taken, kept, given back (docs/LEDGER.md, "take"). */
#pragma once

#include "store/mongo/handle/handle.h"

/* Where there is none: take one that is free, and finish what is open in it. */
bool mongo_need_slot(struct mongo_store *m, struct err *e);
/* Until when the slot is ours in the eyes of those who look for one; 0 gives it back. No more than that: what
 * a slow writer may still do is decided by `inc`. */
bool mongo_set_lease(struct mongo_store *m, int64_t lease_ms, struct err *e);
/* Now and then: renews it, and finishes what writers that are gone have left open, if that can be done. */
bool mongo_keep_slot(struct mongo_store *m, struct err *e);
/* There are no snapshots; so nothing may be under way. */
bool mongo_hold(struct store *st, struct err *e);
