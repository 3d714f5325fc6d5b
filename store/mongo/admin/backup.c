/* Copies a database beside its writers: mongo/admin/copy.h says why the copy is whole.
 *
 * Order : 1. the backup is noted in the ledger, so that logs stay, and then seats are read; 2. documents,
 *         each as it is at its moment; 3. the ledger and its seats, in one picture; 4. the logs of all
 *         batches committed in between; 5. what must not be older than the ledger: the reports with their
 *         expiry watermarks, while the note is there, and then raw events, which are inserted before their
 *         batch is committed.
 * Pages : documents are read in order of `_id`, some at a time; each request continues behind the last one. A
 *         cursor in the order of the disk may miss a document that moves while it is updated.
 */
#include "store/mongo/admin/backup.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/order.h"
#include "store/mongo/admin/copy.h"
#include "store/mongo/admin/dump.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOLD_KEEP_MS 20000
#define PAGE         500
#define ID_BYTES     32
#define NUMBER_NONE  (-1)

struct backing {
    const struct backup *b;
    struct mongo_store *m;
    struct mongo_dump dump;
    char id[ID_BYTES];           /* name of this backup in the ledger */
    int64_t kept_ms;             /* when the note in the ledger was renewed last, monotonic */
    int64_t base[MONGO_SLOTS];   /* by slot, the first batch that documents may lack */
    int64_t before[MONGO_SLOTS]; /* the batch before `base`, or NUMBER_NONE */
    bson_t ledger; /* the ledger after the documents were copied, with all positions and slots as of seats */
    enum { COUNTS, REPORTS, RAW_EVENTS } turn; /* whose collections are being copied */
    struct mongo_dump_file file;               /* the file that is being written */
    struct text last;                          /* `_id` of the last document copied */
    size_t page;                               /* documents in the last reply */
    bool is_written;                           /* all of them are in the file */
    uint64_t documents;
    size_t batches;
    struct err *e;
};

/* ---- messages to writers */

static bool forgotten(struct backing *g)
{
    return err_set_retryable(g->e, EX_TEMPFAIL,
                             "%s: the ledger has forgotten this backup: was the database restored, or is a "
                             "clock wrong by more than %d minutes? Then run the backup again",
                             mongo_client_name(g->m->client), (int)(MONGO_HOLD_MS / MINUTE_MS));
}

/* Notes the backup (`is_new`), or renews the note, with the write concern of a commit. */
static bool hold(struct backing *g, bool is_new)
{
    bson_t ledger;
    char until[ID_BYTES + 32], whose[ID_BYTES + 32], owner[64] = "";
    bool found;
    if (gethostname(owner, sizeof owner - 16) != 0)
        owner[0] = '\0';
    snprintf(owner + strlen(owner), 16, " %d", (int)getpid());
    snprintf(until, sizeof until, "backups.%s.until", g->id);
    snprintf(whose, sizeof whose, "backups.%s.owner", g->id);
    bson_t *query =
        BCON_NEW("_id", MONGO_LEDGER, is_new ? "restoring" : until, "{", "$exists", BCON_BOOL(!is_new), "}");
    bson_t *update =
        BCON_NEW("$set", "{", until, BCON_DATE_TIME(clock_wall_ms(g->m->store.clock) + MONGO_HOLD_MS), whose,
                 BCON_UTF8(owner), "}");
    if (is_new)
        BCON_APPEND(update, "$inc", "{", "noted", BCON_INT64(1), "}");
    bool good = mongo_modify(g->m->client, MONGO_LEDGER, query, update, &found, &ledger, g->e);
    bson_destroy(&ledger);
    g->kept_ms = clock_mono_ms(g->m->store.clock);
    if (good && !found && is_new)
        good = err_set(g->e, EX_NOINPUT, "%s contains no store of tallyd, or a restore into it has not ended",
                       mongo_client_name(g->m->client));
    else if (good && !found)
        good = forgotten(g);
    return good;
}

/* Removes the note of this backup, and the notes of backups that were killed long ago. */
static bool release(struct backing *g, const bson_t *ledger)
{
    char path[ID_BYTES + 128];
    bson_t update = BSON_INITIALIZER, unset = BSON_INITIALIZER;
    bson_iter_t at;
    bson_t one;
    int64_t now_ms = clock_wall_ms(g->m->store.clock);
    snprintf(path, sizeof path, "backups.%s", g->id);
    BSON_APPEND_UTF8(&unset, path, "");
    for (bool more = mongo_begin_members(ledger, "backups", &at); more && mongo_next_document(&at, &one);) {
        snprintf(path, sizeof path, "backups.%.64s", bson_iter_key(&at));
        if (mongo_number_at(&one, "until", now_ms) < now_ms && strcmp(bson_iter_key(&at), g->id) != 0)
            BSON_APPEND_UTF8(&unset, path, "");
    }
    mongo_add_operator(&update, "$unset", &unset);
    return mongo_change(g->m->client, MONGO_LEDGER, BCON_NEW("_id", MONGO_LEDGER), &update, false, NULL,
                        g->e);
}

