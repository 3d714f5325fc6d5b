#include "store/mongo/admin/fill.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "store/fill.h"
#include "store/mongo/admin/copy.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/begin.h"
#include "store/mongo/writer/past.h"
#include "store/mongo/writer/position.h"
#include "store/mongo/writer/retire.h"
#include "store/mongo/writer/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOT         "w0"
#define TRIES        5
#define TRY_AGAIN_MS 500

/* ---- did it stand still? */

static bool see_raw(void *context, const struct mongo_place *place, const bson_t *listed, struct err *e)
{
    (void)listed, (void)e;
    if (mongo_is_raw(place))
        text_printf(context, "not copied: raw events in %s.%s\n", place->database, place->collection);
    return true;
}

bool mongo_moment(struct store *st, struct text *moment, struct text *left_out, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const char *living;
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_check_opens(m, &ledger, e);
    if (good && (living = mongo_find_living(m, &ledger)) != NULL)
        good = err_set_retryable(e, EX_TEMPFAIL,
                                 "%s: a tallyd counts into it (writer %s of its ledger): stop all daemons, "
                                 "and wait a minute if one was killed",
                                 mongo_client_name(m->client), living);
    text_printf(moment, "%s %" PRId64, mongo_text_at(&ledger, "identity"),
                mongo_number_at(&ledger, "epoch", 0));
    for (int i = 0; i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        text_printf(moment, " %" PRId64 "/%" PRId64, mongo_slot_at(&ledger, slot, "inc", 0),
                    mongo_seq_of(&ledger, slot));
    }
    bson_destroy(&ledger);
    /* A user without the right to list databases may still copy: he sees the raw events of this one. */
    return good && (mongo_each_owned(m, NULL, see_raw, left_out, e) || e->code == EX_NOPERM);
}

/* ---- the mark */

/* Refuses a database that holds anything but an unfinished copy, and one that is being written. */
static bool check_target(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char found[MONGO_NAME_BYTES] = "";
    const char *living = mongo_find_living(m, ledger);
    bool is_unfinished = mongo_is_unfinished(ledger);
    if (!is_unfinished && !mongo_check_opens(m, ledger, e))
        return false;
    if (living != NULL)
        return err_set_retryable(e, EX_TEMPFAIL,
                                 "%s: a tallyd writes into it (writer %s of its ledger): stop it, and wait a "
                                 "minute if it was killed",
                                 mongo_client_name(m->client), living);
    if (!is_unfinished && !mongo_find_owned(m, NULL, found, e))
        return false;
    return found[0] == '\0' ||
           err_set(e, EX_CANTCREAT, "%s holds something of tallyd already (%s): name an empty database",
                   mongo_client_name(m->client), found);
}

static bool lose(struct mongo_store *m, struct err *e)
{
    return err_set(e, EX_TEMPFAIL, "%s: another copy into it, or a restore, has begun meanwhile",
                   mongo_client_name(m->client));
}

static bool owns_mark(const struct mongo_store *m, const bson_t *ledger)
{
    return mongo_is_unfinished(ledger) &&
           mongo_number_at(ledger, "writers." SLOT ".inc", -1) == m->writer.inc;
}

/* From here on, nobody else opens the database. If two copies come at once, the ledger shows whose it is. */
static bool mark(struct mongo_store *m, const bson_t *before, struct err *e)
{
    char host[MONGO_HOST_BYTES];
    bson_t filter = BSON_INITIALIZER, ledger;
    int64_t now_ms = clock_wall_ms(m->store.clock), inc = mongo_number_at(before, "writers." SLOT ".inc", 0);
    m->writer.inc = now_ms > inc ? now_ms : inc + 1;
    BSON_APPEND_UTF8(&filter, "_id", MONGO_LEDGER);
    mongo_match_number(&filter, "writers." SLOT ".inc", inc, inc > 0);
    bson_t *update =
        BCON_NEW("$set", "{", "restoring", "{", "since", BCON_DATE_TIME(now_ms), "copy", BCON_BOOL(true), "}",
                 "epoch", BCON_INT64(m->writer.inc), "writers." SLOT ".inc", BCON_INT64(m->writer.inc),
                 "writers." SLOT ".lease", BCON_DATE_TIME(now_ms), "writers." SLOT ".host",
                 BCON_UTF8(mongo_name_host(host) ? host : ""), "writers." SLOT ".pid", BCON_INT64(getpid()),
                 "}", "$setOnInsert", "{", "v", BCON_INT32(MONGO_FORMAT), "}");
    bool good =
        mongo_change(m->client, MONGO_LEDGER, &filter, update, true, NULL, e) && mongo_begin_ledger(m, e);
    if (good) {
        good = mongo_read_ledger(m, &ledger, e) && (owns_mark(m, &ledger) || lose(m, e));
        bson_destroy(&ledger);
    }
    return good;
}

