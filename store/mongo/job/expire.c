/* Expires what reports need not keep: moves the watermarks in `reports`, then deletes documents before them,
 * or removes expired time buckets from documents that stay.
 *
 *   reports   { _id: "pages", …, expired: { minute: ISODate(…), hour: … }, swept: { minute: … } }
 *
 * `expired` and `swept` only grow ($max), except over time without any event (mongo_move_back()). Deleting
 * before a watermark twice, or by several daemons at once, is harmless; so daemons need not agree. A batch
 * that was logged before a watermark moved may make a document before it again, or bring removed buckets
 * back: nobody reads them. The next run looks for expired documents from the first one on, so it deletes
 * such a document. A sweep looks for expired buckets from the last document of the sweep before it.
 */
#include "store/mongo/job/expire.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "store/common/watermarks.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/newest.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/ttl.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/wire/page.h"
#include "store/mongo/writer/longer.h"

#include <inttypes.h>
#include <stdio.h>

/* Writers and jobs use watermarks that are at most this old. A watermark moves
 * back only to a time that is ahead by more: by then, writers and jobs have read it again. */
#define STALE_MS          60000
#define RESTORE_MARGIN_MS (10 * (int64_t)MINUTE_MS)
#define UNROLLED_WAIT_MS  (10 * (int64_t)MINUTE_MS)

/* Documents per request: 50 ms with SecantusDB, 4 ms with FerretDB, measured. */
#define PAGE 100

/* Would the shortest documents before this time expire while longer ones lack some of their counts? A writer
 * rolls its own up. */
static bool is_unrolled(struct mongo_store *m, enum span fine, int64_t before_ms, bool *is, struct err *e)
{
    const struct mongo_unrolled_seen *seen = mongo_see_unrolled(m, e);
    const bool is_idle = m->writer.slot[0] != '\0' && m->batch.step <= STEP_LOGGING;
    *is = seen != NULL && mongo_is_unrolled(seen, fine, 0, before_ms);
    if (seen == NULL || !*is || m->longer.unrolled_count == 0 || !is_idle)
        return seen != NULL;
    if (!mongo_roll_up(m, true, e) || !mongo_tell_rolled(m, e))
        return false;
    m->reader.unrolled.is_read = false;
    seen = mongo_see_unrolled(m, e);
    *is = seen != NULL && mongo_is_unrolled(seen, fine, 0, before_ms);
    return seen != NULL;
}

/* Waits for roll-ups, but old events that come all the time keep nothing from expiring for ever: what was
 * lacking at first is rolled up by then. */
static bool must_wait(struct mongo_store *m, size_t report, const struct watermarks *watermarks, bool *must,
                      struct err *e)
{
    const struct report *r = &m->reports[report];
    const int64_t now_ms = clock_mono_ms(m->store.clock);
    int64_t *since_ms = &m->more[report].waits_since_ms;
    const struct mongo_kind *fine = mongo_kinds(r, NULL);
    if (!is_unrolled(m, fine->span, watermarks->before_ms[mongo_longest(r, fine)], must, e))
        return false;
    *since_ms = !*must ? 0 : *since_ms == 0 ? now_ms : *since_ms;
    *must = *must && now_ms - *since_ms < UNROLLED_WAIT_MS + m->longer.delay_ms;
    return true;
}

static bool move_watermarks(struct mongo_store *m, size_t report, int64_t now_ms, struct err *e)
{
    const struct report *r = &m->reports[report];
    struct watermarks *known = &m->more[report].watermarks, watermarks = *known;
    bool waits;
    if (!store_move_watermarks(&m->store, r, r->keep_ms, now_ms, &watermarks)) {
        m->more[report].waits_since_ms = 0; /* another may have moved it */
        return true;
    }
    if (!must_wait(m, report, &watermarks, &waits, e))
        return false;
    if (waits)
        return true;
    m->worker.expire_clean = 0;
    failpoint(FAILPOINT_EXPIRE_BEFORE_WATERMARK);
    if (!mongo_put_dates(m, report, "expired", known, &watermarks, e))
        return false;
    m->more[report].waits_since_ms = 0;
    mongo_know_watermarks(m, report, &watermarks); /* from here on nobody reads earlier buckets */
    failpoint(FAILPOINT_EXPIRE_WATERMARK_MOVED);
    return true;
}

/* Documents before this time may exist, or may still come from daemons that let events in by the old
 * watermarks. It also uses the server's clock, since ours may be behind. */