static bool keep_hold(struct backing *g)
{
    return g->turn == RAW_EVENTS || clock_mono_ms(g->m->store.clock) - g->kept_ms < HOLD_KEEP_MS ||
           hold(g, false);
}

/* Longer documents may lack earlier batches. One that is open may be waited for by all that they lack. */
static void note_unrolled(struct backing *g, const bson_t *ledger, int slot, bool rolls_up)
{
    bson_t seat;
    if (!mongo_seat_of(ledger, mongo_slots[slot], &seat) || (mongo_last_unrolled(&seat) == 0 && !rolls_up))
        return;
    const int64_t rolled = mongo_number_at(&seat, "rolled", NUMBER_NONE);
    if (rolled == NUMBER_NONE)
        return; /* it never left longer documents for later */
    g->base[slot] = rolled + 1;
    g->before[slot] = rolled;
}

/* Notes from which batch on documents may lack what the ledger has. */
static void note_bases(struct backing *g, const bson_t *ledger)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        struct mongo_open o;
        bool is_open = mongo_open_of(ledger, mongo_slots[i], &o);
        int64_t seq = mongo_seq_of(ledger, mongo_slots[i]);
        g->base[i] = is_open ? o.seq : seq + 1;
        g->before[i] = is_open ? NUMBER_NONE : seq;
        note_unrolled(g, ledger, i, is_open && o.rolls_up);
    }
}

/* ---- documents */

static bool goes_on(struct backing *g, const char *what)
{
    return g->b->goes_on(g->b->context, what, g->documents, 0) || backup_stopped("the backup", g->e);
}

static bool take_document(void *context, const bson_t *document)
{
    struct backing *g = context;
    g->documents++;
    g->page++;
    text_clear(&g->last);
    text_puts(&g->last, mongo_text_at(document, "_id"));
    g->is_written = mongo_dump_put(&g->file, document, g->e);
    return g->is_written;
}

/* Copies the documents of one request, which leaves no cursor open. */
static bool copy_answer(struct backing *g, const struct mongo_place *place, const bson_t *filter,
                        int64_t skip)
{
    bson_t *command =
        BCON_NEW("find", BCON_UTF8(place->collection), "filter", BCON_DOCUMENT(filter), "sort", "{", "_id",
                 BCON_INT32(1), "}", "skip", BCON_INT64(skip), "limit", BCON_INT64(PAGE), "batchSize",
                 BCON_INT32(PAGE), "singleBatch", BCON_BOOL(true));
    g->page = 0;
    g->is_written = true;
    return mongo_list(g->m->client, place->database, command, MONGO_BATCH, take_document, g, g->e) &&
           g->is_written;
}

/* Copies documents with a text as `_id`, as tallyd writes them; each request continues behind the last one.
 * A reply may be shorter than asked for because of its bytes: only an empty one is the end. */
static bool copy_pages(struct backing *g, const struct mongo_place *place)
{
    bool is_first = true, good = true;
    for (g->page = 1; good && g->page > 0; is_first = false) {
        bson_t *filter =
            BCON_NEW("_id", "{", is_first ? "$gte" : "$gt", BCON_UTF8(is_first ? "" : g->last.ptr), "}");
        good = goes_on(g, place->collection) && keep_hold(g) && copy_answer(g, place, filter, 0);
        bson_destroy(filter);
        failpoint(FAILPOINT_BACKUP_PAGE);
    }
    return good;
}

/* Copies documents of others. */
static bool copy_foreign(struct backing *g, const struct mongo_place *place)
{
    bson_t *filter = BCON_NEW("_id", "{", "$not", "{", "$type", BCON_UTF8("string"), "}", "}");
    int64_t skip = 0;
    bool good = true;
    for (g->page = 1; good && g->page > 0; skip += (int64_t)g->page)
        good = goes_on(g, place->collection) && keep_hold(g) && copy_answer(g, place, filter, skip);
    bson_destroy(filter);
    return good;
}