/* Renews the lease. False: the database is another's by now. */
static bool keep_mark(struct mongo_store *m, struct err *e)
{
    bool matched;
    bson_t filter = BSON_INITIALIZER;
    mongo_add_ledger(m, &filter);
    BSON_APPEND_INT64(&filter, "writers." SLOT ".inc", m->writer.inc);
    bson_t *update =
        BCON_NEW("$set", "{", "writers." SLOT ".lease", BCON_DATE_TIME(clock_wall_ms(m->store.clock)), "}");
    return mongo_change(m->client, MONGO_LEDGER, &filter, update, false, &matched, e) &&
           (matched || lose(m, e));
}

/* ---- counts */

/* Whatever has a stamp of the slot is written by a log. */
static bool delete_late(void *context, const struct mongo_collection *c, struct err *e)
{
    struct mongo_store *m = context;
    if (c->holds != HOLDS_DOCUMENTS && c->holds != HOLDS_SERIES && c->holds != HOLDS_TOP &&
        c->holds != HOLDS_JOBS)
        return true;
    bson_t *late = BCON_NEW("applied." SLOT, "{", "$lt", BCON_INT64(m->writer.fills_from), "}");
    return mongo_delete_all(m->client, c->name, late, NULL, e);
}

/* Delete documents that the server made late, for an earlier copy, which was killed. */
static bool delete_all_late(struct mongo_store *m, struct err *e)
{
    return !m->writer.fills_again || mongo_each_collection(m, delete_late, m, e);
}

/* The log of a batch is sent, and sent again if no reply came or a document of an earlier copy was there. */
static bool send_log(struct mongo_store *m, const struct mongo_log *log, struct err *e)
{
    const struct mongo_open o = {.slot = SLOT, .inc = m->writer.inc, .seq = m->writer.number, .prev = -1};
    for (int tries = 1; !mongo_send(m, &o, text_slice(&log->packed), e); tries++) {
        bool may_be_late = e->code == EX_DATAERR && m->writer.fills_again;
        if (tries == TRIES || (!e->retryable && !(may_be_late && delete_all_late(m, e))))
            return false;
        if (e->retryable)
            clock_sleep(TRY_AGAIN_MS);
    }
    return true;
}

static bool fill(struct store *st, const struct batch *batch, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    if (!keep_mark(m, e) || !mongo_resolve(m, batch, e))
        return false;
    m->writer.committed = m->writer.number++;
    mongo_write_counts(m, batch);
    if (!send_log(m, &m->batch.log, e) || !send_log(m, &m->batch.longer, e))
        return false;
    mongo_note_stored(m);
    failpoint(FAILPOINT_COPY_FILLED);
    return true;
}

/* ---- the rest */

