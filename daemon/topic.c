#include "daemon/topic.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void name_source(struct topic *t)
{
    if (t->incarnation == 1)
        snprintf(t->source, sizeof t->source, "kafka:%s", t->name);
    else
        snprintf(t->source, sizeof t->source, "kafka:%s~%d", t->name, t->incarnation);
}

struct topic *topics_new(const struct config *c, const char *const accepted[], size_t accepted_count,
                         size_t *topic_count)
{
    struct topic *topics = xcalloc(c->source_count, sizeof *topics);
    *topic_count = 0;
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].type != SOURCE_KAFKA)
            continue;
        struct topic *t = &topics[(*topic_count)++];
        *t = (struct topic){.config = &c->sources[i], .name = c->sources[i].topic, .incarnation = 1};
        name_source(t);
        for (size_t k = 0; k < accepted_count; k++)
            t->is_accepted = t->is_accepted || strcmp(accepted[k], t->name) == 0;
    }
    return topics;
}

void topics_free(struct topic *topics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(topics[i].partitions);
    free(topics);
}

static void set_count(struct topic *t, int32_t count)
{
    t->partitions = xrealloc(t->partitions, (size_t)count * sizeof *t->partitions);
    for (int32_t i = t->count; i < count; i++)
        t->partitions[i] = (struct partition){.number = i, .status_index = -1};
    t->count = count;
    for (int32_t i = 0; i < count; i++)
        t->partitions[i].topic = t; /* the topic never moves, its partitions may */
}

void topic_renew(struct topic *t)
{
    t->incarnation++;
    name_source(t);
    t->is_known = true; /* from its beginning, whatever `start` says */
    for (int32_t i = 0; i < t->count; i++) {
        t->partitions[i].is_known = false;
        t->partitions[i].check_tail = false;
    }
}

int topic_incarnation(const char *topic, const char *source)
{
    char first[RANGE_SOURCE_BYTES];
    int n = snprintf(first, sizeof first, "kafka:%s", topic);
    if (strncmp(source, first, (size_t)n) != 0)
        return 0;
    if (source[n] == '\0')
        return 1;
    return source[n] == '~' ? atoi(source + n + 1) : 0;
}

struct search {
    struct topic *topics;
    size_t count;
};

static bool find_incarnation(void *context, const struct position *position)
{
    struct search *s = context;
    for (size_t i = 0; i < s->count; i++) {
        struct topic *t = &s->topics[i];
        int incarnation = topic_incarnation(t->name, position->range.source);
        if (incarnation == 0)
            continue;
        t->is_known = true;
        if (incarnation > t->incarnation) {
            t->incarnation = incarnation;
            name_source(t);
        }
    }
    return true;
}

static bool take_position(void *context, const struct position *position)
{
    struct search *s = context;
    const struct range *r = &position->range;
    for (size_t i = 0; i < s->count; i++) {
        struct topic *t = &s->topics[i];
        int number = atoi(r->partition);
        if (strcmp(t->source, r->source) != 0 || number < 0)
            continue;
        if (number >= t->count)
            set_count(t, number + 1);
        struct partition *p = &t->partitions[number];
        p->is_known = true;
        p->next = r->to;
        p->tail_hash = r->tail_hash;
        p->tail_len = r->tail_len;
    }
    return true;
}

bool partition_refuse_recreated(const struct partition *p, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "topic %s, partition %d: it is counted up to offset %" PRId64
        ", and the last record before is not the one that was counted: the topic was re-created. Go "
        "back to the old one, or `tallyd run --accept %s` counts this one from its beginning, beside "
        "what is counted already",
        p->topic->name, p->number, p->next, p->topic->name);
}

static bool refuse_shorter(const struct partition *p, int64_t high, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "topic %s, partition %d: it is counted up to offset %" PRId64 ", but ends at %" PRId64
        ": the topic was re-created, or its last records were lost. `tallyd run --accept %s` counts "
        "what there is from its beginning, beside what is counted already (records of before that "
        "are still there are then counted twice)",
        p->topic->name, p->number, p->next, high, p->topic->name);
}

static bool refuse_lost(const struct partition *p, int64_t low, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "topic %s, partition %d: it is counted up to offset %" PRId64 ", but begins at %" PRId64
                   ": the records of %" PRId64 " offsets were deleted before they were counted (retention). "
                   "`tallyd run --accept %s` goes on without them",
                   p->topic->name, p->number, p->next, low, low - p->next, p->topic->name);
}

