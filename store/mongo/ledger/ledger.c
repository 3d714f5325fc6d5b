/* Reads the ledger (docs/LEDGER.md). */
#include "store/mongo/ledger/ledger.h"

#include "store/mongo/ledger/full.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

int64_t mongo_seq_of(const bson_t *ledger, const char *slot)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.seq", slot);
    return mongo_number_at(ledger, path, 0);
}

bool mongo_confirm_ledger(struct mongo_client *client, bson_t *ledger, struct err *e)
{
    bson_t *query = BCON_NEW("_id", MONGO_LEDGER);
    bson_t *update = BCON_NEW("$unset", "{", "never", BCON_BOOL(true), "}");
    bool found, good = mongo_modify(client, MONGO_LEDGER, query, update, &found, ledger, e);
    bson_destroy(query);
    bson_destroy(update);
    return good;
}

bool mongo_read_home(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    bool is_writer = m->writer.identity[0] != '\0';
    bool good = is_writer ? mongo_confirm_ledger(m->client, ledger, e)
                          : mongo_read_document(m->client, MONGO_LEDGER, MONGO_LEDGER, ledger, e);
    if (good)
        mongo_warn_if_full(m, ledger);
    return good;
}

/* The open batch of a slot: committed, and not done. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o)
{
    char path[64];
    bson_iter_t it;
    snprintf(path, sizeof path, "writers.%s.seat.open", slot);
    o->is_home = !mongo_find_member(ledger, path, &it);
    snprintf(path, sizeof path, "writers.%s.open.seq", slot);
    o->seq = mongo_number_at(ledger, path, -1);
    snprintf(path, sizeof path, "writers.%s.open.inc", slot);
    o->inc = mongo_number_at(ledger, path, -1);
    snprintf(path, sizeof path, "writers.%s.open.prev", slot);
    o->prev = mongo_number_at(ledger, path, o->seq - 1); /* older versions write no `prev` */
    snprintf(path, sizeof path, "writers.%s.open.bytes", slot);
    o->bytes = mongo_number_at(ledger, path, -1);
    snprintf(o->slot, sizeof o->slot, "%s", slot);
    return o->seq >= 0;
}

size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS])
{
    size_t count = 0;
    for (int i = 0; i < MONGO_SLOTS; i++)
        count += mongo_open_of(ledger, mongo_slots[i], &open[count]);
    return count;
}

/* A reader may have no right to write: it does without the confirmation. */
static bool read_seat(struct mongo_store *m, const char *slot, bson_t *seat, struct err *e)
{
    bool is_reader = m->store.writer == NULL && m->store.jobs == NULL;
    return is_reader ? mongo_read_document(m->client, MONGO_LEDGER, slot, seat, e)
                     : mongo_confirm_seat(m->client, slot, seat, e);
}

/* The place where it was open says whether it is. */
bool mongo_read_open(struct mongo_store *m, const struct mongo_open *of, struct mongo_open *now,
                     struct err *e)
{
    bson_t document;
    bool good = of->is_home ? mongo_read_home(m, &document, e) : read_seat(m, of->slot, &document, e);
    if (good && of->is_home)
        (void)mongo_open_of(&document, of->slot, now);
    else if (good)
        (void)mongo_seat_open(&document, of->slot, now);
    bson_destroy(&document);
    return good;
}
