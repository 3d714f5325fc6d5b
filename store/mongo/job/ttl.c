#include "store/mongo/job/ttl.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "store/common/watermarks.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define CODE_INDEX_NOT_FOUND 27
#define TRIES                5 /* tries to make an index while others drop it */
#define AGAIN_MS             100
#define KEY                  "metadata.date"
#define DESCENDING           (-1) /* a report without dimensions already has the ascending index */

/* ---- what is wanted */

static int64_t longest_ms(enum span span)
{
    const int64_t day_ms = DAY_MS;
    return span == SPAN_YEAR ? 366 * day_ms : span == SPAN_MONTH ? 31 * day_ms : span_next(span, 0);
}

/* Buckets expire by the next longer period: the first document of a period waits for the last. Buckets of a
 * sketch wait as long as those of the same span in plain documents, since one watermark holds for both. */
int64_t mongo_ttl_s(const struct mongo_store *m, size_t report, const struct mongo_kind *k)
{
    const struct report *r = &m->reports[report];
    enum span longest = mongo_longest(r, k), period = (enum span)(longest + 1);
    if (k->of_sketch && mongo_goes_by(r, longest) > period)
        period = mongo_goes_by(r, longest);
    ASSERT(k->span <= period || k->span == SPAN_WEEK);
    int64_t keep_ms = r->keep_ms[longest], s = 0;
    if (m->with_ttl && keep_ms > 0)
        s = (keep_ms + longest_ms(period) + MONGO_TTL_MARGIN_MS) / SECOND_MS;
    return s <= INT32_MAX ? s : 0; /* the server's limit */
}

int64_t mongo_ttl_left(const struct mongo_store *m, size_t report, const struct mongo_kind *k, int64_t now_ms)
{
    int64_t ttl_s = mongo_ttl_s(m, report, k), since_ms = m->more[report].ttl.since_ms;
    if (ttl_s == 0)
        return INT64_MAX;
    return now_ms < since_ms + MONGO_TTL_GRACE_MS ? 0 : now_ms - ttl_s * SECOND_MS - MONGO_TTL_GRACE_MS;
}

/* Are buckets of this resolution deleted with documents of a sketch? */
static bool ends_with(const struct mongo_store *m, size_t report, size_t sketch, enum span span)
{
    return mongo_ttl_s(m, report, mongo_sketch_kind_for(&m->reports[report], sketch, span)) > 0;
}

/* The age at which buckets are deleted with documents of histograms, distinct counts and newest events; 0:
 * they are not. */
static int64_t sketch_age(const struct mongo_store *m, size_t report, enum span span)
{
    const struct report *r = &m->reports[report];
    const bool ends = (r->sketch_count > 0 && ends_with(m, report, 0, span)) ||
                      (r->newest > 0 && span == SPAN_DAY && ends_with(m, report, r->sketch_count, span));
    return ends ? r->keep_ms[span] : 0;
}

/* The ages at which buckets are deleted with their documents: the shortest, if several have them. */
static void find_ages(const struct mongo_store *m, size_t report, int64_t age_ms[SPAN_COUNT])
{
    const struct report *r = &m->reports[report];
    memset(age_ms, 0, SPAN_COUNT * sizeof *age_ms);
    for (int s = (int)report_cell(r); s < SPAN_COUNT; s++) {
        const struct mongo_kind *k = mongo_kind_for(r, (enum span)s);
        const int64_t of_sketch_ms = sketch_age(m, report, (enum span)s);
        age_ms[s] = mongo_ttl_s(m, report, k) > 0 ? r->keep_ms[mongo_longest(r, k)] : 0;
        if (of_sketch_ms > 0 && (age_ms[s] == 0 || of_sketch_ms < age_ms[s]))
            age_ms[s] = of_sketch_ms;
    }
}

/* ---- what `reports` says */

