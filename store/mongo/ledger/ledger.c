#include "store/mongo/ledger/ledger.h"

#include "base/log.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

int64_t mongo_slot_at(const bson_t *ledger, const char *slot, const char *name, int64_t otherwise)
{
    char path[MONGO_SLOT_PATH_BYTES];
    return mongo_number_at(ledger, mongo_slot_path(slot, name, path), otherwise);
}

int64_t mongo_seq_of(const bson_t *ledger, const char *slot)
{
    return mongo_slot_at(ledger, slot, "seq", 0);
}

bool mongo_seat_of(const bson_t *ledger, const char *slot, bson_t *seat)
{
    char path[MONGO_SLOT_PATH_BYTES];
    return mongo_find_document(ledger, mongo_slot_path(slot, "seat", path), seat);
}

bool mongo_is_in_gap(const struct mongo_gap gaps[MONGO_GAPS], int64_t number)
{
    bool is = false;
    for (int i = 0; i < MONGO_GAPS; i++)
        is |= number > gaps[i].after && number < gaps[i].before;
    return is;
}

void mongo_gaps_of(const bson_t *ledger, const char *slot, struct mongo_gap gaps[MONGO_GAPS])
{
    static const struct {
        const char *after, *before, *last;
    } names[MONGO_GAPS] = {{"gap.after", "gap.before", "home_seq"},
                           {"seat.gap.after", "seat.gap.before", "seat.seq"}};
    for (int i = 0; i < MONGO_GAPS; i++) {
        const int64_t last = mongo_slot_at(ledger, slot, names[i].last, 0);
        gaps[i].after = mongo_slot_at(ledger, slot, names[i].after, 0);
        gaps[i].before = mongo_slot_at(ledger, slot, names[i].before, 0);
        if (last > gaps[i].after &&
            last < gaps[i].before) /* an older version, which knows no gaps, used it */
            gaps[i].before = gaps[i].after;
    }
}

/* ---- a document that is nearly full */

/* Only files that have ended leave the ledger. A seat has what its writer counts. */
static const char *advice(bool is_seat)
{
    return is_seat ? "have other daemons count some of the partitions and files of this writer"
                   : "have further logs counted into another database";
}

void mongo_warn_if_full(struct mongo_store *m, const bson_t *document)
{
    struct text store = {0};
    char quoted[LOG_QUOTE_BYTES];
    const char *id = mongo_text_at(document, "_id");
    bool is_seat = strcmp(id, MONGO_LEDGER) != 0;
    bool *has_told = is_seat ? &m->has_told_seat : &m->has_told_ledger;
    if (document->len < MONGO_LEDGER_BYTES_FULL || *has_told || (is_seat && strcmp(id, m->writer.slot) != 0))
        return;
    text_url(&store, slice_text(m->uri));
    log_warn("ledger_nearly_full", "store=%s document=%s bytes=%u limit=%zu next=\"at the limit %s: %s\"",
             log_quote(store.ptr, quoted), id, document->len, MONGO_LEDGER_BYTES_MAX,
             is_seat ? "this writer counts nothing more" : "no writer claims anything more", advice(is_seat));
    text_fini(&store);
    *has_told = true;
}

bool mongo_explain_full(struct mongo_store *m, const char *id, struct err *e)
{
    bson_t document;
    struct err ignored;
    if (e->code != EX_IOERR || e->retryable)
        return false;
    bool is_full = mongo_read_document(m->client, MONGO_LEDGER, id, &document, &ignored) &&
                   document.len >= MONGO_LEDGER_BYTES_FULL;
    if (is_full)
        err_prefix(e, "document %s of collection %s has %u of %zu bytes: %s", id, MONGO_LEDGER, document.len,
                   MONGO_LEDGER_BYTES_MAX, advice(strcmp(id, MONGO_LEDGER) != 0));
    bson_destroy(&document);
    return false;
}

/* ---- reading */

bool mongo_read_home(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    bool is_writer = m->writer.identity[0] != '\0';
    bool good = is_writer ? mongo_confirm(m->client, MONGO_LEDGER, ledger, e)
                          : mongo_read_document(m->client, MONGO_LEDGER, MONGO_LEDGER, ledger, e);
    if (good)
        mongo_warn_if_full(m, ledger);
    return good;
}

/* The open batch of a slot: committed, and not done. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o)
{
    char path[64];
    bson_t own = BSON_INITIALIZER;
    bson_iter_t it;
    snprintf(path, sizeof path, "writers.%s", slot);
    (void)mongo_find_document(ledger, path, &own);
    bool is_open = mongo_seat_open(&own, slot, o);
    o->is_home = !mongo_find_member(&own, "seat.open", &it);
    return is_open;
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
                     : mongo_confirm(m->client, slot, seat, e);
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
