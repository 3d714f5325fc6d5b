/* Are the documents of a batch newer than the ledger? For its own slot, the guard of every update checks
 * that. This file checks all slots, for the first batches after a claim, before they are logged. These
 * batches count again what was lost when a ledger was set back, whichever slot had counted it
 * (docs/LEDGER.md). */
#include "store/mongo/writer/torn.h"

#include "base/check.h"
#include "base/mem.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

#define ASKED_MAX 1000 /* documents of a collection that are checked in each batch */

/* Numbers of a slot in the ledger. Numbers above `seq`, and in a gap below it, were never used. */
struct numbers {
    int64_t seq;
    struct mongo_gap gaps[MONGO_GAPS];
    int64_t most; /* highest number above `seq` that was found in a document */
};

struct asking {
    struct mongo_store *m;
    struct numbers slots[MONGO_SLOTS];
    char collection[MONGO_NAME_BYTES]; /* "": none yet */
    struct mongo_ids ids;              /* of its documents */
    struct err *e;
    bool good;
    struct {
        char collection[MONGO_NAME_BYTES], id[256];
    } found[MONGO_SLOTS]; /* the document with `most` */
};

static void read_numbers(const bson_t *ledger, size_t i, struct numbers *n)
{
    n->seq = mongo_seq_of(ledger, mongo_slots[i]);
    mongo_gaps_of(ledger, mongo_slots[i], n->gaps);
}

static bool refuse(const struct asking *a, size_t i, int64_t seq)
{
    return mongo_refuse_document(a->m->client, a->found[i].collection, a->found[i].id, a->slots[i].most,
                                 mongo_slots[i], seq, a->e);
}

static void note(struct asking *a, size_t slot, int64_t number, const bson_t *document)
{
    a->slots[slot].most = number;
    snprintf(a->found[slot].collection, sizeof a->found[slot].collection, "%s", a->collection);
    snprintf(a->found[slot].id, sizeof a->found[slot].id, "%.200s", mongo_text_at(document, "_id"));
}

static bool see_document(void *context, const bson_t *document)
{
    struct asking *a = context;
    bson_iter_t at;
    for (bool more = mongo_begin_members(document, "applied", &at); more && bson_iter_next(&at);) {
        const size_t i = mongo_slot_number(bson_iter_key(&at));
        if (i == MONGO_SLOTS) /* a roll-up's */
            continue;
        const struct numbers *n = &a->slots[i];
        int64_t number = bson_iter_as_int64(&at);
        bool never = mongo_is_in_gap(n->gaps, number);
        if (never || (number > n->seq && number > n->most))
            note(a, i, number, document);
        if (never)
            return a->good = refuse(a, i, n->seq);
    }
    return true;
}

/* Reads the documents of the collection, if there is one yet. */
static bool ask(struct asking *a)
{
    if (a->collection[0] == '\0')
        return true;
    bson_t *options = BCON_NEW("projection", "{", "applied", BCON_BOOL(true), "}", "batchSize",
                               BCON_INT32((int32_t)a->ids.count));
    return mongo_look(a->m->client, a->collection, mongo_ids_end(&a->ids), options, see_document, a, a->e) &&
           a->good;
}

/* Adds the document of an update. In the log, documents of a collection stand together; the first ones most
 * likely exist. */
static bool add_update(void *context, const bson_t *update, struct err *e)
{
    struct asking *a = context;
    const char *of = mongo_text_at(update, "c");
    bson_iter_t id;
    (void)e;
    ASSERT(of[0] != '\0' && mongo_find_member(update, "f._id", &id) && BSON_ITER_HOLDS_UTF8(&id));
    if (strcmp(a->collection, of) != 0) {
        if (!ask(a))
            return false;
        snprintf(a->collection, sizeof a->collection, "%s", of);
        mongo_ids_begin(&a->ids, bson_new());
    }
    if (a->ids.count < ASKED_MAX)
        mongo_ids_add(&a->ids, slice_text(bson_iter_utf8(&id, NULL)));
    return true;
}

/* Takes the numbers of the slot's seat by an answer that is not old. */
static bool confirm_numbers(const struct asking *a, size_t i, struct numbers *n)
{
    bson_t seat;
    bool good = mongo_confirm(a->m->client, mongo_slots[i], &seat, a->e);
    int64_t seq = good ? mongo_number_at(&seat, "seq", 0) : 0;
    n->seq = seq > n->seq ? seq : n->seq;
    n->gaps[1].after = mongo_number_at(&seat, "gap.after", 0);
    n->gaps[1].before = mongo_number_at(&seat, "gap.before", 0);
    bson_destroy(&seat);
    return good;
}

/* Others count meanwhile: the ledger has by now what they had committed when a document was found. */
static bool check_most(struct asking *a)
{
    bson_t ledger;
    bool good = mongo_read_ledger(a->m, &ledger, a->e) && mongo_check_ledger(a->m, &ledger, a->e);
    for (size_t i = 0; good && i < MONGO_SLOTS; i++) {
        struct numbers now;
        int64_t most = a->slots[i].most;
        read_numbers(&ledger, i, &now);
        if (most > now.seq)
            good = confirm_numbers(a, i, &now);
        if (good && (most > now.seq || mongo_is_in_gap(now.gaps, most)))
            good = refuse(a, i, now.seq);
    }
    bson_destroy(&ledger);
    return good;
}

bool mongo_check_torn(struct mongo_store *m, struct err *e)
{
    struct asking *a = xcalloc(1, sizeof *a);
    bson_t ledger;
    a->m = m;
    a->e = e;
    bool good = a->good = mongo_read_ledger(m, &ledger, e) && mongo_check_ledger(m, &ledger, e);
    if (good) {
        for (size_t i = 0; i < MONGO_SLOTS; i++)
            read_numbers(&ledger, i, &a->slots[i]);
        good = mongo_log_each(text_slice(&m->batch.log.packed), add_update, a, e) &&
               mongo_log_each(text_slice(&m->batch.longer.packed), add_update, a, e) && ask(a) &&
               check_most(a);
    }
    bson_destroy(&ledger);
    free(a);
    return good;
}
