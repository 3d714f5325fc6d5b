/* Reads the ledger together with the seats (docs/LEDGER.md, "One picture"). */
#include "base/clock.h"
#include "base/mem.h"
#include "store/mongo/handle/names.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* As long as many writers may claim, one after the other. A writer renews its lease every 20 s, and may be
 * silent for a minute. */
#define PICTURE_MS      30000
#define PICTURE_WAIT_MS 100

/* ---- slots */

/* A slot of the ledger, with what its seat says. `seat` NULL: it has none. */
static void append_slot(bson_t *writers, const char *name, const bson_t *slot, const bson_t *seat)
{
    bson_t to, part;
    bson_iter_t it;
    int64_t home = mongo_number_at(slot, "seq", 0), last = seat != NULL ? mongo_number_at(seat, "seq", 0) : 0;
    bool has_open = seat != NULL && bson_iter_init_find(&it, seat, "open");
    bson_append_document_begin(writers, name, -1, &to);
    bson_copy_to_excluding_noinit(slot, &to, "seq", "open", NULL);
    BSON_APPEND_INT64(&to, "home_seq", home);
    if (home > 0 || last > 0)
        BSON_APPEND_INT64(&to, "seq", home > last ? home : last);
    if (has_open || bson_iter_init_find(&it, slot, "open"))
        bson_append_iter(&to, "open", -1, &it);
    if (seat != NULL) {
        BSON_APPEND_DOCUMENT_BEGIN(&to, "seat", &part);
        bson_copy_to_excluding_noinit(seat, &part, "_id", "partitions", NULL);
        bson_append_document_end(&to, &part);
    }
    bson_append_document_end(writers, &to);
}

static void append_writers(bson_t *to, const bson_t *home, const struct mongo_seats *s)
{
    bson_iter_t at;
    bson_t writers, slot;
    if (!mongo_begin_members(home, "writers", &at))
        return;
    BSON_APPEND_DOCUMENT_BEGIN(to, "writers", &writers);
    while (mongo_next_document(&at, &slot)) {
        const size_t number = mongo_slot_number(bson_iter_key(&at));
        bool has = number < MONGO_SLOTS && s->has[number];
        append_slot(&writers, bson_iter_key(&at), &slot, has ? &s->list[number] : NULL);
    }
    bson_append_document_end(to, &writers);
}

/* A ledger of an older format has none: those that are there were left by an older version, which restored a
 * copy of its own. */
static bool read_seats(struct mongo_store *m, const bson_t *home, bool with_positions, struct mongo_seats *s,
                       struct err *e)
{
    return mongo_number_at(home, "v", 1) < MONGO_SEATS_FORMAT ||
           mongo_read_seats(m->client, with_positions, s, e);
}

bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    bson_t home;
    struct mongo_seats seats = {0};
    bson_init(ledger);
    bool good = mongo_read_home(m, &home, e);
    if (good && !bson_empty(&home)) {
        good = read_seats(m, &home, false, &seats, e);
        bson_copy_to_excluding_noinit(&home, ledger, "writers", NULL);
        append_writers(ledger, &home, &seats);
        mongo_seats_fini(&seats);
    }
    bson_destroy(&home);
    return good;
}

/* ---- positions */

/* The positions in seats, by partition. */
struct places {
    struct mongo_names keys;
    struct place {
        const char *slot;
        struct slice entry; /* bytes of a document, borrowed from the seat */
    } * list;      /* by number of the key from 1; several of one partition follow each other by `next` */
    size_t *next;  /* index of another place of the same partition, plus 1; 0: none */
    size_t *first; /* by number of the key: index of a place, plus 1 */
    size_t count, capacity, next_capacity, first_capacity;
};

static void add_places(struct places *p, const bson_t *seat)
{
    bson_iter_t at;
    for (bool more = mongo_begin_members(seat, "partitions", &at); more && bson_iter_next(&at);) {
        struct place one = {.slot = mongo_text_at(seat, "_id")};
        one.entry = mongo_bytes_of(&at);
        if (one.entry.len == 0)
            continue;
        size_t known = p->keys.count;
        uint32_t number = mongo_names_add(&p->keys, slice_text(bson_iter_key(&at)));
        p->list = xgrow(p->list, &p->capacity, p->count + 1, sizeof *p->list);
        p->next = xgrow(p->next, &p->next_capacity, p->count + 1, sizeof *p->next);
        p->first = xgrow(p->first, &p->first_capacity, number, sizeof *p->first);
        p->list[p->count] = one;
        p->next[p->count] = p->keys.count > known ? 0 : p->first[number - 1];
        p->first[number - 1] = ++p->count;
    }
}

static void places_fini(struct places *p)
{
    mongo_names_fini(&p->keys);
    free(p->list);
    free(p->next);
    free(p->first);
}

/* Finds the seat's entry that has the position of a partition. False: the ledger has it, or there is none. */
static bool best_of(const struct places *p, const char *key, const bson_t *partition, bson_t *position)
{
    uint32_t number = mongo_names_find(&p->keys, slice_text(key));
    int64_t best = mongo_number_at(partition, "held", 0);
    bool found = false;
    for (size_t i = number > 0 ? p->first[number - 1] : 0; i > 0; i = p->next[i - 1]) {
        const struct place *one = &p->list[i - 1];
        bson_t entry;
        if (!bson_init_static(&entry, (const uint8_t *)one->entry.ptr, one->entry.len))
            continue;
        int64_t held = mongo_number_at(&entry, "held", 0);
        if (held <= best || !mongo_is_from(partition, one->slot))
            continue;
        best = held;
        found = bson_init_static(position, (const uint8_t *)one->entry.ptr, one->entry.len);
    }
    return found;
}

