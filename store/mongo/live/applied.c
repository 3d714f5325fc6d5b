#include "store/mongo/live/applied.h"

#include "store/mongo/ledger/ledger.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

void mongo_applied_add(struct mongo_applied *a, const bson_t *document)
{
    bson_iter_t of;
    for (bool more = mongo_begin_members(document, "applied", &of); more && bson_iter_next(&of);) {
        const size_t slot = mongo_slot_number(bson_iter_key(&of));
        const int64_t number = bson_iter_as_int64(&of);
        if (slot == MONGO_SLOTS)
            a->is_odd = true;
        else if (number > a->last[slot])
            a->last[slot] = number;
    }
}

bool mongo_applied_done(struct mongo_applied *a, struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        struct mongo_open open;
        const int64_t done = mongo_open_of(&ledger, slot, &open) ? open.prev : mongo_seq_of(&ledger, slot);
        if (done > a->last[i])
            a->last[i] = done;
    }
    bson_destroy(&ledger);
    return good;
}

bool mongo_applied_covers(const struct mongo_applied *a, const struct mongo_applied *b)
{
    bool covers = !a->is_odd && !b->is_odd;
    for (size_t i = 0; covers && i < MONGO_SLOTS; i++)
        covers = b->last[i] <= a->last[i];
    return covers;
}
