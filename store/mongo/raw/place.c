#include "store/mongo/raw/place.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>

#define CODE_BAD_VALUE     2
#define CODE_UNSATISFIABLE 100

void mongo_raw_concern(const struct raw *r, const struct mongo_client *client, bson_t *concern)
{
    bson_init(concern);
    if (r->w == RAW_W_MAJORITY)
        BSON_APPEND_UTF8(concern, "w", "majority");
    else
        BSON_APPEND_INT32(concern, "w", (int32_t)r->w);
    if (r->w == 0)
        return;
    BSON_APPEND_BOOL(concern, "j", r->j);
    /* its timeout is heard before the reply's */
    BSON_APPEND_INT32(concern, "wtimeout", mongo_client_socket_ms(client) / 2);
}

/* ---- names */

/* The name of a period: "20101010", "201010"; "" without periods. */
static void period_name(const struct raw *r, int64_t period_ms, char buf[16])
{
    struct civil c = civil_from_ms(period_ms);
    bool is_month = r->growth == RAW_COLLECTION_PER_MONTH || r->growth == RAW_DATABASE_PER_MONTH;
    buf[0] = '\0';
    if (raw_has_periods(r))
        snprintf(buf, 16, is_month ? "%04d%02d" : "%04d%02d%02d", c.year, c.month, c.day);
}

void mongo_raw_place(const struct mongo_store *m, const struct raw *r, int64_t period_ms,
                     struct mongo_place *place)
{
    char period[16];
    const char *database = mongo_client_database(m->client);
    bool has_database = r->growth == RAW_DATABASE_PER_MONTH;
    period_name(r, period_ms, period);
    if (has_database)
        snprintf(place->database, sizeof place->database, "%s_raw_%s_%s", database, r->source, period);
    else
        snprintf(place->database, sizeof place->database, "%s", database);
    snprintf(place->collection, sizeof place->collection, "raw.%s%s%s", r->source,
             has_database || period[0] == '\0' ? "" : ".", has_database ? "" : period);
}

/* The start of the period of a collection or database; -1: it is not one of the source's. */
static int64_t period_of(const struct mongo_store *m, const struct raw *r, const char *name)
{
    struct mongo_place place;
    const size_t len = strlen(name);
    size_t digits = 0;
    int64_t period_ms;
    while (digits < len && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
        digits++;
    if (!mongo_parse_time(digits == 6 ? SPAN_MONTH : SPAN_DAY, name + len - digits, &period_ms) ||
        period_ms < 0)
        return -1;
    mongo_raw_place(m, r, period_ms, &place);
    bool is_ours = strcmp(r->growth == RAW_DATABASE_PER_MONTH ? place.database : place.collection, name) == 0;
    return is_ours && raw_period(r, period_ms) == period_ms ? period_ms : -1;
}

/* ---- making */

static bool refuse_growth(const struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                          const char *what, struct err *e)
{
    struct text growth = {0};
    raw_print_growth(r, &growth);
    err_set(e, EX_CONFIG, "found sources.%s.raw_growth: %s, but in %s, %s.%s %s", r->source, growth.ptr,
            mongo_client_name(m->client), place->database, place->collection, what);
    text_fini(&growth);
    return false;
}

/* Adds the server's reason. An error that may pass, or of rights, stays as it is. */
static bool fail_growth(const struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                        const char *what, struct err *e)
{
    const struct err why = *e;
    char text[2 * sizeof why.text];
    if (e->retryable || e->code == EX_NOPERM)
        return false;
    snprintf(text, sizeof text, "%s: %s", what, why.text);
    return refuse_growth(m, r, place, text, e);
}

/* What a server made. */
struct growth {
    const struct raw *r;
    bool is_good;
};

static bool see_collection(void *context, const bson_t *listed)
{
    struct growth *g = context;
    g->is_good = mongo_number_at(listed, "options.capped", 0) != 0;
    return false;
}

/* Is it a TTL index of this time? */
static bool see_index(void *context, const bson_t *index)
{
    struct growth *g = context;
    bson_iter_t time;
    g->is_good = mongo_number_at(index, "expireAfterSeconds", -1) == g->r->limit / SECOND_MS &&
                 mongo_find_member(index, "key.time", &time);
    return !g->is_good;
}

/* Checks by the list that `command` reads what was made: a server may make another kind of collection or
 * index without an error. */
static bool check_growth(struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                         bson_t *command, mongo_document_fn *see, const char *otherwise, struct err *e)
{
    struct growth g = {r, false};
    return mongo_list(m->client, place->database, command, MONGO_BATCH, see, &g, e) &&
           (g.is_good || refuse_growth(m, r, place, otherwise, e));
}

static bool make_capped(struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                        struct err *e)
{
    bson_t *command = BCON_NEW("create", BCON_UTF8(place->collection), "capped", BCON_BOOL(true), "size",
                               BCON_INT64(r->limit));
    if (!mongo_run(m->client, place->database, command, MONGO_NAMESPACE_EXISTS, e))
        return fail_growth(m, r, place, "cannot be made as a capped collection", e);
    command =
        BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "name", BCON_UTF8(place->collection), "}");
    return check_growth(
        m, r, place, command, see_collection,
        "is no capped collection: a server that makes none needs another raw_growth, a "
        "collection that was there before another name (db.getCollection().renameCollection())",
        e);
}

