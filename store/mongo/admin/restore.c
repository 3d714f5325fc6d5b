/* Restores a copy of a database (mongo/admin/copy.h): documents, then the logs of the batches that some of
 * them lack, and last the ledger, without which nobody counts.
 *
 * Seats  : they know no epoch of the database. So after the mark, `inc` of each slot that has a seat is
 *          raised, in the ledger and then in the seat: no earlier writer commits from then on. At the end
 *          seats are replaced before the ledger, without positions: the ledger of a copy has all of them.
 * Retry  : an interrupted restore leaves `restoring` in the ledger, which keeps daemons off. Restore again,
 *          with --force.
 * Derived: years and weeks may be older than the months and days that they are made of. So all of them are
 *          noted as not rolled up: the job sets them again, with a fence above that of every document. A
 *          cached ranking stays: its own document says which batches it covers.
 */
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "store/mongo/admin/backup.h"
#include "store/mongo/admin/copy.h"
#include "store/mongo/admin/dump.h"
#include "store/mongo/job/merge.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>

#define TRIES        5
#define TRY_AGAIN_MS 500

/* Documents that are being inserted into one collection. */
struct loading {
    struct mongo_place place;
    bson_t documents; /* an array */
    uint32_t count;
    size_t bytes;
};

struct restoring {
    const struct backup *b;
    struct mongo_store *m;
    struct mongo_dump dump;
    struct loading loading;
    uint64_t documents, total;
    size_t batches;
    bool was_marked;            /* `restoring` was there, of a restore that did not end */
    int64_t epoch;              /* epoch of the ledger: before the mark, then as the mark set it */
    int64_t inc;                /* above each incarnation that the database had when it was marked */
    int64_t seats[MONGO_SLOTS]; /* by slot, incarnation of its seat; 0: it has none */
    int64_t rolled_up;          /* highest fence in documents of years and weeks */
    struct mongo_open log;      /* the batch whose log is being read; seq 0: none */
    struct text packed, longer;
    bool only_checks; /* logs are checked, and not applied: nothing is dropped yet */
    struct err *e;
};

static bool goes_on(const struct restoring *r, const char *what)
{
    return r->b->goes_on(r->b->context, what, r->documents, r->total) || backup_stopped("the restore", r->e);
}

/* A backup of an older version that was taken while a newer one began to count: it has no seats, and no logs
 * of theirs. */
static bool check_ledger(void *context, const bson_t *copied, struct err *e)
{
    const struct restoring *r = context;
    return r->dump.format >= MONGO_DUMP_SEATS || mongo_number_at(copied, "v", 1) < MONGO_SEATS_FORMAT ||
           err_set(e, EX_DATAERR,
                   "%s is of an older version of tallyd, and was taken while a later one counted: it is not "
                   "whole; restore another one",
                   r->b->path);
}

/* ---- nobody may count meanwhile */

/* Refuses a database that a daemon counts into, or that has counts, without --force. Without a ledger no
 * daemon runs. */
static bool check_target(struct restoring *r)
{
    char found[MONGO_NAME_BYTES];
    const char *living;
    bson_t ledger;
    if (!mongo_find_owned(r->m, &r->dump, found, r->e))
        return false;
    bool good = mongo_read_home(r->m, &ledger, r->e);
    r->was_marked = good && bson_has_field(&ledger, "restoring");
    r->epoch = good ? mongo_number_at(&ledger, "epoch", 0) : 0;
    if (good && (living = mongo_find_living(r->m, &ledger)) != NULL)
        good = err_set_retryable(r->e, EX_TEMPFAIL,
                                 "%s: a tallyd counts into it (writer %s of its ledger): stop all daemons, "
                                 "and wait a minute if one was killed",
                                 mongo_client_name(r->m->client), living);
    if (good && found[0] != '\0' && !r->b->force)
        good =
            err_set(r->e, EX_CANTCREAT,
                    "%s contains counts already (%s): name another database, or give --force to replace them",
                    mongo_client_name(r->m->client), found);
    bson_destroy(&ledger);
    return good;
}