static bool has_any(const int64_t age_ms[SPAN_COUNT])
{
    bool has = false;
    for (int s = 0; s < SPAN_COUNT; s++)
        has |= age_ms[s] > 0;
    return has;
}

/* The server deletes documents by its own clock. */
bool mongo_ttl_read_clock(struct mongo_store *m, int64_t *now_ms, struct err *e)
{
    bson_t reply;
    bool good = mongo_ask(m->client, BCON_NEW("hello", BCON_INT32(1)), &reply, e);
    *now_ms = mongo_number_at(&reply, "localTime", clock_wall_ms(m->store.clock));
    bson_destroy(&reply);
    return good;
}

/* Lowers `ttl` for readers to the shorter of the current and the wanted ages, and notes for writers that an
 * index is being changed. */
static bool note_change(struct mongo_store *m, size_t report, struct err *e)
{
    int64_t age_ms[SPAN_COUNT], now_ms;
    if (!mongo_ttl_read_clock(m, &now_ms, e))
        return false;
    bson_t update = BSON_INITIALIZER, min = BSON_INITIALIZER;
    find_ages(m, report, age_ms);
    for (int s = 0; s < SPAN_COUNT; s++) {
        char path[32];
        snprintf(path, sizeof path, "ttl.%s", span_name((enum span)s));
        if (age_ms[s] > 0)
            BSON_APPEND_INT64(&min, path, age_ms[s]);
    }
    mongo_add_operator(&update, "$min", &min);
    BCON_APPEND(&update, "$set", "{", "ttl.since", BCON_DATE_TIME(now_ms), "}");
    return mongo_change_report(m, report, &update, e);
}

/* ---- indexes */

/* Reads the TTL of an index of our name. */
static bool see_index(void *context, const bson_t *index)
{
    int64_t *ttl_s = context;
    bson_iter_t key;
    if (strcmp(mongo_text_at(index, "name"), MONGO_INDEX_TTL) != 0)
        return true;
    bool is_ours = mongo_begin_members(index, "key", &key) && bson_iter_next(&key) &&
                   strcmp(bson_iter_key(&key), KEY) == 0 && bson_iter_as_int64(&key) == DESCENDING &&
                   !bson_iter_next(&key) && !bson_has_field(index, "partialFilterExpression");
    *ttl_s = is_ours ? mongo_number_at(index, "expireAfterSeconds", 0) : 0;
    return false;
}

bool mongo_ttl_find(struct mongo_store *m, const char *collection, int64_t *ttl_s, struct err *e)
{
    *ttl_s = -1;
    return mongo_list(m->client, NULL, BCON_NEW("listIndexes", BCON_UTF8(collection)), MONGO_BATCH, see_index,
                      ttl_s, e);
}

static bool refuse(const struct mongo_store *m, const char *collection, const char *why, struct err *e)
{
    return err_set(e, EX_CONFIG,
                   "found store.ttl: true, but in %s, %s cannot have the index " MONGO_INDEX_TTL " {" KEY
                   ": -1} that expires documents: %s",
                   mongo_client_name(m->client), collection, why);
}

static bool drop(struct mongo_store *m, const char *collection, struct err *e)
{
    bson_t reply;
    bson_t *command = BCON_NEW("dropIndexes", BCON_UTF8(collection), "index", BCON_UTF8(MONGO_INDEX_TTL));
    bool good = mongo_write(m->client, command, &reply, e);
    int64_t code = good ? 0 : mongo_number_at(&reply, "code", 0);
    bson_destroy(&reply);
    bson_destroy(command);
    return good || code == MONGO_NAMESPACE_NOT_FOUND || code == CODE_INDEX_NOT_FOUND;
}

/* Makes the index. False: it is refused. If it succeeds, *e is the error for an index that is then not
 * listed. */
