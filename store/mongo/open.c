#include "base/check.h"
#include "base/clock.h"
#include "store/mongo/admin/check.h"
#include "store/mongo/admin/fill.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/validator.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/newest.h"
#include "store/mongo/doc/scan.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/drop.h"
#include "store/mongo/job/expire.h"
#include "store/mongo/job/replace.h"
#include "store/mongo/job/roll.h"
#include "store/mongo/job/splice.h"
#include "store/mongo/job/top_job.h"
#include "store/mongo/job/ttl.h"
#include "store/mongo/ledger/books.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/live/hints.h"
#include "store/mongo/live/live.h"
#include "store/mongo/mongo.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/apply.h"
#include "store/mongo/writer/begin.h"
#include "store/mongo/writer/behind.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/prealloc.h"
#include "store/mongo/writer/slot.h"
#include "store/mongo/writer/take.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define KEY_BYTES 64 /* bytes of one series' key; most have fewer */

bool mongo_is_url(const char *url)
{
    return strncmp(url, "mongodb://", 10) == 0 || strncmp(url, "mongodb+srv://", 14) == 0;
}

size_t mongo_bytes_max(const struct report *reports, size_t report_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < report_count; i++) {
        /* The writer keeps sums of the batch under way, and sums of the batches that wait for a roll-up. */
        const size_t sums = 2 * (sizeof(struct cell) + reports[i].column_count * sizeof(int64_t) +
                                 4 * sizeof(struct index_slot));
        bytes += (sizeof(struct mongo_name) + 4 * sizeof(struct index_slot) + KEY_BYTES + sums) *
                 (size_t)reports[i].series_max;
    }
    return bytes;
}

/* ---- reports */

struct known {
    const struct report *wanted; /* NULL: all */
    struct report newest;
    char key[MONGO_NAME_BYTES]; /* of the last report */
    bool has_zeros;             /* some documents hold buckets of zeros */
    bool is_decimal;            /* numbers with fractions are decimals */
    struct mongo_store *m;
    bool good;
    struct err *e;
};

/* Refuse to count in a generation that is being dropped. */
static bool check_dropping(const bson_t *document, struct report *r, struct err *e)
{
    if (!bson_has_field(document, MONGO_DROPPING))
        return true;
    err_set(e, EX_CONFIG,
            "generation %d of report \"%s\" is dropped only in part: run `tallyd forget --yes %s~%d` again, "
            "which "
            "was interrupted",
            r->generation, r->name, r->name, r->generation);
    report_fini(r);
    return false;
}

/* Newer than what is counted, and not whole: a report that takes the place of this one for a range of times
 * (mongo/job/splice.h), or the rest of one. */
static bool is_hidden(const struct known *k, const bson_t *document)
{
    return bson_has_field(document, MONGO_DROPPING) &&
           (k->wanted == NULL || mongo_number_at(document, "generation", 0) > k->wanted->generation);
}

/* Reports come sorted by name, the newest generation first. */
static bool see_report(void *context, const bson_t *document)
{
    struct known *k = context;
    struct report r;
    if (is_hidden(k, document))
        return true;
    k->good = mongo_read_report(document, &r, k->e) && check_dropping(document, &r, k->e);
    if (!k->good)
        return false;
    snprintf(k->key, sizeof k->key, "%s", mongo_text_at(document, "_id"));
    k->has_zeros = mongo_number_at(document, "zeros", 0) != 0;
    k->is_decimal = bson_has_field(document, MONGO_DECIMAL);
    if (k->wanted != NULL) {
        k->newest = r;
        return false;
    }
    if (k->m->store.report_count > 0 && strcmp(k->m->reports[k->m->store.report_count - 1].name, r.name) == 0)
        report_fini(&r);
    else
        mongo_take_report(k->m, &r, k->key, k->has_zeros, k->is_decimal);
    return true;
}

static bool read_reports(struct known *k)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t *options = BCON_NEW("sort", "{", "name", BCON_INT32(1), "generation", BCON_INT32(-1), "}");
    if (k->wanted != NULL)
        BSON_APPEND_UTF8(&filter, "name", k->wanted->name);
    k->good = true;
    return mongo_look(k->m->client, MONGO_REPORTS, &filter, options, see_report, k, k->e) && k->good;
}

static bool store_report(struct mongo_store *m, const struct report *r, struct err *e)
{
    char key[MONGO_NAME_BYTES];
    mongo_report_key(r, key);
    bson_t *members = mongo_report_members(r), *update = BCON_NEW("$setOnInsert", BCON_DOCUMENT(members));
    bson_destroy(members);
    return mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(key)), update, true, NULL, e);
}

/* Takes the definition of a report over, which is in the database without the fingerprint of its key. If
 * another writer is quicker, the report has that writer's: check_report() looks again. */