/* Leaves `restoring` of an interrupted restore: its database is not whole. */
static bool refuse_newcomer(struct restoring *r)
{
    return (r->was_marked ||
            mongo_change(r->m->client, MONGO_LEDGER, BCON_NEW("_id", MONGO_LEDGER),
                         BCON_NEW("$unset", "{", "restoring", "", "}"), false, NULL, r->e)) &&
           err_set_retryable(r->e, EX_TEMPFAIL, "%s: a tallyd has just begun to count into it: stop it",
                             mongo_client_name(r->m->client));
}

/* Notes which slots have seats, and an incarnation above all of them. */
static bool note_seats(struct restoring *r, const bson_t *ledger)
{
    struct mongo_seats seats;
    bool good = mongo_read_seats(r->m->client, false, &seats, r->e);
    r->inc = clock_wall_ms(r->m->store.clock);
    for (int i = 0; i < MONGO_SLOTS; i++) {
        const int64_t inc = mongo_slot_at(ledger, mongo_slots[i], "inc", 0);
        r->seats[i] = seats.has[i] ? mongo_number_at(&seats.list[i], "inc", 1) : 0;
        const int64_t highest = inc > r->seats[i] ? inc : r->seats[i];
        r->inc = r->inc > highest ? r->inc : highest + 1;
    }
    mongo_seats_fini(&seats);
    return good;
}

/* The ledger's incarnation of a slot is never below that of its seat. */
static bool raise_seats(struct restoring *r)
{
    bson_t least = BSON_INITIALIZER;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        char path[MONGO_SLOT_PATH_BYTES];
        if (r->seats[i] > 0)
            BSON_APPEND_INT64(&least, mongo_slot_path(mongo_slots[i], "inc", path), r->inc);
    }
    bool good = bson_empty(&least) ||
                (mongo_change(r->m->client, MONGO_LEDGER, BCON_NEW("_id", MONGO_LEDGER),
                              BCON_NEW("$max", BCON_DOCUMENT(&least)), false, NULL, r->e) &&
                 mongo_change_all(r->m->client, MONGO_LEDGER, BCON_NEW("_id", "{", "$ne", MONGO_LEDGER, "}"),
                                  BCON_NEW("$max", "{", "inc", BCON_INT64(r->inc), "}"), NULL, r->e));
    bson_destroy(&least);
    return good;
}

/* From here on no slot can be taken. By the new epoch, earlier writers cannot write to the ledger any more,
 * such as one that slept. The lease shows a writer that took a slot meanwhile. */
static bool mark_ledger(struct restoring *r)
{
    int64_t now_ms = clock_wall_ms(r->m->store.clock);
    r->epoch = now_ms > r->epoch ? now_ms : r->epoch + 1;
    bson_t ledger = BSON_INITIALIZER;
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER);
    bson_t *update = BCON_NEW("$set", "{", "restoring", "{", "since", BCON_DATE_TIME(now_ms), "}", "epoch",
                              BCON_INT64(r->epoch), "}");
    bool good = mongo_change(r->m->client, MONGO_LEDGER, filter, update, true, NULL, r->e) &&
                mongo_read_home(r->m, &ledger, r->e);
    good = good && (mongo_find_living(r->m, &ledger) == NULL || refuse_newcomer(r));
    good = good && note_seats(r, &ledger) && raise_seats(r);
    bson_destroy(&ledger);
    return good;
}

/* ---- documents */

/* Translates a place to the database that is restored into. */
static bool translate(const struct restoring *r, const struct mongo_place *from, struct mongo_place *to)
{
    *to = *from;
    int n = snprintf(to->database, sizeof to->database, "%s%s", mongo_client_database(r->m->client),
                     from->database + strlen(r->dump.database));
    return (n > 0 && n < (int)sizeof to->database) ||
           err_set(r->e, EX_USAGE, "%s%s is too long for the name of a database",
                   mongo_client_database(r->m->client), from->database + strlen(r->dump.database));
}

static void begin_load(struct restoring *r)
{
    bson_init(&r->loading.documents);
    r->loading.count = 0;
    r->loading.bytes = 0;
}

static bool has_duplicate(const bson_t *reply)
{
    bson_iter_t at, code;
    bool has = false, more = mongo_begin_members(reply, "writeErrors", &at);
    while (more && !has && bson_iter_next(&at))
        has = mongo_find_in(&at, "code", &code) && bson_iter_as_int64(&code) == MONGO_DUPLICATE_KEY;
    return has;
}