static bool create(struct mongo_store *m, const char *collection, int64_t ttl_s, struct err *e)
{
    enum mongo_index state;
    bson_t *key = BCON_NEW(KEY, BCON_INT32(DESCENDING));
    const struct mongo_index_wanted wanted = {
        .collection = collection, .name = MONGO_INDEX_TTL, .key = key, .ttl_s = ttl_s};
    bool good = mongo_create_index(m->client, &wanted, &state, e);
    bson_destroy(key);
    if (good && state == INDEX_IS_THERE)
        err_set(e, EX_CONFIG, "the server does not list it afterwards");
    return good;
}

/* Other writers may start now, too, and drop this index or make theirs: then theirs holds. Another index
 * with the same key may be in the way. A server may also make an index that deletes nothing, without an
 * error. */
static bool make(struct mongo_store *m, const char *collection, int64_t ttl_s, struct err *e)
{
    struct err why;
    int64_t found_s = -1;
    for (int tries = 0; tries < TRIES && found_s < 0; tries++) {
        if (tries > 0)
            clock_sleep(AGAIN_MS);
        if (!create(m, collection, ttl_s, &why)) {
            *e = why;
            return !why.retryable && why.code != EX_NOPERM && refuse(m, collection, why.text, e);
        }
        if (!mongo_ttl_find(m, collection, &found_s, e))
            return false;
    }
    return found_s > 0 || refuse(m, collection, found_s == 0 ? "it expires nothing there" : why.text, e);
}

struct opening {
    struct mongo_store *m;
    int64_t told_ms; /* when readers were last told, by the server's clock */
};

/* A reader that asked just before may still believe that nothing is deleted. */
static bool wait_until_known(const struct opening *o, struct err *e)
{
    int64_t now_ms;
    if (!mongo_ttl_read_clock(o->m, &now_ms, e))
        return false;
    int64_t wait_ms = o->told_ms + MONGO_KNOWN_MS - now_ms;
    if (wait_ms > 0) /* longer than that only by a clock that went back */
        clock_sleep(wait_ms < MONGO_KNOWN_MS ? wait_ms : MONGO_KNOWN_MS);
    return true;
}

static bool change(const struct opening *o, const struct mongo_collection *c, int64_t found_s, int64_t ttl_s,
                   struct err *e)
{
    struct mongo_store *m = o->m;
    if (!wait_until_known(o, e) || !note_change(m, c->report, e))
        return false;
    failpoint(FAILPOINT_TTL_NOTED);
    if (found_s >= 0 && !drop(m, c->name, e))
        return false;
    failpoint(FAILPOINT_TTL_DROPPED);
    if (ttl_s > 0 && !make(m, c->name, ttl_s, e))
        return false;
    failpoint(FAILPOINT_TTL_MADE);
    return note_change(m, c->report, e); /* making an index may take long */
}

static bool open_collection(void *context, const struct mongo_collection *c, struct err *e)
{
    const struct opening *o = context;
    int64_t found_s;
    if (c->holds != HOLDS_DOCUMENTS || !o->m->more[c->report].ttl_waits)
        return true;
    int64_t ttl_s = mongo_ttl_s(o->m, c->report, c->kind);
    return mongo_ttl_find(o->m, c->name, &found_s, e) &&
           (found_s == (ttl_s > 0 ? ttl_s : -1) || change(o, c, found_s, ttl_s, e));
}

/* Does `ttl` cover the wanted indexes? */
static bool is_said(const int64_t age_ms[SPAN_COUNT], const struct mongo_ttl *ttl)
{
    bool is = true;
    for (int s = 0; s < SPAN_COUNT; s++)
        is &= age_ms[s] == 0 || (ttl->age_ms[s] > 0 && ttl->age_ms[s] <= age_ms[s]);
    return is;
}