static void append_partition(bson_t *partitions, const char *key, const bson_t *partition,
                             const bson_t *position)
{
    bson_t to;
    bson_append_document_begin(partitions, key, -1, &to);
    if (position == NULL) {
        bson_concat(&to, partition);
    } else {
        bson_copy_to_excluding_noinit(partition, &to, "next", "held", "label", "tail_hash", "tail_len",
                                      "latest_ms", "witnesses", NULL);
        bson_copy_to_excluding_noinit(position, &to, "fence", NULL);
    }
    bson_append_document_end(partitions, &to);
}

static void append_partitions(bson_t *to, const bson_t *home, const struct mongo_seats *s)
{
    bson_iter_t at;
    bson_t partitions, one;
    struct places places = {0};
    if (!mongo_begin_members(home, "partitions", &at))
        return;
    mongo_names_init(&places.keys);
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (s->has[i])
            add_places(&places, &s->list[i]);
    }
    BSON_APPEND_DOCUMENT_BEGIN(to, "partitions", &partitions);
    while (mongo_next_document(&at, &one)) {
        const char *key = bson_iter_key(&at);
        bson_t position;
        bool is_in_seat = best_of(&places, key, &one, &position);
        append_partition(&partitions, key, &one, is_in_seat ? &position : NULL);
    }
    bson_append_document_end(to, &partitions);
    places_fini(&places);
}

/* ---- one moment */

/* A hash of what changes when a position may move: epochs of claims, and what seats hold under them. */
static uint64_t sum_moves(const bson_t *document, uint64_t sum)
{
    static const char *const names[] = {"epoch", "held", "fence"};
    bson_iter_t at;
    bson_t one;
    bool more = mongo_begin_members(document, "partitions", &at);
    while (more && mongo_next_document(&at, &one)) {
        int64_t numbers[COUNT_OF(names)];
        for (size_t i = 0; i < COUNT_OF(names); i++)
            numbers[i] = mongo_number_at(&one, names[i], -1);
        sum = XXH3_64bits_withSeed(bson_iter_key(&at), strlen(bson_iter_key(&at)), sum);
        sum = XXH3_64bits_withSeed(numbers, sizeof numbers, sum);
    }
    return sum;
}

static uint64_t sum_all(const bson_t *home, const struct mongo_seats *s)
{
    uint64_t sum = sum_moves(home, 0);
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (s->has[i])
            sum = sum_moves(&s->list[i], sum + i + 1);
    }
    return sum;
}

/* A seat is there before the ledger names it, and the seats were read later. */
static bool are_there(const struct mongo_client *client, const bson_t *partition, const struct mongo_seats *s,
                      struct err *e)
{
    bson_iter_t at;
    for (bool more = mongo_begin_members(partition, "from", &at); more && bson_iter_next(&at);) {
        const char *slot = BSON_ITER_HOLDS_UTF8(&at) ? bson_iter_utf8(&at, NULL) : "";
        const size_t number = mongo_slot_number(slot);
        if (number < MONGO_SLOTS && !s->has[number])
            return mongo_miss_seat(client, slot, e);
    }
    return true;
}

static bool check_seats(const struct mongo_client *client, const bson_t *home, const struct mongo_seats *s,
                        struct err *e)
{
    bson_iter_t at;
    bson_t one;
    bool good = true, more = mongo_begin_members(home, "partitions", &at);
    while (good && more && mongo_next_document(&at, &one))
        good = are_there(client, &one, s, e);
    return good;
}

/* Reads the ledger and then all of the seats. The caller destroys both in any case. */
static bool read_once(struct mongo_store *m, bson_t *home, struct mongo_seats *s, struct err *e)
{
    bool good = mongo_read_home(m, home, e) && read_seats(m, home, true, s, e);
    for (size_t i = 0; good && i < MONGO_SLOTS; i++) {
        if (s->has[i])
            mongo_warn_if_full(m, &s->list[i]);
    }
    return good;
}

/* Writes them as one document. */
static bool put_together(const struct mongo_client *client, const bson_t *home, const struct mongo_seats *s,
                         bson_t *ledger, struct err *e)
{
    if (bson_empty(home))
        return true;
    bson_copy_to_excluding_noinit(home, ledger, "writers", "partitions", NULL);
    append_writers(ledger, home, s);
    append_partitions(ledger, home, s);
    return check_seats(client, home, s, e);
}

bool mongo_read_all(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    bson_t home;
    struct mongo_seats seats = {0};
    bson_init(ledger);
    bool good = read_once(m, &home, &seats, e) && put_together(m->client, &home, &seats, ledger, e);
    mongo_seats_fini(&seats);
    bson_destroy(&home);
    return good;
}

/* One reading follows the other at once. If something has moved in between, both are made anew, a little
 * later. */
bool mongo_read_picture(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    const int64_t until_ms = clock_mono_ms(m->store.clock) + PICTURE_MS;
    uint64_t last = 0;
    bool good = true, stands = false;
    bson_init(ledger);
    for (int i = 0; good && !stands && (i < 2 || clock_mono_ms(m->store.clock) < until_ms); i++) {
        bson_t home;
        struct mongo_seats seats = {0};
        if (i > 0 && i % 2 == 0)
            clock_sleep(PICTURE_WAIT_MS);
        good = read_once(m, &home, &seats, e);
        uint64_t moves = good ? sum_all(&home, &seats) : 0;
        stands = good && i > 0 && moves == last;
        last = moves;
        good = good && (!stands || put_together(m->client, &home, &seats, ledger, e));
        mongo_seats_fini(&seats);
        bson_destroy(&home);
    }
    return good && (stands ||
                    err_set_retryable(e, EX_TEMPFAIL,
                                      "%s: writers claim partitions from each other all the time: try again",
                                      mongo_client_name(m->client)));
}
