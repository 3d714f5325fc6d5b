#include "store/mongo/doc/watermarks.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/clock.h"
#include "store/common/watermarks.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

/* A reader's watermarks may be this old. A job deletes nothing before a watermark has been known for longer
 * (MONGO_KNOWN_MS). So scans need no further round trip, and notice every deletion. */
#define SEEN_MS 1000

static void take_dates(const bson_t *document, const char *member, struct watermarks *watermarks)
{
    for (int s = 0; s < SPAN_COUNT; s++) {
        char path[32];
        bson_iter_t it;
        snprintf(path, sizeof path, "%s.%s", member, span_name((enum span)s));
        bool found = mongo_find_member(document, path, &it) && BSON_ITER_HOLDS_DATE_TIME(&it);
        int64_t at_ms = found ? bson_iter_date_time(&it) : 0;
        bool may_be = at_ms > 0 && at_ms <= CIVIL_END_MS; /* other dates are damage by others */
        watermarks->before_ms[s] = may_be ? span_floor((enum span)s, at_ms) : 0;
    }
}

static void take_ttl(const bson_t *document, struct mongo_ttl *ttl)
{
    bson_iter_t it;
    *ttl = (struct mongo_ttl){0};
    for (int s = 0; s < SPAN_COUNT; s++) {
        char path[32];
        snprintf(path, sizeof path, "ttl.%s", span_name((enum span)s));
        int64_t age_ms = mongo_number_at(document, path, 0);
        ttl->age_ms[s] = age_ms > 0 ? age_ms : 0;
    }
    if (mongo_find_member(document, "ttl.since", &it) && BSON_ITER_HOLDS_DATE_TIME(&it))
        ttl->since_ms = bson_iter_date_time(&it);
}

struct asking {
    const struct mongo_store *m;
    const struct report *report;
    struct watermarks *watermarks;
    bool is_there; /* the report is in `reports`, and is not being dropped */
};

static bool take_watermarks(void *context, const bson_t *document)
{
    struct asking *a = context;
    struct mongo_ttl ttl;
    a->is_there = !bson_has_field(document, MONGO_DROPPING);
    take_dates(document, "expired", a->watermarks);
    take_ttl(document, &ttl);
    if (a->m->goes_by_clock)
        (void)store_move_watermarks(&a->m->store, a->report, ttl.age_ms, clock_wall_ms(a->m->store.clock),
                                    a->watermarks);
    return true;
}

static bool has_lower(const struct watermarks *watermarks, const struct watermarks *before)
{
    bool has = false;
    for (int s = 0; s < SPAN_COUNT; s++)
        has |= watermarks->before_ms[s] < before->before_ms[s];
    return has;
}

void mongo_know_watermarks(struct mongo_store *m, size_t report, const struct watermarks *watermarks)
{
    struct mongo_report *more = &m->more[report];
    for (size_t k = 0; k < COUNT_OF(more->sweep_at) && has_lower(watermarks, &more->watermarks); k++)
        text_clear(&more->sweep_at[k]);
    if (memcmp(&more->watermarks, watermarks, sizeof *watermarks) != 0)
        more->known_ms = clock_mono_ms(m->store.clock);
    more->watermarks = *watermarks;
}

bool mongo_watermarks(struct store *st, size_t report, struct watermarks *watermarks, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_report *more = &m->more[report];
    int64_t now_ms = clock_mono_ms(m->store.clock);
    *watermarks = more->watermarks;
    if (more->asked_ms != 0 && now_ms - more->asked_ms < SEEN_MS)
        return true;
    *watermarks = (struct watermarks){0};
    struct asking a = {m, &m->reports[report], watermarks, false};
    bson_t *options = BCON_NEW("projection", "{", "expired", BCON_BOOL(true), "ttl", BCON_BOOL(true),
                               MONGO_DROPPING, BCON_BOOL(true), "}");
    bool good = mongo_look(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(more->key)), options,
                           take_watermarks, &a, e);
    if (good && m->goes_by_clock && !a.is_there)
        good = err_set(e, EX_TEMPFAIL, "%s: generation %d of report %s was dropped meanwhile: query it again",
                       mongo_client_name(m->client), m->reports[report].generation, m->reports[report].name);
    if (good) {
        mongo_know_watermarks(m, report, watermarks);
        more->asked_ms = now_ms;
    }
    return good;
}

static bool see_watermarks(void *context, const bson_t *document)
{
    struct mongo_store *m = context;
    for (size_t r = 0; r < m->store.report_count; r++) {
        struct mongo_report *more = &m->more[r];
        if (strcmp(mongo_text_at(document, "_id"), more->key) != 0)
            continue;
        struct watermarks watermarks;
        take_dates(document, "expired", &watermarks);
        take_dates(document, "swept", &more->swept);
        take_ttl(document, &more->ttl);
        mongo_know_watermarks(m, r, &watermarks);
    }
    return true;
}

bool mongo_refresh_watermarks(struct mongo_store *m, struct err *e)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    bson_t *options = BCON_NEW("projection", "{", "expired", BCON_BOOL(true), "swept", BCON_BOOL(true), "ttl",
                               BCON_BOOL(true), "}");
    bool good = mongo_look(m->client, MONGO_REPORTS, NULL, options, see_watermarks, m, e);
    for (size_t r = 0; good && r < m->store.report_count; r++)
        m->more[r].asked_ms = now_ms;
    return good;
}

void mongo_append_dates(bson_t *update, const char *member, const struct watermarks *before,
                        const struct watermarks *watermarks)
{
    bson_t max = BSON_INITIALIZER;
    for (int s = 0; s < SPAN_COUNT; s++) {
        char path[32];
        snprintf(path, sizeof path, "%s.%s", member, span_name((enum span)s));
        if (watermarks->before_ms[s] > (before != NULL ? before->before_ms[s] : 0))
            BSON_APPEND_DATE_TIME(&max, path, watermarks->before_ms[s]);
    }
    mongo_add_operator(update, "$max", &max);
}

bool mongo_change_report(struct mongo_store *m, size_t report, bson_t *update, struct err *e)
{
    bool matched;
    ASSERT(!bson_empty(update)); /* an empty update would replace the document */
    bool good = mongo_change(m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(m->more[report].key)),
                             update, false, &matched, e);
    if (good && !matched)
        good = err_set(e, EX_DATAERR, "%s: report %s is not in `reports` any more: restart tallyd",
                       mongo_client_name(m->client), m->reports[report].name);
    return good;
}

bool mongo_put_dates(struct mongo_store *m, size_t report, const char *member,
                     const struct watermarks *before, const struct watermarks *watermarks, struct err *e)
{
    bson_t update = BSON_INITIALIZER;
    mongo_append_dates(&update, member, before, watermarks);
    return mongo_change_report(m, report, &update, e);
}

/* The resolution at whose starts the watermark of `span` may stand: a watermark never splits a document. */
enum span mongo_goes_by(const struct report *r, enum span span)
{
    return mongo_kind_for(r, span)->span;
}