static bool set_definition(struct known *k)
{
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(k->key), "definition", BCON_UTF8(k->newest.definition));
    bson_t *update = BCON_NEW("$set", "{", "definition", BCON_UTF8(k->wanted->definition), "}");
    return mongo_change(k->m->client, MONGO_REPORTS, filter, update, false, NULL, k->e);
}

/* Fails if the database has this generation with another definition, or a newer generation. *is_there: it
 * has this definition. `k` is the report there. */
static bool check_report(struct known *k, bool *is_there)
{
    const struct report *r = k->wanted;
    if (!read_reports(k))
        return false;
    const enum report_likeness likeness =
        k->newest.definition != NULL && k->newest.generation == r->generation
            ? report_compare(r, k->newest.definition)
            : REPORT_DIFFERS;
    bool good = likeness != REPORT_WITHOUT_KEY || set_definition(k);
    *is_there = likeness == REPORT_IS_SAME;
    if (good && likeness != REPORT_WITHOUT_KEY && k->newest.definition != NULL && !*is_there &&
        k->newest.generation >= r->generation)
        good = err_set(k->e, EX_CONFIG,
                       "report \"%s\" is generation %d in %s and defined there as: %s; now it is defined as: "
                       "%s. Give it another name, or set `generation: %d`",
                       r->name, k->newest.generation, mongo_client_name(k->m->client), k->newest.definition,
                       r->definition, k->newest.generation + 1);
    if (k->newest.definition != NULL)
        report_fini(&k->newest);
    k->newest.definition = NULL;
    return good;
}

static bool refuse_key(struct mongo_store *m, const struct report *r, struct err *e)
{
    return err_set(e, EX_CONFIG,
                   "%s has the documents of another report under the name \"%s\", which took its place: give "
                   "report \"%s\" another name, or set `generation: %d`",
                   mongo_client_name(m->client), r->name, r->name, r->generation + 1);
}

/* Finds the report in the database, or adds it and looks again, since another writer may have been
 * quicker. */
static bool register_report(struct mongo_store *m, const struct report *r, bool with_zeros, struct err *e)
{
    bool is_there;
    struct known k = {.wanted = r, .m = m, .e = e};
    if (!check_report(&k, &is_there) ||
        (!is_there && !(store_report(m, r, e) && check_report(&k, &is_there))) ||
        (!is_there && !refuse_key(m, r, e)) || !mongo_add_report(m, r, k.key, k.has_zeros, k.is_decimal, e))
        return false;
    return !with_zeros || mongo_note_zeros(m, m->store.report_count - 1, e);
}

static bool count_series(struct mongo_store *m, size_t report, struct err *e)
{
    char collection[MONGO_NAME_BYTES];
    mongo_collection(m, report, "series", collection);
    bool good = mongo_count(m->client, collection, NULL, &m->more[report].series_found, e);
    m->more[report].has_all_names = m->more[report].series_found == 0;
    return good;
}

/* ---- open and close */

/* Called before anything is written: a refused writer leaves nothing that would stop others. */
static bool may_begin(struct mongo_store *m, const struct report *reports, size_t count, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_home(m, &ledger, e) && mongo_check_opens(m, &ledger, e) &&
                mongo_may_begin(m, reports, count, &ledger, e);
    bson_destroy(&ledger);
    return good;
}

static bool open_writer(struct mongo_store *m, const struct store_options *options,
                        const struct report *reports, size_t count, struct err *e)
{
    ASSERT(options->connections <= MONGO_CONNECTIONS_MAX);
    m->writer.who = options->writer;
    if (options->connections > 0)
        m->connections = options->connections;
    if ((!options->with_unsafe_writes && !mongo_client_is_safe(m->client, e)) || !mongo_take_limits(m, e) ||
        !may_begin(m, reports, count, e))
        return false;
    m->longer.delay_ms = options->rollup_delay_ms;
    m->with_ttl = options->ttl;
    m->with_weeks = options->weeks;
    m->week_start = options->week_start;
    if (!m->with_weeks && !mongo_find_weeks(m, &m->with_weeks, e))
        return false;
    /* The format before reports: a version that knows no decimals must not count into a report that has. */
    if (!mongo_begin_ledger(m, e))
        return false;
    bool with_zeros = options->prealloc.when != PREALLOC_OFF && options->prealloc.zeros;
    for (size_t i = 0; i < count; i++) {
        if (!register_report(m, &reports[i], with_zeros, e))
            return false;
    }
    /* Validators first: making a collection requires fewer rights than changing it. */
    if (!mongo_set_validators(m, options->validation, e) ||
        (!options->without_indexes && !mongo_create_indexes(m, e)) || !mongo_ttl_open(m, e) ||
        !mongo_raw_open(m, options, e) || !mongo_need_slot(m, e))
        return false;
    prealloc_init(&m->making.prealloc, &options->prealloc, clock_wall_ms(m->store.clock),
                  XXH3_64bits_withSeed(m->writer.slot, strlen(m->writer.slot), (uint64_t)m->writer.inc));
    for (size_t i = 0; i < count; i++) { /* only now: taking a slot may recover a batch with new series */
        if (!count_series(m, i, e))
            return false;
    }
    return mongo_refresh_watermarks(m, e);
}