static bool copy_metadata(struct backing *g, const struct mongo_place *place, const bson_t *listed)
{
    bson_t metadata = BSON_INITIALIZER, reply;
    bson_iter_t it;
    bson_t *command = BCON_NEW("listIndexes", BCON_UTF8(place->collection));
    bool good = mongo_read_in(g->m->client, place->database, command, &reply, g->e);
    if (bson_iter_init_find(&it, listed, "options"))
        bson_append_iter(&metadata, "options", -1, &it);
    if (good && mongo_find_member(&reply, "cursor.firstBatch", &it))
        bson_append_iter(&metadata, "indexes", -1, &it);
    BSON_APPEND_UTF8(&metadata, "collectionName", place->collection);
    BSON_APPEND_UTF8(&metadata, "type", "collection");
    good = good && mongo_dump_put_metadata(&g->dump, place, &metadata, g->e);
    bson_destroy(&metadata);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

static bool copy_collection(struct backing *g, const struct mongo_place *place, const bson_t *listed)
{
    bool good =
        mongo_dump_create(&g->dump, place, &g->file, g->e) && copy_pages(g, place) && copy_foreign(g, place);
    return mongo_dump_end(&g->dump, &g->file, good, g->e) && copy_metadata(g, place, listed);
}

/* Copies a collection if it is its turn. */
static bool see_collection(void *context, const struct mongo_place *place, const bson_t *listed,
                           struct err *e)
{
    struct backing *g = context;
    bool is_report = strcmp(place->collection, MONGO_REPORTS) == 0;
    (void)e; /* it is g->e */
    if (strcmp(place->collection, MONGO_LEDGER) == 0 || strcmp(place->collection, MONGO_BATCHES) == 0)
        return true;
    return g->turn != (mongo_is_raw(place) ? RAW_EVENTS
                       : is_report         ? REPORTS
                                           : COUNTS) ||
           copy_collection(g, place, listed);
}

/* ---- logs */

/* Times of one slot's logs grow. Those of format 4 have none, and only their numbers have an order. */
static int compare_times(const void *a, const void *b)
{
    const struct mongo_open *x = a, *y = b;
    int order = order_int64(x->at_ms, y->at_ms);
    order = order != 0 ? order : strcmp(x->slot, y->slot);
    return order != 0 ? order : order_int64(x->seq, y->seq);
}

static bool refuse_log(struct backing *g, const char *slot, int64_t seq, const char *why)
{
    return err_set_retryable(g->e, EX_TEMPFAIL,
                             "%s: the log of batch %" PRId64 " of writer %s is %s: is a daemon of an older "
                             "version counting, or is a clock wrong by more than %d minutes? Then run the "
                             "backup again",
                             mongo_client_name(g->m->client), seq, slot, why,
                             (int)(MONGO_HOLD_MS / MINUTE_MS));
}

/* Finds the batches that were committed since documents were copied. Batches that were only logged are left
 * out. */
static bool find_committed(struct backing *g, const struct mongo_logs *l, int i, struct mongo_logs *committed)
{
    const char *slot = mongo_slots[i];
    int64_t seq = mongo_seq_of(&g->ledger, slot);
    while (seq >= g->base[i]) {
        const struct mongo_open *log = mongo_find_log(l, seq);
        if (log == NULL)
            return refuse_log(g, slot, seq, "gone");
        mongo_logs_add(committed, log);
        if (seq == g->base[i] && g->before[i] == NUMBER_NONE)
            return true; /* it was open when copying began */
        if (log->prev == NUMBER_NONE || log->prev >= seq)
            return refuse_log(g, slot, seq, "of an older version");
        seq = log->prev;
    }
    return seq == g->before[i] || err_set(g->e, EX_DATAERR,
                                          "%s: the batches of writer %s do not follow on each other: it was "
                                          "changed by hand, or restored",
                                          mongo_client_name(g->m->client), slot);
}

struct copying_log {
    struct backing *g;
    struct text packed, longer;
    bool good;
};

static bool take_part(void *context, const bson_t *document)
{
    struct copying_log *c = context;
    mongo_log_add_part(document, "zstd", &c->packed);
    mongo_log_add_part(document, "longer", &c->longer);
    c->good = mongo_dump_put(&c->g->file, document, c->g->e);
    return c->good;
}

static bool copy_log(struct backing *g, const struct mongo_open *log)
{
    struct copying_log c = {.g = g, .good = true};
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    bool good =
        mongo_look(g->m->client, MONGO_BATCHES, mongo_filter_parts(log), options, take_part, &c, g->e) &&
        c.good && mongo_log_check(text_slice(&c.packed), g->e) &&
        (c.longer.len == 0 || mongo_log_check(text_slice(&c.longer), g->e));
    text_fini(&c.packed);
    text_fini(&c.longer);
    return good;
}

static bool find_logs(struct backing *g, struct mongo_logs *committed)
{
    bool good = true;
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        struct mongo_logs l = {.count = 0};
        good = mongo_slot_at(&g->ledger, mongo_slots[i], "home_seq", -1) < 0 ||
               (mongo_list_logs(g->m, mongo_slots[i], &l, g->e) && find_committed(g, &l, i, committed));
        free(l.list);
    }
    return good;
}

