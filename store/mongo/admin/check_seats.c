/* Do the ledger and its seats belong together? Writers go on meanwhile. So the order of reading decides what
 * may be compared: an incarnation and an epoch are raised in the ledger before the seat has them, and a seat
 * is there before the ledger names it.
 */
#include "store/mongo/admin/check_seats.h"

#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>

struct seating {
    const struct mongo_problems *problems;
    bson_t home;               /* the ledger itself */
    struct mongo_seats before; /* read before it */
    struct mongo_seats after;  /* read after it, without partitions */
};

/* The epochs of a file begin again while its position comes back from `past`. */
static bool has_lasting_epoch(const bson_t *partition)
{
    return mongo_text_at(partition, "partition")[0] != '\0';
}

/* Compares an entry of a seat with the ledger's partition. */
static void check_entry(const struct seating *s, const char *slot, const bson_iter_t *at)
{
    const char *key = bson_iter_key(at);
    bson_t entry, partitions, partition;
    bson_iter_t it;
    if (!mongo_take_document(at, &entry)) {
        mongo_tell(s->problems, "ledger: the partition \"%s\" of seat %s is not a document", key, slot);
        return;
    }
    const int64_t held = mongo_number_at(&entry, "held", 0), fence = mongo_number_at(&entry, "fence", 0);
    if (mongo_number_at(&entry, "next", 0) < 0 || held < 0 || fence < held)
        mongo_tell(
            s->problems,
            "ledger: the partition \"%s\" of seat %s has a negative offset, or was counted without a claim",
            key, slot);
    if (!mongo_find_document(&s->home, "partitions", &partitions) ||
        !bson_iter_init_find(&it, &partitions, key) || !mongo_take_document(&it, &partition) ||
        !has_lasting_epoch(&partition))
        return;
    const int64_t epoch = mongo_number_at(&partition, "epoch", 0);
    if (fence > epoch)
        mongo_tell(s->problems,
                   "ledger: the partition \"%s\" was claimed %" PRId64 " times by seat %s, and %" PRId64
                   " times by the ledger: the seat is newer than the ledger",
                   key, fence, slot, epoch);
}

static void check_seat(const struct seating *s, size_t number)
{
    const bson_t *seat = &s->before.list[number];
    const char *slot = mongo_slots[number];
    bson_iter_t all, at;
    const int64_t inc = mongo_number_at(seat, "inc", 0), known = mongo_slot_at(&s->home, slot, "inc", -1);
    if (inc <= 0)
        mongo_tell(s->problems, "ledger: seat %s has no incarnation", slot);
    else if (known < 0)
        mongo_tell(s->problems, "ledger: seat %s is of a writer that the ledger does not know", slot);
    else if (inc > known)
        mongo_tell(s->problems,
                   "ledger: seat %s was taken by incarnation %" PRId64
                   ", and the ledger's last one is %" PRId64 ": the seat is newer than the ledger",
                   slot, inc, known);
    if (!bson_iter_init_find(&all, seat, "partitions"))
        return;
    if (!BSON_ITER_HOLDS_DOCUMENT(&all) || !bson_iter_recurse(&all, &at)) {
        mongo_tell(s->problems, "ledger: the partitions of seat %s are not a document", slot);
        return;
    }
    while (bson_iter_next(&at))
        check_entry(s, slot, &at);
}

/* Checks that the seats are there which the ledger names. */
static void check_from(const struct seating *s, const char *key, const bson_t *partition)
{
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (!s->after.has[i] && mongo_is_from(partition, mongo_slots[i]))
            mongo_tell(
                s->problems,
                "ledger: seat %s is missing, which may have the position of partition \"%s\": restore the "
                "database from a backup",
                mongo_slots[i], key);
    }
}

static void check_all(const struct seating *s)
{
    bson_iter_t at;
    bson_t partition;
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (s->before.has[i])
            check_seat(s, i);
    }
    for (bool more = mongo_begin_members(&s->home, "partitions", &at); more && bson_iter_next(&at);) {
        if (mongo_take_document(&at, &partition))
            check_from(s, bson_iter_key(&at), &partition);
    }
}

bool mongo_check_seats(struct mongo_store *m, const struct mongo_problems *problems, struct err *e)
{
    struct seating s = {.problems = problems};
    bool good = mongo_read_seats(m->client, true, &s.before, e);
    if (good) {
        good = mongo_read_home(m, &s.home, e) && mongo_read_seats(m->client, false, &s.after, e);
        if (good && mongo_number_at(&s.home, "v", 1) >= MONGO_SEATS_FORMAT)
            check_all(&s);
        bson_destroy(&s.home);
    }
    mongo_seats_fini(&s.after);
    mongo_seats_fini(&s.before);
    return good;
}