/* Refuses a database of a later format, or whose restore or copy has not ended. */
static bool check_whole(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bson_t *options = BCON_NEW("projection", "{", "restoring", BCON_BOOL(true), "v", BCON_BOOL(true), "needs",
                               BCON_BOOL(true), "}");
    bool good = mongo_read_part(m->client, MONGO_LEDGER, MONGO_LEDGER, options, &ledger, e) &&
                mongo_check_opens(m, &ledger, e);
    bson_destroy(&ledger);
    return good;
}

static bool open_reader(struct mongo_store *m, struct err *e)
{
    struct known k = {.m = m, .e = e};
    if (!check_whole(m, e) || !read_reports(&k))
        return false;
    return m->store.report_count > 0 ||
           err_set(e, EX_NOINPUT,
                   "%s contains no store of tallyd; `tallyd import` or `tallyd run` creates one",
                   mongo_client_name(m->client));
}

static bool give_back(struct mongo_store *m, struct err *e)
{
    return mongo_housekeep(&m->store, true, e) && mongo_set_lease(m, 0, e);
}

static void mongo_close(struct store *st)
{
    struct mongo_store *m = mongo_of(st);
    struct err ignored;
    mongo_splice_abort(m);
    /* Twice: a broken connection is noticed only when it is used. */
    if (m->writer.slot[0] != '\0' && !give_back(m, &ignored) && ignored.retryable)
        (void)!give_back(m, &ignored);
    mongo_free(m);
}

static const struct store_forget_ops forget_ops = {.begin = mongo_take_begin,
                                                   .take = mongo_take_check,
                                                   .stripe = mongo_take_stripe,
                                                   .drop = mongo_drop,
                                                   .replace = mongo_replace};

static const struct store_splice_ops splice_ops = {.begin = mongo_splice_begin, .end = mongo_splice_end};

static const struct store_writer_ops writer_ops = {
    .forget = &forget_ops,
    .splice = &splice_ops,
    .meet = mongo_meet,
    .claim = mongo_claim,
    .settle = mongo_settle,
    .apply = mongo_apply,
    .housekeep = mongo_housekeep,
    .expire = mongo_expire,
    .move_back = mongo_move_back,
    .backfills = true,
};

static const struct store_reader_ops reader_ops = {
    .watermarks = mongo_watermarks,
    .newest = mongo_newest,
    .goes_by = mongo_goes_by,
    .hold = mongo_hold,
    .moment = mongo_moment,
    .scan = mongo_scan,
    .recent = mongo_recent,
    .copy = mongo_copy,
    .scan_copy = mongo_scan_copy,
    .top = mongo_live_top,
    .learn = mongo_hints_learn,
    .series_find = mongo_series_find,
    .series_key = mongo_series_key,
    .series_each = mongo_series_each,
    .series_like = mongo_series_like,
    .values = mongo_values,
    .positions = mongo_positions,
    .books = mongo_books,
    .check = mongo_check,
};

static const struct store_jobs_ops jobs_ops = {.roll = mongo_roll, .rank = mongo_rank, .list = mongo_jobs};

bool mongo_check_url(const char *url, bool with_unsafe_writes, struct err *e)
{
    struct mongo_client *client = mongo_client_open(url, true, 0, e);
    if (client == NULL)
        return e->code != EX_CONFIG;
    bool good = with_unsafe_writes || mongo_client_is_safe(client, e);
    mongo_client_close(client);
    return good;
}

struct store *mongo_open(const char *uri, enum store_mode mode, const struct store_options *options,
                         const struct report *reports, size_t report_count, struct err *e)
{
    if (mode == STORE_FILL)
        return mongo_open_fill(uri, options, reports, report_count, e);
    struct mongo_store *m = mongo_new(uri, mode != STORE_READ, options->wait_max_ms, e);
    if (m == NULL)
        return NULL;
    m->store.clock = options->clock;
    m->store.close = mongo_close;
    m->store.reader = &reader_ops;
    m->store.writer = mode == STORE_WRITE ? &writer_ops : NULL;
    m->store.jobs = mode == STORE_READ ? NULL : &jobs_ops;
    m->goes_by_clock = mode == STORE_READ;
    if (mode == STORE_WORK)
        m->connections = 1; /* the others are for writers */
    if (mode == STORE_WRITE ? open_writer(m, options, reports, report_count, e)
                            : open_reader(m, e) && (mode == STORE_READ || mongo_take_limits(m, e)))
        return &m->store;
    mongo_close(&m->store);
    return NULL;
}