static bool find_safe(struct mongo_store *m, size_t report, const struct watermarks *watermarks,
                      int64_t *safe_ms, struct err *e)
{
    int64_t before_ms = watermarks->before_ms[report_cell(&m->reports[report])];
    int64_t times_ms[4] = {clock_wall_ms(m->store.clock)};
    if (!mongo_ttl_read_clock(m, &times_ms[1], e) ||
        !store_newest_end(&m->store, report, watermarks, before_ms, &times_ms[2], e) ||
        !mongo_documents_end(m, report, before_ms, &times_ms[3], e))
        return false;
    *safe_ms = 0;
    for (size_t i = 0; i < COUNT_OF(times_ms); i++)
        *safe_ms = times_ms[i] > *safe_ms ? times_ms[i] : *safe_ms;
    *safe_ms += RESTORE_MARGIN_MS;
    return true;
}

/* Lowers watermarks and `swept`, if the watermarks are still as they were read. */
static bool put_lower(struct mongo_store *m, size_t report, const struct watermarks *before,
                      const struct watermarks *watermarks, bool *matched, struct err *e)
{
    bson_t filter = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", m->more[report].key);
    for (int s = 0; s < SPAN_COUNT; s++) {
        char path[32];
        if (watermarks->before_ms[s] >= before->before_ms[s])
            continue;
        snprintf(path, sizeof path, "expired.%s", span_name((enum span)s));
        BSON_APPEND_DATE_TIME(&filter, path, before->before_ms[s]);
        BSON_APPEND_DATE_TIME(&set, path, watermarks->before_ms[s]);
        snprintf(path, sizeof path, "swept.%s", span_name((enum span)s));
        if (m->more[report].swept.before_ms[s] > watermarks->before_ms[s])
            BSON_APPEND_DATE_TIME(&set, path, watermarks->before_ms[s]);
    }
    mongo_add_operator(&update, "$set", &set);
    return mongo_change(m->client, MONGO_REPORTS, &filter, &update, false, matched, e);
}

bool mongo_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    int64_t safe_ms;
    bool matched;
    if (!mongo_refresh_watermarks(m, e))
        return false;
    const struct watermarks before = m->more[report].watermarks;
    struct watermarks watermarks = before;
    if (!find_safe(m, report, &before, &safe_ms, e))
        return false;
    if (!store_lower_watermarks(st, &m->reports[report], safe_ms, now_ms, &watermarks))
        return true;
    if (!put_lower(m, report, &before, &watermarks, &matched, e))
        return false;
    return mongo_refresh_watermarks(m, e); /* if it did not match, another daemon moved them */
}

static bool delete_page(struct mongo_store *m, const struct mongo_range *range, const struct mongo_page *p,
                        int64_t *count, struct err *e)
{
    failpoint(FAILPOINT_EXPIRE_BEFORE_COMMIT);
    bool good = mongo_page_delete(m->client, range, p, count, e);
    failpoint(FAILPOINT_EXPIRE_AFTER_COMMIT);
    return good;
}

/* Removes the buckets of a resolution, for every measure. */
static bool unset_page(struct mongo_store *m, size_t report, const char *collection, enum span span,
                       const struct mongo_page *p, int64_t *count, struct err *e)
{
    bson_t update = BSON_INITIALIZER, unset = BSON_INITIALIZER, filter;
    mongo_page_filter(p, NULL, &filter);
    for (size_t i = 0; i < m->reports[report].measure_count; i++) {
        char path[MEASURE_NAME_BYTES + MONGO_PATH_BYTES];
        if (measure_has_sketch(&m->reports[report].measures[i]))
            continue;
        snprintf(path, sizeof path, "%s%s", m->more[report].fields[i], mongo_member(span));
        BSON_APPEND_UTF8(&unset, path, "");
    }
    mongo_add_operator(&update, "$unset", &unset);
    failpoint(FAILPOINT_EXPIRE_BEFORE_COMMIT);
    bool good = mongo_change_all(m->client, collection, &filter, &update, count, e);
    failpoint(FAILPOINT_EXPIRE_AFTER_COMMIT);
    return good;
}

/* State of one call, which works until its time is over. */
struct expiring {
    struct mongo_store *m;
    size_t report;
    const struct mongo_kind *kind;
    struct text *sweep_at;  /* progress of the sweep of this kind */
    const char *collection; /* borrowed */
    struct expired *expired;
    int64_t now_ms, end_ms;
};

static bool is_over(struct expiring *x)
{
    x->expired->more = clock_mono_ms(x->m->store.clock) >= x->end_ms;
    return x->expired->more;
}