static bool make_index(struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                       const struct mongo_index_of *index, const bson_t *key, struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    enum mongo_index state;
    const struct mongo_index_wanted wanted = {place->database, place->collection, index->name, key,
                                              index->ttl_s};
    if (!mongo_create_index(m->client, &wanted, &state, e))
        return index->ttl_s > 0 ? fail_growth(m, r, place, "cannot have a TTL index", e) : false;
    if (index->ttl_s > 0)
        return check_growth(m, r, place, BCON_NEW("listIndexes", BCON_UTF8(place->collection)), see_index,
                            "has no index {time: 1} that expires documents after this time: drop the "
                            "index tallyd_time, or choose another raw_growth",
                            e);
    if (state == INDEX_DIFFERS)
        log_warn("index_differs", "collection=%s error=%s next=\"left alone\"", place->collection,
                 log_quote(e->text, quoted));
    return true;
}

/* Lists the indexes whose fields are stored; the last one may be the TTL index. */
bool mongo_raw_index(const struct raw *r, size_t n, struct mongo_index_of *index, bson_t *key)
{
    static const struct {
        const char *name, *why, *first, *second;
        int first_id, second_id;
    } rows[] = {{"tallyd_path", "events of a page", "path", NULL, FIELD_PATH, FIELD_PATH},
                {MONGO_RAW_HOST_TIME, "events of a client in a range of time, equality before range", "host",
                 "time", FIELD_HOST, RAW_TIME},
                {"tallyd_time", "events in a range of time", "time", NULL, RAW_TIME, RAW_TIME}};
    bson_init(key);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!raw_has_field(r, rows[i].first_id) || !raw_has_field(r, rows[i].second_id) || n-- > 0)
            continue;
        bool is_ttl = r->growth == RAW_TTL && rows[i].first_id == RAW_TIME;
        *index = (struct mongo_index_of){rows[i].name, rows[i].why, is_ttl ? r->limit / SECOND_MS : 0};
        BSON_APPEND_INT32(key, rows[i].first, 1);
        if (rows[i].second != NULL)
            BSON_APPEND_INT32(key, rows[i].second, 1);
        return true;
    }
    return false;
}

static bool make_indexes(struct mongo_store *m, const struct raw *r, const struct mongo_place *place,
                         struct err *e)
{
    struct mongo_index_of index;
    bool good = true, more = true;
    for (size_t n = 0; good && more; n++) {
        bson_t key;
        more = mongo_raw_index(r, n, &index, &key);
        if (more && (m->has_indexes || index.ttl_s > 0))
            good = make_index(m, r, place, &index, &key, e);
        bson_destroy(&key);
    }
    return good;
}

static bool is_ready(const struct mongo_raw *raw, int64_t period_ms)
{
    for (size_t i = 0; i < raw->ready_count; i++) {
        if (raw->ready[i] == period_ms)
            return true;
    }
    return false;
}

/* Forgets that the collection is there: it may have to be made again. */
static void forget(struct mongo_raw *raw, int64_t period_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < raw->ready_count; i++) {
        if (raw->ready[i] != period_ms)
            raw->ready[kept++] = raw->ready[i];
    }
    raw->ready_count = kept;
}

bool mongo_raw_prepare(struct mongo_store *m, struct mongo_raw *raw, int64_t period_ms, struct err *e)
{
    struct mongo_place place;
    if (is_ready(raw, period_ms))
        return true;
    mongo_raw_place(m, raw->of, period_ms, &place);
    if ((raw->of->growth == RAW_CAPPED && !make_capped(m, raw->of, &place, e)) ||
        !make_indexes(m, raw->of, &place, e))
        return false;
    raw->ready = xgrow(raw->ready, &raw->ready_capacity, raw->ready_count + 1, sizeof *raw->ready);
    raw->ready[raw->ready_count++] = period_ms;
    return true;
}

/* ---- databases of months */

struct walk {
    const char *of; /* the name of the store's database */
    mongo_database_fn *fn;
    void *context;
    bool good; /* false: `fn` ended the walk */
    struct err *e;
};