bool partition_begin(struct partition *p, int64_t low, int64_t high, int64_t start, bool *recreated,
                     struct err *e)
{
    *recreated = false;
    p->check_tail = false;
    p->lost = 0;
    if (!p->is_known) {
        p->next = p->topic->is_known ? low : start;
        p->tail_hash = 0;
        p->tail_len = 0;
        return true;
    }
    if (p->next > high) {
        *recreated = true;
        return refuse_shorter(p, high, e);
    }
    if (p->next < low) {
        if (!p->topic->is_accepted)
            return refuse_lost(p, low, e);
        p->lost = low - p->next;
        p->next = low;
        p->tail_hash = p->tail_len = 0;
        return true;
    }
    /* Nothing was counted yet where there is no tail: the position is that of a first start. */
    p->check_tail = p->next > low && (p->tail_hash != 0 || p->tail_len != 0);
    return true;
}

int64_t partition_fetch_offset(const struct partition *p)
{
    return p->check_tail ? p->next - 1 : p->next;
}

uint64_t partition_hash(const rd_kafka_message_t *m, uint32_t *len)
{
    rd_kafka_timestamp_type_t type;
    int64_t at_ms = rd_kafka_message_timestamp(m, &type);
    uint64_t hash = XXH3_64bits_withSeed(m->payload, m->len, (uint64_t)at_ms);
    if (m->key_len > 0)
        hash = XXH3_64bits_withSeed(m->key, m->key_len, hash);
    *len = (uint32_t)m->len;
    return hash;
}

bool partition_is_same(const struct partition *p, const rd_kafka_message_t *m)
{
    uint32_t len;
    uint64_t hash = partition_hash(m, &len);
    return hash == p->tail_hash && len == p->tail_len;
}

void partition_range(const struct partition *p, struct range *r)
{
    *r = (struct range){
        .from = p->next - p->lost, .to = p->next, .tail_hash = p->tail_hash, .tail_len = p->tail_len};
    memcpy(r->source, p->topic->source, sizeof r->source);
    snprintf(r->partition, sizeof r->partition, "%d", p->number);
    snprintf(r->label, sizeof r->label, "topic %s, partition %d", p->topic->name, p->number);
}

/* The first offset, the end, and where a first start would be, of every partition. */
struct bounds {
    struct kafka_offset *low, *high, *start;
};

static bool ask_bounds(struct topic *t, struct kafka *k, struct bounds *b, struct err *e)
{
    size_t count = (size_t)t->count;
    bool has_new = false;
    b->low = xcalloc(3 * count, sizeof *b->low);
    b->high = b->low + count;
    b->start = b->high + count;
    for (int32_t i = 0; i < t->count; i++) {
        has_new = has_new || !t->partitions[i].is_known;
        b->low[i] = (struct kafka_offset){t->name, i, KAFKA_EARLIEST};
        b->high[i] = (struct kafka_offset){t->name, i, KAFKA_LATEST};
        b->start[i] = (struct kafka_offset){t->name, i, t->config->start_ms};
    }
    return kafka_offsets(k, b->low, count, e) && kafka_offsets(k, b->high, count, e) &&
           (!has_new || t->is_known || kafka_offsets(k, b->start, count, e));
}

static bool begin_partitions(struct topic *t, const struct bounds *b, bool *recreated, struct err *e)
{
    for (int32_t i = 0; i < t->count; i++) {
        struct partition *p = &t->partitions[i];
        if (!partition_begin(p, b->low[i].offset, b->high[i].offset, b->start[i].offset, recreated, e))
            return false;
        if (p->lost > 0)
            log_warn("records_lost", "topic=%s partition=%d from=%" PRId64 " to=%" PRId64, t->name, i,
                     p->next - p->lost, p->next);
    }
    return true;
}

static bool begin_topic(struct topic *t, struct kafka *k, struct err *e)
{
    struct bounds b = {0};
    bool recreated = false;
    int32_t count;
    if (!kafka_partitions(k, t->name, &count, e))
        return false;
    if (count < t->count) {
        if (!t->is_accepted)
            return err_set(
                e, EX_DATAERR,
                "topic %s has %d partitions, but %d of it were counted: it was re-created. `tallyd "
                "run --accept %s` counts this one from its beginning",
                t->name, count, t->count, t->name);
        t->count = count;
        topic_renew(t);
    }
    set_count(t, count);
    bool good = ask_bounds(t, k, &b, e);
    if (good && !begin_partitions(t, &b, &recreated, e)) {
        good = recreated && t->is_accepted;
        if (good) {
            topic_renew(t);
            log_warn("topic_recreated", "topic=%s source=%s", t->name, t->source);
            good = begin_partitions(t, &b, &recreated, e);
        }
    }
    free(b.low);
    return good;
}

bool topics_begin(struct topic *topics, size_t count, struct store *store, struct kafka *k, struct err *e)
{
    struct search s = {topics, count};
    if (!store_positions(store, find_incarnation, &s, e) || !store_positions(store, take_position, &s, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!begin_topic(&topics[i], k, e))
            return false;
    }
    return true;
}
