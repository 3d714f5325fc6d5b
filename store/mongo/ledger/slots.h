/* mongo/ledger/slots.h - which slots of a ledger are alive: by their leases; on this machine also by their
 * processes. The answer is a guess that the protocol does not rely on.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_LEASE_MS   60000 /* a slot whose lease is older may be taken by anybody */
#define MONGO_HOST_BYTES 72

/* The namespace of a process id: this boot of this machine, and its pid namespace. Host names are not
 * unique. */
bool mongo_name_host(char buf[MONGO_HOST_BYTES]);

bool mongo_slot_lives(const bson_t *ledger, const char *slot, int64_t now_ms);
/* Is the slot alive, with a writer in another process? */
bool mongo_slot_is_others(const struct mongo_store *m, const bson_t *ledger, const char *slot);
/* Finds a slot that is alive. NULL: none. */
const char *mongo_find_living(const struct mongo_store *m, const bson_t *ledger);
/* Finds the best slot to take. False: all are alive. */
bool mongo_find_free(const struct mongo_store *m, const bson_t *ledger, char slot[MONGO_SLOT_BYTES]);
/* Sets the lease of the own slot; 0 gives the slot back. */
bool mongo_set_lease(struct mongo_store *m, int64_t lease_ms, struct err *e) MUST_CHECK;
/* Renews it now and then, during work that lasts. */
bool mongo_renew_lease(struct mongo_store *m, struct err *e) MUST_CHECK;
