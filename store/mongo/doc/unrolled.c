#include "store/mongo/doc/unrolled.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define SEEN_MS 1000

const char *mongo_unrolled_path(const struct mongo_unrolled *u, char buf[MONGO_UNROLLED_BYTES])
{
    char time[MONGO_TIME_BYTES];
    snprintf(buf, MONGO_UNROLLED_BYTES, "unrolled.%s", mongo_time(u->span, u->start_ms, time));
    return buf;
}

int64_t mongo_last_unrolled(const bson_t *seat)
{
    const int64_t rolled = mongo_number_at(seat, "rolled", 0);
    int64_t last = rolled;
    bson_iter_t at;
    for (bool more = mongo_begin_members(seat, "unrolled", &at); more && bson_iter_next(&at);)
        last = bson_iter_as_int64(&at) > last ? bson_iter_as_int64(&at) : last;
    return last > rolled ? last : 0;
}

uint64_t mongo_count_unrolled(const bson_t *seat)
{
    const int64_t rolled = mongo_number_at(seat, "rolled", 0);
    uint64_t count = 0;
    bson_iter_t at;
    for (bool more = mongo_begin_members(seat, "unrolled", &at); more && bson_iter_next(&at);)
        count += bson_iter_as_int64(&at) > rolled;
    return count;
}

/* A key that no version of tallyd writes is damage by others: then all longer documents may lack
 * something. */
static void add_period(struct mongo_unrolled_seen *seen, const char *key)
{
    struct mongo_lacking period = {SPAN_COUNT, 0, CIVIL_END_MS};
    for (int s = SPAN_MINUTE; s <= SPAN_DAY; s++) {
        int64_t start_ms;
        if (mongo_parse_time((enum span)s, key, &start_ms))
            period = (struct mongo_lacking){(enum span)s, start_ms, span_next((enum span)s, start_ms)};
    }
    seen->list = xgrow(seen->list, &seen->capacity, seen->count + 1, sizeof *seen->list);
    seen->list[seen->count++] = period;
}

static bool see_seat(void *context, const bson_t *seat)
{
    const int64_t rolled = mongo_number_at(seat, "rolled", 0);
    bson_iter_t at;
    for (bool more = mongo_begin_members(seat, "unrolled", &at); more && bson_iter_next(&at);) {
        if (bson_iter_as_int64(&at) > rolled)
            add_period(context, bson_iter_key(&at));
    }
    return true;
}

const struct mongo_unrolled_seen *mongo_see_unrolled(struct mongo_store *m, struct err *e)
{
    struct mongo_unrolled_seen *seen = &m->reader.unrolled;
    const int64_t now_ms = clock_mono_ms(m->store.clock);
    if (seen->is_read && now_ms - seen->read_ms < SEEN_MS)
        return seen;
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8("w"), "$lt", BCON_UTF8("x"), "}");
    bson_t *options =
        BCON_NEW("projection", "{", "rolled", BCON_BOOL(true), "unrolled", BCON_BOOL(true), "}");
    seen->count = 0;
    seen->is_read = mongo_look(m->client, MONGO_LEDGER, filter, options, see_seat, seen, e);
    seen->read_ms = now_ms;
    return seen->is_read ? seen : NULL;
}

bool mongo_is_unrolled(const struct mongo_unrolled_seen *seen, enum span fine, int64_t from_ms, int64_t to_ms)
{
    bool is = false;
    for (size_t i = 0; i < seen->count && !is; i++) {
        const struct mongo_lacking *one = &seen->list[i];
        is = (one->span == fine || one->span == SPAN_COUNT) && one->from_ms < to_ms && from_ms < one->to_ms;
    }
    return is;
}