/* Has the watermark been known long enough, and was it read lately? Asked after documents were found, and
 * before they are deleted. */
static bool is_known(struct expiring *x)
{
    const struct mongo_report *more = &x->m->more[x->report];
    int64_t now_ms = clock_mono_ms(x->m->store.clock);
    bool is = now_ms - more->known_ms >= MONGO_KNOWN_MS && now_ms - more->asked_ms < STALE_MS;
    x->expired->more = x->expired->more || !is;
    return is;
}

/* Deletes all documents with `_id`s from `from` to `to`. */
static bool delete_before(struct expiring *x, const char *from, const char *to, struct err *e)
{
    struct mongo_store *m = x->m;
    size_t count = PAGE;
    while (count == PAGE) {
        const struct mongo_range range = {x->collection, from, to, false, NULL};
        struct mongo_page p = {.count = 0};
        int64_t deleted = 0;
        bool good = mongo_page_find(m->client, &range, PAGE, &p, e);
        count = p.count > 0 && is_known(x) ? p.count : 0;
        good = good && (count == 0 || delete_page(m, &range, &p, &deleted, e));
        x->expired->rows += (uint64_t)deleted;
        mongo_page_fini(&p);
        if (!good)
            return false;
        /* deleted 0: others did it; the next run goes on */
        if (count == PAGE && (deleted == 0 || is_over(x)))
            break;
    }
    return true;
}

/* Deletes documents that have expired entirely. If the server deletes them, only those that it left. */
static bool delete_documents(struct expiring *x, struct err *e)
{
    struct mongo_report *more = &x->m->more[x->report];
    int64_t watermark_ms = more->watermarks.before_ms[mongo_longest(&x->m->reports[x->report], x->kind)],
            left_ms = mongo_ttl_left(x->m, x->report, x->kind, x->now_ms),
            to_ms = watermark_ms < left_ms ? watermark_ms : left_ms;
    uint64_t rows = x->expired->rows;
    char time[MONGO_TIME_BYTES];
    bool good = to_ms <= 0 || delete_before(x, "", mongo_time(x->kind->span, to_ms, time), e);
    if (x->expired->rows > rows && left_ms < INT64_MAX && !more->ttl_is_told) {
        log_warn("ttl_left",
                 "collection=%s documents=%" PRIu64
                 " next=\"tallyd deletes documents that the server should have expired\"",
                 x->collection, x->expired->rows - rows);
        more->ttl_is_told = true;
    }
    return good;
}

/* The start of a sweep: the last document of the sweep before. Stragglers may have been written to it since;
 * earlier documents are not looked at again. */
static int64_t sweep_from(const struct expiring *x, enum span span)
{
    const struct mongo_report *more = &x->m->more[x->report];
    int64_t swept_ms = more->swept.before_ms[span];
    int64_t deleted_ms = more->watermarks.before_ms[mongo_longest(&x->m->reports[x->report], x->kind)];
    int64_t from_ms = swept_ms > 0 ? span_floor(x->kind->span, swept_ms - 1) : 0;
    return from_ms > deleted_ms ? from_ms : deleted_ms;
}

static bool end_sweep(struct expiring *x, enum span span, struct err *e)
{
    struct mongo_report *more = &x->m->more[x->report];
    struct watermarks swept = more->swept;
    swept.before_ms[span] = more->watermarks.before_ms[span];
    text_clear(x->sweep_at);
    if (!mongo_put_dates(x->m, x->report, "swept", &more->swept, &swept, e))
        return false;
    more->swept = swept;
    return true;
}

static bool sweep_page(struct expiring *x, enum span span, bool *is_last, struct err *e)
{
    struct mongo_report *more = &x->m->more[x->report];
    char from[MONGO_TIME_BYTES] = "", to[MONGO_TIME_BYTES];
    struct mongo_page p = {.count = 0};
    int64_t changed = 0, from_ms = sweep_from(x, span);
    bool goes_on = x->sweep_at->len > 0;
    if (from_ms > 0)
        mongo_time(x->kind->span, from_ms, from);
    mongo_time(x->kind->span, more->watermarks.before_ms[span], to);
    const struct mongo_range range = {x->collection, goes_on ? x->sweep_at->ptr : from, to, goes_on, NULL};
    bool good = mongo_page_find(x->m->client, &range, PAGE, &p, e);
    bool goes = good && p.count > 0 && is_known(x);
    *is_last = p.count < PAGE && (goes || p.count == 0);
    good = good && (!goes || unset_page(x->m, x->report, x->collection, span, &p, &changed, e));
    x->expired->rows += (uint64_t)changed;
    if (good && goes) {
        text_clear(x->sweep_at);
        text_puts(x->sweep_at, p.last.ptr);
    }
    mongo_page_fini(&p);
    return good;
}