/* Sends the documents again if no reply came: those that exist by then are ours. */
static bool send_load(struct restoring *r)
{
    struct loading *l = &r->loading;
    bool good = false;
    for (int tries = 0; !good && tries < TRIES; tries++) {
        bson_t reply;
        if (tries > 0)
            clock_sleep(TRY_AGAIN_MS);
        bson_t *command = BCON_NEW("insert", BCON_UTF8(l->place.collection), "ordered", BCON_BOOL(false),
                                   "documents", BCON_ARRAY(&l->documents));
        good = mongo_write_in(r->m->client, l->place.database, command, NULL, &reply, r->e);
        bool goes_again = !good && r->e->retryable;
        if (good && tries == 0 && has_duplicate(&reply))
            good = err_set(
                r->e, EX_TEMPFAIL,
                "%s: another program writes into %s while it is restored: stop all daemons and restore again",
                mongo_client_name(r->m->client), l->place.collection);
        else if (good)
            good = mongo_check_inserts(r->m->client, &reply, l->place.collection, r->e);
        bson_destroy(&reply);
        bson_destroy(command);
        if (!good && !goes_again)
            break;
    }
    bson_destroy(&l->documents);
    begin_load(r);
    return good;
}

static bool load_document(void *context, const bson_t *document, struct err *e)
{
    struct restoring *r = context;
    struct loading *l = &r->loading;
    char room[MONGO_KEY_BYTES];
    (void)e; /* it is r->e */
    bool is_full = l->count == r->m->limits.updates || l->bytes + document->len > r->m->limits.bytes;
    if (l->count > 0 && is_full && !(send_load(r) && goes_on(r, l->place.collection)))
        return false;
    bson_append_document(&l->documents, mongo_array_key(l->count++, room), -1, document);
    l->bytes += document->len;
    r->documents++;
    int64_t rolled_up = mongo_number_at(document, MONGO_ROLL_APPLIED, 0);
    r->rolled_up = rolled_up > r->rolled_up ? rolled_up : r->rolled_up;
    return true;
}

/* Makes capped collections, which must be capped from the beginning. Daemons make validators. */
static bool create_capped(struct restoring *r, const struct mongo_place *place, const bson_t *metadata)
{
    bson_t command = BSON_INITIALIZER;
    bson_iter_t it;
    static const char *const options[] = {"capped", "size", "max"};
    if (!mongo_find_member(metadata, "options.capped", &it) || !bson_iter_as_bool(&it))
        return true;
    BSON_APPEND_UTF8(&command, "create", place->collection);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        char path[32];
        snprintf(path, sizeof path, "options.%s", options[i]);
        if (mongo_find_member(metadata, path, &it))
            bson_append_iter(&command, options[i], -1, &it);
    }
    return mongo_run(r->m->client, place->database, &command, 0, r->e);
}

static bool load_collection(struct restoring *r, const struct mongo_dump_entry *entry)
{
    bson_t metadata;
    bool good = translate(r, &entry->place, &r->loading.place) && goes_on(r, r->loading.place.collection);
    if (!good)
        return false;
    good = mongo_dump_read_metadata(&r->dump, entry, &metadata, r->e) &&
           create_capped(r, &r->loading.place, &metadata);
    bson_destroy(&metadata);
    if (!good)
        return false;
    begin_load(r);
    good =
        mongo_dump_read(&r->dump, entry, load_document, r, r->e) && (r->loading.count == 0 || send_load(r));
    bson_destroy(&r->loading.documents);
    return good;
}

static bool is_special(const struct mongo_dump_entry *entry)
{
    static const char *const names[] = {MONGO_LEDGER, MONGO_BATCHES, MONGO_REPORTS, NULL};
    return slice_find(slice_text(entry->place.collection), names) >= 0;
}

static bool load_all(struct restoring *r)
{
    bool good = true;
    for (size_t i = 0; good && i < r->dump.count; i++)
        good = is_special(&r->dump.list[i]) || load_collection(r, &r->dump.list[i]);
    return good;
}

/* ---- the batches that were counted during the backup */

