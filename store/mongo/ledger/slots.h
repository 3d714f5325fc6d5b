/* mongo/ledger/slots.h - which slots of a ledger live, as far as one can tell: by their leases, and those of
 * this machine by their processes. */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_LEASE_MS   60000 /* a slot that was not heard of for so long is anybody's */
#define MONGO_HOST_BYTES 72

/* What a process id belongs to: this boot of this machine, and a namespace. Names of hosts are not unique. */
bool mongo_name_host(char buf[MONGO_HOST_BYTES]);

bool mongo_slot_lives(const bson_t *ledger, const char *slot, int64_t now_ms);
/* Does a writer that is not this process live in it, as far as one can tell? */
bool mongo_slot_is_others(const bson_t *ledger, const char *slot);
/* Is a writer heard of? Its slot. */
bool mongo_find_living(const bson_t *ledger, char slot[MONGO_SLOT_BYTES]);
/* The best one to take; false: all live. */
bool mongo_find_free(const bson_t *ledger, char slot[MONGO_SLOT_BYTES]);