/* Copies logs in the order in which restore applies them. Two slots may have counted one partition: then the
 * later batch sets what the books say of its end. */
static bool copy_logs(struct backing *g)
{
    struct mongo_place place = {.collection = MONGO_BATCHES};
    struct mongo_logs committed = {.count = 0};
    memcpy(place.database, g->dump.database, sizeof place.database);
    bool good = mongo_dump_create(&g->dump, &place, &g->file, g->e) && find_logs(g, &committed);
    if (committed.count > 0)
        qsort(committed.list, committed.count, sizeof *committed.list, compare_times);
    for (size_t i = 0; good && i < committed.count; i++)
        good = goes_on(g, MONGO_BATCHES) && copy_log(g, &committed.list[i]);
    g->batches = committed.count;
    free(committed.list);
    return mongo_dump_end(&g->dump, &g->file, good, g->e);
}

/* ---- all of it */

/* Writes the seat of a slot, if it has one. The picture has its positions, and its open batch is among the
 * logs. */
static bool copy_seat(struct backing *g, const char *slot, const bson_t *members)
{
    bson_t seat, copy = BSON_INITIALIZER;
    if (!mongo_find_document(members, "seat", &seat))
        return true;
    BSON_APPEND_UTF8(&copy, "_id", slot);
    bson_copy_to_excluding_noinit(&seat, &copy, "open", "partitions", "rolled", "unrolled", NULL);
    bool good = mongo_dump_put(&g->file, &copy, g->e);
    bson_destroy(&copy);
    return good;
}

/* Adds what the ledger itself has of a slot, without its seat. */
static void add_slot(const char *slot, const bson_t *members, bson_t *writers)
{
    bson_t own;
    bson_iter_t seq;
    BSON_APPEND_DOCUMENT_BEGIN(writers, slot, &own);
    bson_copy_to_excluding_noinit(members, &own, "seq", "home_seq", "seat", "open", NULL);
    if (bson_iter_init_find(&seq, members, "home_seq") && bson_iter_as_int64(&seq) > 0)
        bson_append_iter(&own, "seq", -1, &seq);
    bson_append_document_end(writers, &own);
}

/* A position is in the ledger alone: no seat may have another one. */
static void add_partition(const char *key, const bson_t *members, bson_t *partitions)
{
    bson_t own;
    BSON_APPEND_DOCUMENT_BEGIN(partitions, key, &own);
    bson_copy_to_excluding_noinit(members, &own, "from", NULL);
    bson_append_document_end(partitions, &own);
}

static void add_each(const bson_t *from, const char *name, bson_t *to,
                     void (*add)(const char *name, const bson_t *members, bson_t *to))
{
    bson_iter_t at;
    bson_t list, members;
    BSON_APPEND_DOCUMENT_BEGIN(to, name, &list);
    for (bool more = mongo_begin_members(from, name, &at); more && mongo_next_document(&at, &members);)
        add(bson_iter_key(&at), &members, &list);
    bson_append_document_end(to, &list);
}

static bool copy_seats(struct backing *g)
{
    bson_iter_t at;
    bson_t members;
    bool good = true, more = mongo_begin_members(&g->ledger, "writers", &at);
    while (good && more && mongo_next_document(&at, &members))
        good = copy_seat(g, bson_iter_key(&at), &members);
    return good;
}

/* Writes the seats, and then the ledger with `restoring`: daemons refuse such a database until it is restored
 * properly. */
static bool copy_ledger(struct backing *g)
{
    struct mongo_place place = {.collection = MONGO_LEDGER};
    bson_t ledger = BSON_INITIALIZER;
    memcpy(place.database, g->dump.database, sizeof place.database);
    bson_copy_to_excluding_noinit(&g->ledger, &ledger, "backups", "writers", "partitions", NULL);
    add_each(&g->ledger, "writers", &ledger, add_slot);
    add_each(&g->ledger, "partitions", &ledger, add_partition);
    BCON_APPEND(&ledger, "restoring", "{", "since", BCON_DATE_TIME(clock_wall_ms(g->m->store.clock)), "}");
    bool good = mongo_dump_create(&g->dump, &place, &g->file, g->e) && copy_seats(g) &&
                mongo_dump_put(&g->file, &ledger, g->e);
    bson_destroy(&ledger);
    return mongo_dump_end(&g->dump, &g->file, good, g->e);
}