/* Removes expired buckets from documents that stay for their longer resolutions. */
static bool unset_spans(struct expiring *x, struct err *e)
{
    const struct mongo_report *more = &x->m->more[x->report];
    const struct report *r = &x->m->reports[x->report];
    enum span span = x->kind->finest;
    bool is_last = mongo_plain_measures(r) == 0 || span == mongo_longest(r, x->kind) ||
                   more->watermarks.before_ms[span] <= more->swept.before_ms[span];
    while (!is_last && is_known(x)) {
        if (!sweep_page(x, span, &is_last, e) || (is_last && !end_sweep(x, span, e)))
            return false;
        if (!is_last && is_over(x))
            break;
    }
    return true;
}

/* Expires the documents of one kind. Those of a sketch expire as a whole. */
static bool expire_kind(void *context, const struct mongo_collection *c, struct err *e)
{
    struct expiring *x = context;
    x->kind = c->kind;
    x->collection = c->name;
    x->sweep_at = &x->m->more[x->report].sweep_at[c->kind->span];
    return x->expired->more ||
           (delete_documents(x, e) && (x->expired->more || c->kind->of_sketch || unset_spans(x, e)));
}

/* Deletes the rankings of expired periods. */
static bool delete_tops(struct expiring *x, struct err *e)
{
    struct mongo_store *m = x->m;
    char collection[MONGO_NAME_BYTES];
    x->collection = mongo_collection(m, x->report, MONGO_TOP, collection);
    for (size_t i = 0; i < MONGO_TOP_SPANS && !x->expired->more; i++) {
        enum span span = mongo_top_spans[i];
        char from[MONGO_TOP_ID_BYTES], to[MONGO_TOP_ID_BYTES];
        snprintf(from, sizeof from, "%s/", span_name(span));
        mongo_top_id(span, m->more[x->report].watermarks.before_ms[span], to);
        if (m->more[x->report].watermarks.before_ms[span] > 0 && !delete_before(x, from, to, e))
            return false;
    }
    return true;
}

/* Expires the report whose turn it is. Each report gets its turn, however slow the server is, and even if
 * others fail. */
static bool expire_next(struct mongo_store *m, int64_t now_ms, int64_t end_ms, struct expired *expired,
                        struct err *e)
{
    struct expired one = {0};
    struct expiring x = {
        .m = m, .report = m->worker.expire_next, .expired = &one, .now_ms = now_ms, .end_ms = end_ms};
    m->worker.expire_next = (x.report + 1) % m->store.report_count;
    bool good = mongo_each_kind(m, x.report, true, expire_kind, &x, e) && (one.more || delete_tops(&x, e));
    expired->rows += one.rows;
    m->worker.expire_clean = good && one.rows == 0 && !one.more ? m->worker.expire_clean + 1 : 0;
    return good;
}

static bool expire_reports(struct mongo_store *m, int64_t now_ms, struct expired *expired, struct err *e)
{
    const size_t count = m->store.report_count;
    if (!mongo_refresh_watermarks(m, e))
        return false;
    for (size_t r = 0; r < count; r++) {
        if (!mongo_ttl_settle(m, r, e) || !move_watermarks(m, r, now_ms, e))
            return false;
    }
    int64_t end_ms = clock_mono_ms(m->store.clock) + STORE_EXPIRE_MS;
    for (size_t i = 0; i < count && m->worker.expire_clean < count; i++) {
        if (i > 0 && clock_mono_ms(m->store.clock) >= end_ms)
            break;
        if (!expire_next(m, now_ms, end_ms, expired, e))
            return false;
    }
    /* also if looking at all reports takes longer than a call */
    expired->more = m->worker.expire_clean < count;
    if (!expired->more)
        m->worker.expire_clean = 0;
    return true;
}

/* Raw events that cannot be dropped do not stop the reports from expiring. */
bool mongo_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct err of_raw;
    bool raw_good = mongo_raw_expire(m, now_ms, trusts_clock, &of_raw);
    if (!expire_reports(m, now_ms, expired, e))
        return false;
    if (!raw_good)
        *e = of_raw;
    return raw_good;
}
