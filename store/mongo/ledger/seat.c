#include "store/mongo/ledger/seat.h"

#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

static bool see_seat(void *context, const bson_t *seat)
{
    struct mongo_seats *s = context;
    const size_t slot = mongo_slot_number(mongo_text_at(seat, "_id"));
    if (slot == MONGO_SLOTS)
        return true;
    if (s->has[slot])
        bson_destroy(&s->list[slot]);
    bson_copy_to(seat, &s->list[slot]);
    s->has[slot] = true;
    return true;
}

bool mongo_read_seats(struct mongo_client *client, bool with_positions, struct mongo_seats *s, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8("w"), "$lt", BCON_UTF8("x"), "}");
    bson_t *options =
        with_positions ? NULL : BCON_NEW("projection", "{", "partitions", BCON_BOOL(false), "}");
    memset(s->has, 0, sizeof s->has);
    return mongo_look(client, MONGO_LEDGER, filter, options, see_seat, s, e);
}

void mongo_seats_fini(struct mongo_seats *s)
{
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (s->has[i])
            bson_destroy(&s->list[i]);
    }
}

bool mongo_confirm(struct mongo_client *client, const char *id, bson_t *document, struct err *e)
{
    bson_t *query = BCON_NEW("_id", BCON_UTF8(id));
    bson_t *update = BCON_NEW("$unset", "{", "never", BCON_BOOL(true), "}");
    bool found;
    return mongo_modify(client, MONGO_LEDGER, query, update, &found, document, e);
}

bool mongo_seat_open(const bson_t *seat, const char *slot, struct mongo_open *o)
{
    snprintf(o->slot, sizeof o->slot, "%s", slot);
    o->is_home = false;
    o->seq = mongo_number_at(seat, "open.seq", -1);
    o->inc = mongo_number_at(seat, "open.inc", -1);
    o->prev = mongo_number_at(seat, "open.prev", o->seq - 1); /* older versions write no `prev` */
    o->bytes = mongo_number_at(seat, "open.bytes", -1);
    o->rolls_up = mongo_number_at(seat, "open.rolls_up", 0) != 0;
    o->is_roll_up = false;
    return o->seq >= 0;
}

bool mongo_miss_seat(const struct mongo_client *client, const char *slot, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "%s: its ledger says that document %s of collection %s has positions, and there is none: "
                   "restore the database from a backup",
                   mongo_client_name(client), slot, MONGO_LEDGER);
}

bool mongo_is_from(const bson_t *partition, const char *slot)
{
    bson_iter_t at;
    for (bool more = mongo_begin_members(partition, "from", &at); more && bson_iter_next(&at);) {
        if (BSON_ITER_HOLDS_UTF8(&at) && strcmp(bson_iter_utf8(&at, NULL), slot) == 0)
            return true;
    }
    return false;
}