bool mongo_ttl_open(struct mongo_store *m, struct err *e)
{
    struct opening o = {.m = m};
    bool any = false;
    if (!mongo_refresh_watermarks(m, e))
        return false;
    for (size_t r = 0; r < m->store.report_count; r++) {
        int64_t age_ms[SPAN_COUNT];
        find_ages(m, r, age_ms);
        m->more[r].ttl_waits = has_any(age_ms) || has_any(m->more[r].ttl.age_ms);
        any |= m->more[r].ttl_waits;
        if (!is_said(age_ms, &m->more[r].ttl) && !note_change(m, r, e))
            return false;
    }
    if (!any)
        return true;
    if (!mongo_refresh_watermarks(m, e))
        return false;
    for (size_t r = 0; r < m->store.report_count; r++)
        o.told_ms = m->more[r].ttl.since_ms > o.told_ms ? m->more[r].ttl.since_ms : o.told_ms;
    return mongo_each_collection(m, open_collection, &o, e);
}

/* ---- when time has passed */

struct looking {
    size_t report;
    bool is_same;
    struct mongo_store *m;
};

static bool compare(void *context, const struct mongo_collection *c, struct err *e)
{
    struct looking *l = context;
    int64_t found_s;
    if (c->holds != HOLDS_DOCUMENTS || c->report != l->report)
        return true;
    int64_t ttl_s = mongo_ttl_s(l->m, c->report, c->kind);
    bool good = mongo_ttl_find(l->m, c->name, &found_s, e);
    l->is_same &= good && found_s == (ttl_s > 0 ? ttl_s : -1);
    return good;
}

static void append_ttl(bson_t *update, const struct mongo_ttl *ttl)
{
    bson_t set, of;
    bool has = has_any(ttl->age_ms);
    BSON_APPEND_DOCUMENT_BEGIN(update, has ? "$set" : "$unset", &set);
    BSON_APPEND_DOCUMENT_BEGIN(&set, "ttl", &of);
    for (int s = 0; s < SPAN_COUNT; s++) {
        if (ttl->age_ms[s] > 0)
            BSON_APPEND_INT64(&of, span_name((enum span)s), ttl->age_ms[s]);
    }
    BSON_APPEND_DATE_TIME(&of, "since", ttl->since_ms);
    bson_append_document_end(&set, &of);
    bson_append_document_end(update, &set);
}

/* Moves the watermarks to where readers had them by the old `ttl`, unless another writer changes `ttl`
 * meanwhile. */
static bool settle(struct mongo_store *m, size_t report, const struct mongo_ttl *wanted, int64_t now_ms,
                   struct err *e)
{
    struct mongo_report *more = &m->more[report];
    struct watermarks watermarks = {0};
    bson_t update = BSON_INITIALIZER;
    (void)store_move_watermarks(&m->store, &m->reports[report], more->ttl.age_ms, now_ms, &watermarks);
    mongo_append_dates(&update, "expired", NULL, &watermarks);
    append_ttl(&update, wanted);
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(more->key), "ttl.since", BCON_DATE_TIME(more->ttl.since_ms));
    bool good = mongo_change(m->client, MONGO_REPORTS, filter, &update, false, NULL, e);
    failpoint(FAILPOINT_TTL_SETTLED);
    return good;
}

bool mongo_ttl_settle(struct mongo_store *m, size_t report, struct err *e)
{
    struct mongo_report *more = &m->more[report];
    struct looking look = {.m = m, .report = report, .is_same = true};
    struct mongo_ttl wanted = {.since_ms = more->ttl.since_ms};
    int64_t now_ms;
    find_ages(m, report, wanted.age_ms);
    if (!more->ttl_waits || memcmp(&wanted, &more->ttl, sizeof wanted) == 0)
        return true;
    if (!mongo_ttl_read_clock(m, &now_ms, e))
        return false;
    if (now_ms < more->ttl.since_ms + MONGO_TTL_SETTLE_MS)
        return true;
    if (!mongo_each_collection(m, compare, &look, e))
        return false;
    more->ttl_waits = look.is_same; /* else another writer started later, and decides */
    return !look.is_same || settle(m, report, &wanted, now_ms, e);
}