/* Applies a log as a recovery does: a document that was copied late enough already has it. Logs follow each
 * other, so a higher number in a document is as good. */
static bool carry_out(struct restoring *r)
{
    const struct slice packed = text_slice(&r->packed);
    r->log.prev = -1;
    const bool has_longer = r->longer.len > 0;
    bool good =
        r->only_checks
            ? (mongo_log_check(packed, r->e) &&
               (!has_longer || mongo_log_check(text_slice(&r->longer), r->e))) ||
                  err_prefix(r->e, "the log of a batch in the backup, of slot %s: take another backup",
                             r->log.slot)
            : mongo_send(r->m, &r->log, packed, r->e) &&
                  (!has_longer || mongo_send(r->m, &r->log, text_slice(&r->longer), r->e)) &&
                  goes_on(r, MONGO_BATCHES);
    text_clear(&r->packed);
    text_clear(&r->longer);
    r->batches += !r->only_checks;
    return good;
}

static bool take_part(void *context, const bson_t *document, struct err *e)
{
    struct restoring *r = context;
    struct mongo_open log;
    unsigned part;
    if (!mongo_parse_batch_id(mongo_text_at(document, "_id"), &log, &part))
        return err_set(e, EX_DATAERR, "the backup has a batch of no name: take another backup");
    if (part == 0 && r->packed.len > 0 && !carry_out(r))
        return false;
    r->log = log;
    mongo_log_add_part(document, "zstd", &r->packed);
    mongo_log_add_part(document, "longer", &r->longer);
    return true;
}

static bool apply_batches(struct restoring *r)
{
    const struct mongo_dump_entry *entry = mongo_dump_find(&r->dump, r->dump.database, MONGO_BATCHES);
    return entry == NULL ||
           (mongo_dump_read(&r->dump, entry, take_part, r, r->e) && (r->packed.len == 0 || carry_out(r)));
}

/* ---- derived documents, and the rest */

/* Resets jobs: no leases, nothing rolled up, and the next fence above that of every document. */
static bool reset_jobs(struct restoring *r)
{
    int64_t now_ms = clock_wall_ms(r->m->store.clock);
    int64_t fence = now_ms > r->rolled_up ? now_ms : r->rolled_up + 1;
    bool good = mongo_change_all(r->m->client, MONGO_JOBS, bson_new(),
                                 BCON_NEW("$unset", "{", "owner", "", "until", "", "}"), NULL, r->e);
    for (size_t t = 0; good && t < MONGO_TARGETS; t++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "%s/", mongo_targets[t].job);
        snprintf(to, sizeof to, "%s0", mongo_targets[t].job); /* sorts behind "/" */
        bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
        bson_t *update =
            BCON_NEW("$unset", "{", "rolled", "", "}", "$max", "{", "fence", BCON_INT64(fence), "}");
        if (t == MONGO_WEEKS)
            BCON_APPEND(update, "$set", "{", "stale", BCON_BOOL(true), "}");
        good = mongo_change_all(r->m->client, MONGO_JOBS, filter, update, NULL, r->e);
    }
    return good;
}

/* Replaces a report that a daemon registered before it was refused, which has no watermarks. Leaves `swept`
 * out: documents that were copied earlier may still have swept buckets. */
static bool put_report(void *context, const bson_t *document, struct err *e)
{
    struct restoring *r = context;
    bson_t filter = BSON_INITIALIZER, report = BSON_INITIALIZER;
    bson_iter_t id;
    if (bson_iter_init_find(&id, document, "_id"))
        bson_append_iter(&filter, "_id", -1, &id);
    bson_copy_to_excluding_noinit(document, &report, "swept", NULL);
    bool good = mongo_change(r->m->client, MONGO_REPORTS, &filter, &report, true, NULL, e);
    r->documents++;
    return good;
}