/* Writes the books of one partition, or of one report itself: `count` entries. */
static bool put_books(struct mongo_store *m, const struct store_book *books, size_t count, struct err *e)
{
    const bool is_of_report = books->source[0] == '\0';
    bson_t filter = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++) {
        const struct store_book *b = &books[i];
        mongo_set_entry(&set, b->report == STORE_NO_REPORT ? NULL : m->more[b->report].key, b->entry,
                        b->value);
    }
    text_clear(&m->id);
    if (is_of_report) {
        ASSERT(books->report != STORE_NO_REPORT);
        text_puts(&m->id, m->more[books->report].key);
    } else {
        BSON_APPEND_UTF8(&set, "source", books->source);
        BSON_APPEND_UTF8(&set, "partition", books->partition);
        text_printf(&m->id, "%s/%s", books->source, books->partition);
    }
    BSON_APPEND_INT64(&set, "applied." SLOT, m->writer.number);
    BSON_APPEND_DATE_TIME(&set, "modified", clock_wall_ms(m->store.clock));
    BSON_APPEND_INT32(&set, "v", MONGO_SCHEMA);
    mongo_add_operator(&update, "$set", &set);
    BSON_APPEND_UTF8(&filter, "_id", m->id.ptr);
    mongo_add_guard(&filter, "applied." SLOT,
                    m->writer.number + 1); /* an earlier copy changes nothing any more */
    return mongo_change(m->client, MONGO_BOOKS, &filter, &update, true, NULL, e);
}

static bool is_together(const struct store_book *a, const struct store_book *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->partition, b->partition) == 0 &&
           (a->source[0] != '\0' || a->report == b->report);
}

/* Were documents written by a batch? */
static bool has_filled(const struct mongo_store *m)
{
    return m->writer.number > m->writer.inc;
}

/* If all files were taken out, documents are there, and no books: an empty document of books says that the
 * batches are done. */
static bool put_all_books(struct mongo_store *m, const struct store_content *content, struct err *e)
{
    static const struct store_book none = {.source = ""};
    if (content->book_count == 0 && has_filled(m))
        return put_books(m, &none, 0, e);
    for (size_t i = 0, n; i < content->book_count; i += n) {
        for (n = 1; i + n < content->book_count && is_together(&content->books[i], &content->books[i + n]);)
            n++;
        if (!put_books(m, &content->books[i], n, e))
            return false;
    }
    return true;
}

static bool put_report(struct mongo_store *m, size_t report, bool is_whole, struct err *e)
{
    const struct report *r = &m->reports[report];
    bson_t update = BSON_INITIALIZER;
    bson_t *set = mongo_report_members(r);
    BSON_APPEND_DOCUMENT(&update, is_whole ? "$set" : "$setOnInsert", set);
    bson_destroy(set);
    if (is_whole)
        mongo_append_dates(&update, "expired", NULL, &m->more[report].watermarks);
    return mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(m->more[report].key)), &update,
                        !is_whole, NULL, e);
}

static bool put_reports(struct mongo_store *m, bool is_whole, struct err *e)
{
    for (size_t r = 0; r < m->store.report_count; r++) {
        if (!put_report(m, r, is_whole, e))
            return false;
    }
    return true;
}

/* Files are claimed when more of them comes, and a claim brings their positions back: so many of them do not
 * need to be in the ledger. */
static bool are_past(const struct store_content *content)
{
    size_t files = 0;
    for (size_t i = 0; i < content->position_count; i++)
        files += content->positions[i].partition[0] == '\0';
    return files >= MONGO_RETIRED_MIN;
}

static bool put_past(struct mongo_store *m, const struct range *range, struct err *e)
{
    bson_t update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    (void)mongo_past_id(m, range->source);
    /* A source's positions grow: a late request of an earlier copy sets none back. */
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(m->id.ptr), "next", "{", "$not", "{", "$gt",
                              BCON_INT64(range->to), "}", "}");
    BSON_APPEND_UTF8(&set, "source", range->source);
    BSON_APPEND_UTF8(&set, "partition", "");
    BSON_APPEND_INT64(&set, "epoch", 1);
    mongo_add_position(m, NULL, range, &set);
    mongo_add_operator(&update, "$set", &set);
    return mongo_change(m->client, MONGO_PAST, filter, &update, true, NULL, e);
}

static bool put_all_past(struct mongo_store *m, const struct store_content *content, struct err *e)
{
    bool good = true;
    for (size_t i = 0; good && i < content->position_count; i++)
        good = content->positions[i].partition[0] != '\0' || put_past(m, &content->positions[i], e);
    return good;
}