static bool see_database(void *context, const bson_t *listed)
{
    struct walk *w = context;
    char prefix[MONGO_DATABASE_BYTES + 8];
    const char *name = mongo_text_at(listed, "name");
    snprintf(prefix, sizeof prefix, "%s_raw_", w->of);
    if (strncmp(name, prefix, strlen(prefix)) == 0)
        w->good = w->fn(w->context, name, w->e);
    return w->good;
}

bool mongo_raw_each_database(struct mongo_store *m, mongo_database_fn *fn, void *context, struct err *e)
{
    struct walk w = {
        .of = mongo_client_database(m->client), .fn = fn, .context = context, .good = true, .e = e};
    bson_t *command = BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true));
    return mongo_list(m->client, "admin", command, "databases", see_database, &w, e) && w.good;
}

/* ---- dropping */

struct look {
    struct mongo_store *m;
    struct mongo_raw *raw;
    int64_t *periods; /* existing periods, the oldest first */
    size_t count, capacity;
};

static bool drop(const struct look *l, int64_t period_ms, struct err *e)
{
    struct mongo_place place;
    mongo_raw_place(l->m, l->raw->of, period_ms, &place);
    bool is_database = l->raw->of->growth == RAW_DATABASE_PER_MONTH;
    bson_t *command =
        is_database ? BCON_NEW("dropDatabase", BCON_INT32(1)) : BCON_NEW("drop", BCON_UTF8(place.collection));
    if (!mongo_run(l->m->client, place.database, command, MONGO_NAMESPACE_NOT_FOUND, e))
        return false;
    log_info("raw_dropped", "source=%s %s=%s", l->raw->of->source, is_database ? "database" : "collection",
             is_database ? place.database : place.collection);
    forget(l->raw, period_ms);
    return true;
}

/* Collects the period of a collection or database. */
static bool take_name(void *context, const bson_t *listed)
{
    struct look *l = context;
    int64_t period_ms = period_of(l->m, l->raw->of, mongo_text_at(listed, "name"));
    if (period_ms < 0)
        return true;
    l->periods = xgrow(l->periods, &l->capacity, l->count + 1, sizeof *l->periods);
    l->periods[l->count++] = period_ms;
    return true;
}

static bool list_periods(struct look *l, struct err *e)
{
    bool is_database = l->raw->of->growth == RAW_DATABASE_PER_MONTH;
    bson_t *command = is_database ? BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true))
                                  : BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true),
                                             "cursor", "{", "batchSize", BCON_INT32(MONGO_LIST_MAX), "}");
    bool good = mongo_list(l->m->client, is_database ? "admin" : NULL, command,
                           is_database ? "databases" : MONGO_BATCH, take_name, l, e);
    if (l->count > 0)
        qsort(l->periods, l->count, sizeof *l->periods, order_int64s);
    return good;
}

/* The newest period that decides what is kept; 0: none. Future periods are left out: if a clock is ahead,
 * events with its time arrive, too. */
static int64_t find_newest(const struct look *l, int64_t now_ms, bool trusts_clock)
{
    const struct raw *r = l->raw->of;
    int64_t newest_ms = 0, latest_ms = raw_period(r, now_ms);
    for (size_t i = 0; i < l->count && l->periods[i] <= latest_ms; i++) {
        bool leaps = i > 0 && raw_period(r, l->periods[i] - 1) > newest_ms;
        if (leaps && !trusts_clock)
            break;
        newest_ms = l->periods[i];
    }
    return newest_ms;
}

static bool expire(struct mongo_store *m, struct mongo_raw *raw, int64_t now_ms, bool trusts_clock,
                   struct err *e)
{
    struct look l = {.m = m, .raw = raw};
    bool good = list_periods(&l, e);
    if (good)
        raw->newest_ms = find_newest(&l, now_ms, trusts_clock);
    int64_t before_ms = raw_first_kept(raw->of, raw->newest_ms);
    for (size_t i = 0; good && i < l.count && l.periods[i] < before_ms; i++)
        good = drop(&l, l.periods[i], e);
    free(l.periods);
    return good;
}

bool mongo_raw_expire(struct mongo_store *m, int64_t now_ms, bool trusts_clock, struct err *e)
{
    bool good = true;
    for (size_t i = 0; i < m->raw_count; i++) {
        const struct raw *r = m->raws[i].of;
        struct err later;
        if (r != NULL && raw_has_periods(r) && r->limit > 0)
            good &= expire(m, &m->raws[i], now_ms, trusts_clock, good ? e : &later);
    }
    return good;
}

/* ---- start */

static bson_t *delete_nothing(const struct mongo_place *place)
{
    return BCON_NEW("delete", BCON_UTF8(place->collection), "deletes", "[", "{", "q", "{", "_id",
                    BCON_UTF8(""), "}", "limit", BCON_INT32(1), "}", "]");
}