/* Makes the indexes as they were. If the server refuses one, that is logged: counting does not need it. */
static bool make_indexes(struct restoring *r, const struct mongo_dump_entry *entry)
{
    bson_t metadata, command = BSON_INITIALIZER, list, one, index;
    bson_iter_t at;
    uint32_t count = 0;
    struct mongo_place place;
    char quoted[LOG_QUOTE_BYTES];
    if (!translate(r, &entry->place, &place) || !goes_on(r, "indexes"))
        return false;
    bool good = mongo_dump_read_metadata(&r->dump, entry, &metadata, r->e);
    BSON_APPEND_UTF8(&command, "createIndexes", place.collection);
    BSON_APPEND_ARRAY_BEGIN(&command, "indexes", &list);
    bool has = good && mongo_begin_members(&metadata, "indexes", &at);
    while (has && mongo_next_document(&at, &index)) {
        char room[MONGO_KEY_BYTES];
        if (strcmp(mongo_text_at(&index, "name"), "_id_") == 0)
            continue;
        bson_append_document_begin(&list, mongo_array_key(count++, room), -1, &one);
        bson_copy_to_excluding_noinit(&index, &one, "ns", NULL);
        bson_append_document_end(&list, &one);
    }
    bson_append_array_end(&command, &list);
    if (good && count > 0) {
        good = mongo_run(r->m->client, place.database, bson_copy(&command), 0, r->e);
        if (!good && !r->e->retryable) {
            log_warn("index_not_restored", "collection=%s error=%s", place.collection,
                     log_quote(r->e->text, quoted));
            good = true;
        }
    }
    bson_destroy(&command);
    bson_destroy(&metadata);
    return good;
}

/* ---- the ledger */

/* A later incarnation than those of the database and of the copy. */
static int64_t fresh(const struct restoring *r, const bson_t *copied)
{
    const int64_t inc = mongo_number_at(copied, "inc", 0), now_ms = clock_wall_ms(r->m->store.clock);
    const int64_t last = inc > r->inc ? inc : r->inc;
    return last < now_ms ? now_ms : last + 1;
}

/* `copied`: the seat in the copy; NULL: only the database that is replaced has it. */
static bool put_seat(struct restoring *r, size_t slot, const bson_t *copied, struct err *e)
{
    static const bson_t none = BSON_INITIALIZER;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(mongo_slots[slot])), seat = BSON_INITIALIZER;
    copied = copied != NULL ? copied : &none;
    r->seats[slot] = fresh(r, copied);
    /* logs have made longer documents whole: without `unrolled`, `rolled` means nothing */
    bson_copy_to_excluding_noinit(copied, &seat, "inc", "open", "partitions", "rolled", "unrolled", NULL);
    BSON_APPEND_INT64(&seat, "inc", r->seats[slot]);
    return mongo_change(r->m->client, MONGO_LEDGER, filter, &seat, true, NULL, e);
}

/* Frees a slot: its batches are done, and its former writer cannot commit in it any more. */
static void append_slot(const struct restoring *r, const char *name, const bson_t *copied, bson_t *writers)
{
    const size_t slot = mongo_slot_number(name);
    const int64_t inc = fresh(r, copied), seat = slot < MONGO_SLOTS ? r->seats[slot] : 0;
    bson_t to;
    BSON_APPEND_DOCUMENT_BEGIN(writers, name, &to);
    bson_copy_to_excluding_noinit(copied, &to, "inc", "open", "lease", "host", "pid", "who", NULL);
    BSON_APPEND_INT64(&to, "inc", inc > seat ? inc : seat);
    BSON_APPEND_DATE_TIME(&to, "lease", 0);
    bson_append_document_end(writers, &to);
}

static void append_slots(const struct restoring *r, const bson_t *copied, bson_t *writers)
{
    static const bson_t none = BSON_INITIALIZER;
    bson_iter_t at;
    bson_t own;
    for (bool more = mongo_begin_members(copied, "writers", &at); more && mongo_next_document(&at, &own);)
        append_slot(r, bson_iter_key(&at), &own, writers);
    for (size_t slot = 0; slot < MONGO_SLOTS; slot++) {
        if (r->seats[slot] > 0 && !bson_has_field(writers, mongo_slots[slot]))
            append_slot(r, mongo_slots[slot], &none, writers);
    }
}

/* Replaces the seat of a copy. The ledger itself comes after all of them. */
static bool put_copied_seat(void *context, const bson_t *copied, struct err *e)
{
    const size_t slot = mongo_slot_number(mongo_text_at(copied, "_id"));
    return slot == MONGO_SLOTS || put_seat(context, slot, copied, e);
}

