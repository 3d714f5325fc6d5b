#include "store/mongo/doc/version_stamps.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

void mongo_stamp_id(const struct mongo_store *m, const struct mongo_target *t, size_t report, struct text *id)
{
    text_clear(id);
    text_printf(id, "%s/%s", t->job, m->more[report].key);
}

const char *mongo_stamp_path(const char *member, const struct mongo_target *t, int64_t start_ms,
                             char buf[MONGO_STAMP_BYTES])
{
    char time[MONGO_TIME_BYTES];
    snprintf(buf, MONGO_STAMP_BYTES, "%s.%s", member, mongo_time(t->stamped, start_ms, time));
    return buf;
}

/* ---- reading */

static int compare_stamps(const void *a, const void *b)
{
    const struct mongo_version_stamp *x = a, *y = b;
    return order_int64(x->start_ms, y->start_ms);
}

void mongo_take_stamps(const struct mongo_target *t, const bson_t *document,
                       struct mongo_version_stamps *stamps)
{
    bson_iter_t at;
    *stamps = (struct mongo_version_stamps){.has_begun = bson_has_field(document, "since"),
                                            .fence = mongo_number_at(document, "fence", 0),
                                            .until_ms = mongo_number_at(document, "until", 0),
                                            .last_run_ms = mongo_number_at(document, "last_run", 0)};
    stamps->is_stale = mongo_number_at(document, "stale", 0) != 0;
    snprintf(stamps->owner, sizeof stamps->owner, "%s", mongo_text_at(document, "owner"));
    snprintf(stamps->start, sizeof stamps->start, "%s", mongo_text_at(document, "start"));
    for (bool more = mongo_begin_members(document, "written", &at); more && bson_iter_next(&at);) {
        char path[MONGO_STAMP_BYTES];
        struct mongo_version_stamp stamp = {.written = bson_iter_as_int64(&at)};
        if (!mongo_parse_time(t->stamped, bson_iter_key(&at), &stamp.start_ms))
            continue; /* damage by others */
        stamp.rolled = mongo_number_at(document, mongo_stamp_path("rolled", t, stamp.start_ms, path), 0);
        stamps->list = xgrow(stamps->list, &stamps->capacity, stamps->count + 1, sizeof *stamps->list);
        stamps->list[stamps->count++] = stamp;
    }
    if (stamps->count > 0)
        qsort(stamps->list, stamps->count, sizeof *stamps->list, compare_stamps);
}

bool mongo_read_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                       struct mongo_version_stamps *stamps, struct err *e)
{
    bson_t document;
    int64_t now_ms = clock_mono_ms(m->store.clock);
    mongo_stamp_id(m, t, report, &m->id);
    bool good = mongo_read_document(m->client, MONGO_JOBS, m->id.ptr, &document, e);
    mongo_take_stamps(t, &document, stamps);
    stamps->read_ms = now_ms;
    bson_destroy(&document);
    return good;
}

bool mongo_is_rolled(const struct mongo_version_stamps *stamps, int64_t start_ms)
{
    const struct mongo_version_stamp wanted = {.start_ms = start_ms};
    const struct mongo_version_stamp *found =
        stamps->count > 0
            ? bsearch(&wanted, stamps->list, stamps->count, sizeof *stamps->list, compare_stamps)
            : NULL;
    return stamps->has_begun && found != NULL && found->written == found->rolled;
}

/* ---- stamping */

void mongo_stamp_periods(bson_t *inc, const struct mongo_target *t, const int64_t *starts, size_t count)
{
    char path[MONGO_STAMP_BYTES];
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(inc, mongo_stamp_path("written", t, starts[i], path), 1);
}

static bool see_one(void *context, const bson_t *document)
{
    (void)document;
    *(bool *)context = true;
    return false;
}

bool mongo_find_weeks(struct mongo_store *m, bool *are_there, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8("weeks/"), "$lt", BCON_UTF8("weeks0"), "}");
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(true), "}", "limit", BCON_INT64(1));
    *are_there = false;
    return mongo_look(m->client, MONGO_JOBS, filter, options, see_one, are_there, e);
}