/* If a server has too few members, or none but itself, it says so either for the command or for its
 * concern. */
static bool is_of_concern(const bson_t *reply)
{
    int64_t code = mongo_number_at(reply, "code", 0);
    return code == CODE_BAD_VALUE || code == CODE_UNSATISFIABLE ||
           mongo_number_at(reply, "writeConcernError.code", 0) == CODE_UNSATISFIABLE;
}

/* Could documents be written where they go now, with this write concern? */
static bool check_concern(struct mongo_store *m, const struct raw *r, struct err *e)
{
    struct mongo_place place;
    bson_t concern, reply;
    struct text w = {0};
    mongo_raw_place(m, r, raw_period(r, clock_wall_ms(m->store.clock)), &place);
    mongo_raw_concern(r, m->client, &concern);
    bson_t *nothing = delete_nothing(&place);
    bool good = mongo_write_in(m->client, place.database, nothing, &concern, &reply, e);
    if (!good && is_of_concern(&reply)) {
        const struct err why = *e;
        raw_print_w(r, &w);
        err_set(e, EX_CONFIG, "found sources.%s.raw_w: %s, expected what the server can do: %s", r->source,
                w.ptr, why.text);
        text_fini(&w);
    }
    bson_destroy(nothing);
    bson_destroy(&reply);
    bson_destroy(&concern);
    return good;
}

/* Some servers reply even so, and the reply would be taken for that of the next command. So this uses its
 * own connection. */
static bool check_silence(struct mongo_store *m, const struct raw *r, struct err *e)
{
    bson_t reply;
    struct mongo_place place;
    struct mongo_client *client = mongo_client_open(m->uri, true, 0, e);
    if (client == NULL)
        return false;
    mongo_raw_place(m, r, 0, &place);
    bson_t *nothing = delete_nothing(&place);
    bson_t *concern = BCON_NEW("w", BCON_INT32(0));
    bool good = mongo_write_in(client, place.database, nothing, concern, &reply, e);
    bson_destroy(&reply);
    if (good) {
        good =
            mongo_ask(client, BCON_NEW("buildInfo", BCON_INT32(1)), &reply, e) &&
            (bson_has_field(&reply, "version") ||
             err_set(e, EX_CONFIG,
                     "found sources.%s.raw_w: 0, but %s answers what asks for no reply: expected 1 or more",
                     r->source, mongo_client_name(m->client)));
        bson_destroy(&reply);
    }
    bson_destroy(nothing);
    bson_destroy(concern);
    mongo_client_close(client);
    return good;
}

static bool check_name(const struct mongo_store *m, const struct raw *r, struct err *e)
{
    size_t bytes =
        strlen(mongo_client_database(m->client)) + strlen("_raw_") + strlen(r->source) + strlen("_201010");
    return r->growth != RAW_DATABASE_PER_MONTH || bytes < MONGO_DATABASE_BYTES ||
           err_set(e, EX_CONFIG,
                   "found sources.%s.raw_growth: database per month, expected a database of store.url and a "
                   "source of together at most %zu bytes: %s_raw_%s_201010 is too long a name",
                   r->source, MONGO_DATABASE_BYTES - 1 - strlen("_raw__201010"),
                   mongo_client_database(m->client), r->source);
}

void mongo_raw_init(struct mongo_store *m, const struct raw *const *raws, size_t count)
{
    m->raw_count = m->store.raw_count = count;
    m->raws = xcalloc(count + 1, sizeof *m->raws);
    m->store.raws = xcalloc(count + 1, sizeof *m->store.raws);
    for (size_t i = 0; i < count; i++) {
        m->raws[i].of = raws[i];
        m->store.raws[i].source = raws[i] != NULL ? raws[i]->source : NULL;
    }
}

/* A period that cannot be dropped does not stop counting: it is tried again later. */
static void expire_first(struct mongo_store *m)
{
    struct err e;
    char quoted[LOG_QUOTE_BYTES];
    if (!mongo_raw_expire(m, clock_wall_ms(m->store.clock), false, &e))
        log_warn("raw_expire_failed", "error=%s", log_quote(e.text, quoted));
}

bool mongo_raw_open(struct mongo_store *m, const struct store_options *options, struct err *e)
{
    m->has_indexes = !options->without_indexes;
    mongo_raw_init(m, options->raws, options->raw_count);
    for (size_t i = 0; i < m->raw_count; i++) {
        const struct raw *r = m->raws[i].of;
        if (r == NULL)
            continue;
        if (!check_name(m, r, e) || !(r->w == 0 ? check_silence(m, r, e) : check_concern(m, r, e)) ||
            (!raw_has_periods(r) && !mongo_raw_prepare(m, &m->raws[i], 0, e)))
            return false;
    }
    expire_first(m);
    return true;
}