static bool put_ledger(void *context, const bson_t *copied, struct err *e)
{
    struct restoring *r = context;
    bson_t ledger = BSON_INITIALIZER, writers;
    bool matched;
    int64_t now_ms = clock_wall_ms(r->m->store.clock);
    if (strcmp(mongo_text_at(copied, "_id"), MONGO_LEDGER) != 0)
        return true;
    bson_copy_to_excluding_noinit(copied, &ledger, "writers", "restoring", "backups", "epoch", NULL);
    BSON_APPEND_INT64(&ledger, "epoch", now_ms > r->epoch ? now_ms : r->epoch);
    BSON_APPEND_DOCUMENT_BEGIN(&ledger, "writers", &writers);
    append_slots(r, copied, &writers);
    bson_append_document_end(&ledger, &writers);
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER);
    return mongo_change(r->m->client, MONGO_LEDGER, filter, &ledger, false, &matched, e) &&
           (matched ||
            err_set(e, EX_TEMPFAIL, "%s: the ledger is gone, perhaps by another restore: restore again",
                    mongo_client_name(r->m->client)));
}

static bool put_seats_and_ledger(struct restoring *r)
{
    const struct mongo_dump_entry *entry = mongo_dump_find(&r->dump, r->dump.database, MONGO_LEDGER);
    bool good = true;
    for (size_t slot = 0; good && slot < MONGO_SLOTS; slot++)
        good = r->seats[slot] == 0 || put_seat(r, slot, NULL, r->e);
    return good && mongo_dump_read(&r->dump, entry, put_copied_seat, r, r->e) &&
           mongo_dump_read(&r->dump, entry, put_ledger, r, r->e);
}

/* ---- all of it */

static bool check_files(struct restoring *r)
{
    bool good = true;
    for (size_t i = 0; good && i < r->dump.count; i++) {
        r->total += r->dump.list[i].documents;
        good = r->b->goes_on(r->b->context, "checking", 0, 0) || backup_stopped("the restore", r->e);
        good = good && mongo_dump_read(&r->dump, &r->dump.list[i], NULL, NULL, r->e);
    }
    r->only_checks = true;
    good = good && apply_batches(r);
    r->only_checks = false;
    return good;
}

static bool restore_all(struct restoring *r)
{
    const struct mongo_dump_entry *ledger = mongo_dump_find(&r->dump, r->dump.database, MONGO_LEDGER);
    if (!mongo_dump_read(&r->dump, ledger, check_ledger, r, r->e) || !check_target(r) || !mark_ledger(r))
        return false;
    failpoint(FAILPOINT_RESTORE_MARKED);
    if (!mongo_drop_owned(r->m, &r->dump, r->e) || !load_all(r))
        return false;
    failpoint(FAILPOINT_RESTORE_LOADED);
    if (!apply_batches(r) || !reset_jobs(r))
        return false;
    failpoint(FAILPOINT_RESTORE_APPLIED);
    /* by the reports readers find the database */
    const struct mongo_dump_entry *reports = mongo_dump_find(&r->dump, r->dump.database, MONGO_REPORTS);
    bool good = reports == NULL || mongo_dump_read(&r->dump, reports, put_report, r, r->e);
    for (size_t i = 0; good && i < r->dump.count; i++)
        good = make_indexes(r, &r->dump.list[i]);
    return good && put_seats_and_ledger(r);
}

bool mongo_restore(const struct backup *b, struct text *said, struct err *e)
{
    struct restoring r = {.b = b, .e = e};
    bool good = mongo_dump_open(&r.dump, b->path, e) && check_files(&r);
    if (good)
        r.m = mongo_new(b->url, true, 0, e);
    good = good && r.m != NULL && mongo_take_limits(r.m, e) && restore_all(&r);
    if (good)
        text_printf(said,
                    "%s: %" PRIu64 " documents, and %zu batches that were counted while they were copied; "
                    "the next run counts again what came after the backup\n",
                    mongo_client_name(r.m->client), r.documents, r.batches);
    if (r.m != NULL)
        mongo_free(r.m);
    text_fini(&r.packed);
    text_fini(&r.longer);
    mongo_dump_fini(&r.dump);
    return good;
}