/* Each batch before these is in all documents that are read from now on. */
static bool read_bases(struct backing *g)
{
    bson_t ledger;
    bool good = mongo_read_ledger(g->m, &ledger, g->e);
    note_bases(g, &ledger);
    bson_destroy(&ledger);
    return good;
}

/* Reads the ledger and the seats, if the note is still there. */
static bool take_picture(struct backing *g)
{
    char note[ID_BYTES + 16];
    bson_iter_t it;
    snprintf(note, sizeof note, "backups.%s", g->id);
    if (!hold(g, false))
        return false;
    bson_destroy(&g->ledger);
    return mongo_read_picture(g->m, &g->ledger, g->e) &&
           (mongo_find_member(&g->ledger, note, &it) || forgotten(g));
}

/* If the note is still there afterwards, no report has taken the place of another one meanwhile. */
static bool copy_reports(struct backing *g)
{
    g->turn = REPORTS;
    return mongo_each_owned(g->m, NULL, see_collection, g, g->e) && hold(g, false);
}

static bool copy_held(struct backing *g)
{
    bson_t ledger;
    bool may = mongo_read_ledger(g->m, &ledger, g->e) && mongo_check_format(g->m, &ledger, g->e);
    bson_destroy(&ledger);
    if (!may || !hold(g, true))
        return false;
    failpoint(FAILPOINT_BACKUP_HELD);
    bool good = read_bases(g) && mongo_each_owned(g->m, NULL, see_collection, g, g->e);
    failpoint(FAILPOINT_BACKUP_COPIED);
    good = good && take_picture(g) && copy_logs(g) && copy_reports(g);
    const struct err failure = good ? (struct err){0} : *g->e;
    bool released = release(g, &g->ledger); /* also if the backup failed */
    if (!good)
        *g->e = failure;
    return good && released;
}

static bool copy_all(struct backing *g)
{
    if (!copy_held(g))
        return false;
    g->turn = RAW_EVENTS;
    return mongo_each_owned(g->m, NULL, see_collection, g, g->e) && copy_ledger(g) &&
           mongo_dump_put_names(&g->dump, clock_wall_ms(g->m->store.clock), g->e);
}

/* Renames the directory to its final name, replacing an existing backup if that is allowed. */
static bool rename_directory(const struct backup *b, const char *partial, struct err *e)
{
    char old[BACKUP_PATH_BYTES + 8];
    bool is_there = access(b->path, F_OK) == 0;
    snprintf(old, sizeof old, "%s-old", partial);
    if (is_there && rename(b->path, old) != 0)
        return err_set(e, EX_CANTCREAT, "cannot rename %s to %s: %s", b->path, old, strerror(errno));
    if (rename(partial, b->path) != 0)
        return err_set(e, EX_CANTCREAT, "cannot rename %s to %s: %s", partial, b->path, strerror(errno));
    return backup_sync_parent(b->path, e) && (!is_there || mongo_dump_delete(old, e));
}

static void name_backup(struct backing *g)
{
    snprintf(g->id, sizeof g->id, "%" PRIx64 "-%x", (uint64_t)clock_wall_ms(g->m->store.clock),
             (unsigned)getpid());
    snprintf(g->dump.database, sizeof g->dump.database, "%s", mongo_client_database(g->m->client));
}

bool mongo_backup(const struct backup *b, struct text *said, struct err *e)
{
    char partial[BACKUP_PATH_BYTES];
    struct backing g = {.b = b, .e = e, .ledger = BSON_INITIALIZER};
    if (!backup_may_write(b, e) || !backup_partial(b->path, partial, e))
        return false;
    g.m = mongo_new(b->url, true, 0, e);
    if (g.m == NULL)
        return false;
    name_backup(&g);
    g.dump.dir = partial;
    bool good = mongo_dump_make_directory(partial, e) && copy_all(&g) && backup_may_write(b, e) &&
                rename_directory(b, partial, e);
    struct err ignored;
    if (!good && access(partial, F_OK) == 0)
        (void)!mongo_dump_delete(partial, &ignored);
    if (good)
        text_printf(said,
                    "%s: %" PRIu64 " documents, and %zu batches that were counted meanwhile, of %zu "
                    "collections\n",
                    b->path, g.documents, g.batches, g.dump.count);
    bson_destroy(&g.ledger);
    text_fini(&g.last);
    mongo_dump_fini(&g.dump);
    mongo_free(g.m);
    return good;
}