static void add_position(struct mongo_store *m, const struct range *range, bson_t *set)
{
    const struct mongo_partition p = {.key = mongo_partition_key(range)};
    BSON_APPEND_UTF8(set, mongo_partition_member(m, &p, "source"), range->source);
    BSON_APPEND_UTF8(set, mongo_partition_member(m, &p, "partition"), range->partition);
    mongo_add_position(m, &p, range, set);
    free(p.key);
}

/* Makes it a store: takes the mark away, gives the slot back, and sets the positions. */
static bool take_mark_away(struct mongo_store *m, const struct store_content *content, struct err *e)
{
    bool matched, has_past = are_past(content);
    bson_t filter = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    mongo_add_ledger(m, &filter);
    BSON_APPEND_INT64(&filter, "writers." SLOT ".inc", m->writer.inc);
    if (content->book_count > 0 || has_filled(m)) /* else no batch was ever counted */
        BSON_APPEND_INT64(&set, "writers." SLOT ".seq", m->writer.number);
    BSON_APPEND_DATE_TIME(&set, "writers." SLOT ".lease", 0);
    for (size_t i = 0; i < content->position_count; i++) {
        if (content->positions[i].partition[0] != '\0' || !has_past)
            add_position(m, &content->positions[i], &set);
    }
    mongo_add_operator(&update, "$set", &set);
    BCON_APPEND(&update, "$unset", "{", "restoring", "", "}");
    return mongo_change(m->client, MONGO_LEDGER, &filter, &update, false, &matched, e) &&
           (matched || lose(m, e));
}

static bool finish(struct store *st, const struct store_content *content, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    if (!keep_mark(m, e) || !delete_all_late(m, e) || !put_all_books(m, content, e) ||
        !put_reports(m, true, e))
        return false;
    failpoint(FAILPOINT_COPY_FINISHING);
    if (are_past(content) && !put_all_past(m, content, e))
        return false;
    if (!take_mark_away(m, content, e))
        return false;
    m->writer.slot[0] = '\0';
    return true;
}

/* ---- open and close */

/* A copy that failed gives the slot back, so that it can be repeated at once from another machine. */
static void close_fill(struct store *st)
{
    struct mongo_store *m = mongo_of(st);
    struct err ignored;
    if (m->writer.slot[0] != '\0')
        (void)!mongo_set_lease(m, 0, &ignored);
    mongo_free(m);
}

static const struct store_fill_ops fill_ops = {.fill = fill, .finish = finish};

static bool add_reports(struct mongo_store *m, const struct store_options *options,
                        const struct report *reports, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        if (!mongo_add_report(m, &reports[i], NULL, false, true, e))
            return false;
        m->reports[i].series_max = UINT32_MAX; /* the source decided what is `other` */
        m->more[i].has_all_names = true;
        if (options->watermarks != NULL)
            m->more[i].watermarks = options->watermarks[i];
    }
    return true;
}

static bool begin_fill(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e) && check_target(m, &ledger, e) && mark(m, &ledger, e);
    m->writer.fills_again = mongo_is_unfinished(&ledger);
    bson_destroy(&ledger);
    if (!good)
        return false;
    snprintf(m->writer.slot, sizeof m->writer.slot, "%s", SLOT);
    m->writer.number = m->writer.inc;
    m->writer.fills_from = m->writer.inc + 1;
    failpoint(FAILPOINT_COPY_MARKED);
    return mongo_drop_owned(m, NULL, e) && put_reports(m, false, e);
}

struct store *mongo_open_fill(const char *uri, const struct store_options *options,
                              const struct report *reports, size_t report_count, struct err *e)
{
    struct mongo_store *m = mongo_new(uri, true, 0, e);
    if (m == NULL)
        return NULL;
    m->store.clock = options->clock;
    m->store.close = close_fill;
    m->store.fill = &fill_ops;
    if (options->connections > 0)
        m->connections = options->connections;
    if ((options->with_unsafe_writes || mongo_client_is_safe(m->client, e)) && mongo_take_limits(m, e) &&
        add_reports(m, options, reports, report_count, e) && begin_fill(m, e))
        return &m->store;
    close_fill(&m->store);
    return NULL;
}
