#include "store/mongo/job/splice.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/keys.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/drop.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/apply.h"
#include "store/mongo/writer/behind.h"
#include "store/mongo/writer/update.h"

#include <stdio.h>

#define TRIES        5
#define TRY_AGAIN_MS 500

static struct mongo_report *more_of(struct mongo_store *m)
{
    return &m->more[0];
}

/* ---- the hidden generation */

/* The newest generation that is whole. *last: the newest one at all. */
static bool find_whole(struct mongo_store *m, const char *name, int *whole, int *last, struct err *e)
{
    struct mongo_found_report found;
    if (!mongo_find_newest(m, name, &found, e))
        return false;
    *last = found.generation;
    for (*whole = *last; found.is_dropping || found.count == 0;) {
        if (--*whole < 1)
            return err_set(e, EX_NOINPUT, "%s has no report \"%s\"", mongo_client_name(m->client), name);
        if (!mongo_find_report(m, name, *whole, &found, e))
            return false;
    }
    return true;
}

/* Drop what was left by a call that was killed. */
static bool drop_rest(struct mongo_store *m, const char *name, int whole, int last, struct err *e)
{
    struct mongo_found_report found;
    struct store_dropped dropped;
    for (int g = whole + 1; g <= last; g++) {
        if (!mongo_find_report(m, name, g, &found, e) ||
            (found.count > 0 && !mongo_drop(&m->store, name, g, false, &dropped, e)))
            return false;
    }
    return true;
}

static bool make_hidden(struct mongo_store *m, const char *name, int generation,
                        const struct watermarks *watermarks, struct err *e)
{
    struct report r = m->reports[0]; /* borrowed, but for its name and generation */
    char key[MONGO_NAME_BYTES];
    r.generation = generation;
    snprintf(r.name, sizeof r.name, "%s", name);
    mongo_report_key(&r, key);
    bson_t *members = mongo_report_members(&r);
    BSON_APPEND_BOOL(members, MONGO_DROPPING, true);
    bson_t *update = BCON_NEW("$setOnInsert", BCON_DOCUMENT(members));
    bson_destroy(members);
    mongo_append_dates(update, "expired", NULL, watermarks);
    if (!mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(key)), update, true, NULL, e))
        return false;
    bson_t document;
    bool good = mongo_read_document(m->client, MONGO_REPORTS, key, &document, e);
    if (good && !bson_has_field(&document, MONGO_DROPPING))
        good = err_set(e, EX_CONFIG, "%s has documents of another report as \"%s\": give %s another name",
                       mongo_client_name(m->client), key, name);
    bson_destroy(&document);
    if (!good)
        return false;
    m->splicing.hidden = generation;
    mongo_report_fini(more_of(m));
    mongo_report_init(more_of(m), &m->reports[0], key, false, true);
    more_of(m)->series_found = 0;
    more_of(m)->has_all_names = true;
    more_of(m)->watermarks = *watermarks;
    /* One of this generation may have been forgotten, and a batch of it recovered after that. */
    return mongo_drop_collections(m, &m->reports[0], key, e) &&
           (!m->has_indexes || mongo_create_indexes(m, e));
}

/* The sum of the numbers that another writer raises when it takes a slot, and when it commits, and that a
 * backup raises when it begins. */
static bool sum_others(struct mongo_store *m, uint64_t *sum, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    *sum = (uint64_t)mongo_number_at(&ledger, "noted", 0);
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        if (strcmp(slot, m->writer.slot) != 0)
            *sum += (uint64_t)mongo_slot_at(&ledger, slot, "inc", 0) + (uint64_t)mongo_seq_of(&ledger, slot);
    }
    bson_destroy(&ledger);
    return good;
}

/* The report whose counts it gets; the handle has it alone, under its name. */
static bool find_taken(struct mongo_store *m, struct mongo_found_report *taken, struct err *e)
{
    const char *name = m->reports[0].name;
    if (!mongo_find_newest(m, name, taken, e))
        return false;
    return (taken->count == 1 && !taken->is_dropping) ||
           err_set(
               e, EX_CONFIG,
               "%s has %zu generations, or is dropped only in part: `tallyd forget` drops the others first",
               name, taken->count);
}

/* Make the result, which nobody sees yet. */
static bool make(struct mongo_store *m, struct err *e)
{
    const struct mongo_splicing *s = &m->splicing;
    struct mongo_found_report taken;
    int whole, last = 0;
    if (!find_taken(m, &taken, e) || !find_whole(m, s->report, &whole, &last, e) ||
        !make_hidden(m, s->report, last + 1, &s->watermarks, e) || !drop_rest(m, s->report, whole, last, e))
        return false;
    m->reports[0].series_max = INT32_MAX; /* both reports decided what is `other` */
    m->batch.fills = m->splicing.is_made = true;
    return true;
}

static bool try_fill(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    bool good = (m->splicing.is_made || make(m, e)) && mongo_apply(&m->store, batch, e);
    m->splicing.may_be_late |= !good && m->splicing.is_made;
    return good;
}

static bool fill(struct store *st, const struct batch *batch, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool good = try_fill(m, batch, e);
    for (int tries = 1; !good && e->retryable && tries < TRIES; tries++) {
        clock_sleep(TRY_AGAIN_MS);
        good = try_fill(m, batch, e);
    }
    good = good && mongo_housekeep(&m->store, false, e);
    if (good)
        failpoint(FAILPOINT_REPLACE_FILLED);
    return good;
}

bool mongo_splice_begin(struct store *st, const char *report, const struct watermarks *watermarks,
                        struct err *e)
{
    static const struct store_fill_ops fills = {.fill = fill};
    struct mongo_store *m = mongo_of(st);
    m->splicing.watermarks = *watermarks;
    snprintf(m->splicing.report, sizeof m->splicing.report, "%s", report);
    st->fill = &fills;
    return mongo_check_alone(m, e) && mongo_settle(st, e) && sum_others(m, &m->splicing.others, e) &&
           mongo_end_backups(m, e);
}

/* ---- the books */

struct copying {
    struct mongo_store *m;
    const char *from; /* key of the report whose books are copied */
    bool good;
    struct err *e;
};

static bool set_books(struct mongo_store *m, const char *id, bson_t *set, struct err *e)
{
    BSON_APPEND_DATE_TIME(set, "modified", clock_wall_ms(m->store.clock));
    BSON_APPEND_INT32(set, "v", MONGO_SCHEMA);
    bson_t *update = BCON_NEW("$set", BCON_DOCUMENT(set), "$setOnInsert", "{", "applied", "{", "}", "}");
    return mongo_change(m->client, MONGO_BOOKS, BCON_NEW("_id", BCON_UTF8(id)), update, true, NULL, e);
}

/* The books of the report itself have its key as their `_id`. */
static bool copy_book(void *context, const bson_t *document)
{
    struct copying *c = context;
    const char *key = more_of(c->m)->key, *id = mongo_text_at(document, "_id");
    char from[MONGO_NAME_BYTES + 16], to[MONGO_NAME_BYTES + 16];
    bson_iter_t entries;
    bson_t set = BSON_INITIALIZER;
    snprintf(from, sizeof from, "reports.%s", c->from);
    snprintf(to, sizeof to, "reports.%s", key);
    if (mongo_find_member(document, from, &entries)) {
        bson_append_iter(&set, to, -1, &entries);
        c->good = set_books(c->m, strcmp(id, c->from) == 0 ? key : id, &set, c->e);
    }
    bson_destroy(&set);
    return c->good;
}

static bool copy_books(struct mongo_store *m, const char *from, struct err *e)
{
    struct copying c = {m, from, true, e};
    char path[MONGO_NAME_BYTES + 16];
    snprintf(path, sizeof path, "reports.%s", from);
    bson_t *filter = BCON_NEW(path, "{", "$exists", BCON_BOOL(true), "}");
    return mongo_look(m->client, MONGO_BOOKS, filter, NULL, copy_book, &c, e) && c.good;
}

static bool put_book(struct mongo_store *m, const struct store_book *b, struct err *e)
{
    char id[RANGE_SOURCE_BYTES + RANGE_PARTITION_BYTES + MONGO_NAME_BYTES];
    bson_t set = BSON_INITIALIZER;
    if (b->source[0] == '\0')
        snprintf(id, sizeof id, "%s", more_of(m)->key);
    else
        snprintf(id, sizeof id, "%s/%s", b->source, b->partition);
    mongo_set_entry(&set, more_of(m)->key, b->entry, b->value);
    bool good = set_books(m, id, &set, e);
    bson_destroy(&set);
    return good;
}

/* ---- the one update that changes what a query sees */

static bool show(struct mongo_store *m, struct err *e)
{
    bson_t document;
    bool matched;
    bson_t *update = BCON_NEW("$unset", "{", MONGO_DROPPING, BCON_UTF8(""), "}");
    bool good = mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(more_of(m)->key)), update,
                             false, &matched, e);
    if (!good || matched)
        return good;
    good = mongo_read_document(m->client, MONGO_REPORTS, more_of(m)->key, &document, e);
    if (good && bson_empty(&document))
        good = err_set(e, EX_TEMPFAIL, "%s: another program dropped it meanwhile: run it again",
                       mongo_client_name(m->client));
    bson_destroy(&document);
    return good;
}

static bool check_others(struct mongo_store *m, struct err *e)
{
    uint64_t others;
    return sum_others(m, &others, e) &&
           (others == m->splicing.others ||
            err_set(e, EX_TEMPFAIL,
                    "%s: another writer counted, or a backup began, meanwhile: stop all that count, wait for "
                    "the backup, and run it again",
                    mongo_client_name(m->client)));
}

static bool drop(struct mongo_store *m, const char *report, int generation, struct err *e)
{
    struct store_dropped dropped;
    return mongo_drop(&m->store, report, generation, false, &dropped, e) ||
           err_prefix(e, "it is taken, but %s~%d is not dropped: run `tallyd forget --yes %s~%d`", report,
                      generation, report, generation);
}

bool mongo_splice_end(struct store *st, const struct store_book *books, size_t count, const char *by,
                      const char *report, bool drops_old, struct store_replaced *done, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_found_report taken;
    int last = 0;
    bool good = (m->splicing.is_made || make(m, e)) && find_taken(m, &taken, e) &&
                find_whole(m, report, &done->replaced, &last, e) && copy_books(m, taken.key, e);
    done->generation = last;
    for (size_t i = 0; good && i < count; i++)
        good = put_book(m, &books[i], e);
    if (!good || !check_others(m, e))
        return false;
    failpoint(FAILPOINT_REPLACE_BEFORE_COMMIT);
    m->splicing.hidden = 0; /* if the reply is lost, it may be seen */
    if (!show(m, e))
        return false;
    failpoint(FAILPOINT_REPLACE_AFTER_COMMIT);
    return drop(m, by, taken.generation, e) && (!drops_old || drop(m, report, done->replaced, e));
}

void mongo_splice_abort(struct mongo_store *m)
{
    struct store_dropped dropped;
    struct err ignored; /* the next call drops it */
    if (m->splicing.hidden > 0 && !m->splicing.may_be_late)
        (void)!mongo_drop(&m->store, m->splicing.report, m->splicing.hidden, false, &dropped, &ignored);
}
