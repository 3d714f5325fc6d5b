/* How a session begins: open the consumers, read the store's positions, decide where partitions begin. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/topic/consume_internal.h"
#include "store/writer.h"

#include <stdio.h>
#include <stdlib.h>

/* Only the witness itself is wanted, but Kafka sends the records behind it, too. */
#define READER_FETCH_BYTES 1024

/* With kafka.instance, each consumer has a static place in its group, named by instance and intake number. */
static void name_instance(const struct consume *c, size_t intake, char name[KAFKA_INSTANCE_BYTES])
{
    const char *instance = c->engine->options.config->kafka.instance;
    if (instance == NULL || !c->shared.is_group)
        name[0] = '\0';
    else if (c->intake_count == 1)
        snprintf(name, KAFKA_INSTANCE_BYTES, "%s", instance);
    else
        snprintf(name, KAFKA_INSTANCE_BYTES, "%s-%zu", instance, intake);
}

static bool open_consumers(struct consume *c, struct err *e)
{
    for (size_t i = 0; i < c->intake_count; i++) {
        struct kafka_options options = c->engine->kafka_options;
        name_instance(c, i, options.instance);
        options.pauses = c->engine->options.config->registry.is_asked;
        options.on_stand = consume_note_stand;
        options.context = &c->intakes[i];
        c->intakes[i].kafka = kafka_open(&options, e);
        if (c->intakes[i].kafka == NULL)
            return false;
    }
    struct kafka_options reader = c->engine->kafka_options;
    reader.group = NULL;
    reader.fetch_bytes = READER_FETCH_BYTES;
    c->reader = kafka_open(&reader, e);
    return c->reader != NULL;
}

void consume_close(struct consume *c)
{
    pthread_mutex_lock(&c->engine->feeds.lanes.lock);
    for (size_t i = 0; i < c->topic_count; i++) {
        for (int32_t n = 0; n < c->topics[i].count; n++)
            c->topics[i].partitions[n].kafka = NULL;
    }
    pthread_mutex_unlock(&c->engine->feeds.lanes.lock);
    for (size_t i = 0; i < c->intake_count; i++) {
        kafka_close(c->intakes[i].kafka);
        c->intakes[i].kafka = NULL;
    }
    kafka_close(c->reader);
    c->reader = NULL;
}

/* Make durable where new partitions begin and where accepted losses end, before any of their records is
 * counted. At the next start these partitions are known, and `start` does not apply to them any more. */
static bool store_beginnings(struct consume *c, struct err *e)
{
    struct range *ranges = NULL;
    size_t count = 0, capacity = 0;
    for (struct partition *p = NULL; (p = topics_next(c->topics, c->topic_count, p)) != NULL;) {
        p->stored = p->next;
        p->stored_witnesses = p->witnesses;
        p->unproven.offset = -1;
        p->checked_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
        if (p->is_known && p->lost == 0)
            continue;
        ranges = xgrow(ranges, &capacity, count + 1, sizeof *ranges);
        partition_range(p, &ranges[count++]);
        p->lost = 0; /* the next batch continues from `next` */
    }
    struct books *books = xcalloc(count + 1, sizeof *books);
    for (size_t i = 0; i < count; i++)
        books_init(&books[i], c->engine->options.config->report_count);
    struct batch batch = {.ranges = ranges, .books = books, .range_count = count};
    bool good = count == 0 || writer_apply(&c->engine->writer, &batch, NULL, NULL, e);
    for (size_t i = 0; i < count; i++)
        books_fini(&books[i]);
    free(books);
    free(ranges);
    return good;
}

/* Find out where to read each partition with `begins`. */
static bool begin_partitions(struct consume *c, struct err *e)
{
    bool good = topics_begin(c->topics, c->topic_count, c->engine->options.store, c->intakes[0].kafka,
                             c->reader, e) &&
                store_beginnings(c, e);
    for (struct partition *p = NULL; (p = topics_next(c->topics, c->topic_count, p)) != NULL;) {
        p->begins = false;
        if (good && p->status_index < 0)
            p->status_index =
                status_add_partition(&c->engine->options.service->status, p->topic->name, p->number);
    }
    return good;
}

bool consume_has_outdated(const struct consume *c)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        if (c->topics[i].is_outdated)
            return true;
    }
    return false;
}

bool consume_begin_given(struct consume *c, struct intake *in, struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    for (size_t i = 0; i < in->given_count; i++)
        in->given[i]->begins = true;
    bool good = begin_partitions(c, e);
    if (!good && !e->retryable)
        return false;
    if (!good && consume_has_outdated(c))
        intake_fail(in, e);
    else if (!good)
        log_limited(LOG_LEVEL_WARN, "waiting", "reason=%s next=\"trying again\"", log_quote(e->text, quoted));
    pthread_mutex_lock(&c->engine->feeds.lanes.lock);
    for (size_t i = 0; good && i < in->given_count; i++)
        in->given[i]->kafka = in->kafka;
    in->request = good ? REQUEST_GRANTED : REQUEST_MADE;
    in->request_ms = clock_mono_ms(c->engine->feeds.lanes.clock) + AGAIN_MS;
    pthread_cond_broadcast(&c->engine->feeds.lanes.applied);
    pthread_mutex_unlock(&c->engine->feeds.lanes.lock);
    c->rebalances += good;
    if (good)
        log_info("partitions_given", "partitions=%zu first=%s/%d", in->given_count, in->given[0]->topic->name,
                 in->given[0]->number);
    return true;
}

static bool subscribe(struct consume *c, struct err *e)
{
    bool good = true;
    const char **names = xcalloc(c->topic_count + 1, sizeof *names);
    for (size_t i = 0; i < c->topic_count; i++)
        names[i] = c->topics[i].name;
    for (size_t k = 0; k < c->intake_count && good; k++)
        good = kafka_subscribe(c->intakes[k].kafka, names, c->topic_count, e);
    free(names);
    return good;
}

/* Give each intake its share of every topic's partitions. */
static bool assign(struct consume *c, struct err *e)
{
    for (size_t k = 0; k < c->intake_count; k++) {
        struct kafka_offset *offsets = NULL;
        size_t count = 0, capacity = 0;
        for (size_t i = 0; i < c->topic_count; i++) {
            for (int32_t n = (int32_t)k; n < c->topics[i].count; n += (int32_t)c->intake_count) {
                struct partition *p = &c->topics[i].partitions[n];
                offsets = xgrow(offsets, &capacity, count + 1, sizeof *offsets);
                offsets[count++] = (struct kafka_offset){c->topics[i].name, n, p->next};
                p->kafka = c->intakes[k].kafka;
            }
        }
        bool good = count == 0 || kafka_assign(c->intakes[k].kafka, offsets, count, e);
        free(offsets);
        if (!good)
            return false;
    }
    return true;
}

/* If a topic is new to the store, the daemon that sees it first decides where all of it begins: `start` may
 * be a time that passes. Otherwise, in a group, each partition begins when it is assigned. */
static void mark_beginnings(struct consume *c)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        for (int32_t n = 0; n < c->topics[i].count; n++)
            c->topics[i].partitions[n].begins = !c->shared.is_group || !c->topics[i].is_known;
    }
}

/* Warn of topics that compact. Each is asked once, unless brokers are slow: then the next session asks on. */
static void warn_of_compaction(struct consume *c)
{
    const struct clock *clock = c->engine->feeds.lanes.clock;
    int64_t until_ms = clock_mono_ms(clock) + KAFKA_TIMEOUT_MS;
    for (size_t i = 0; i < c->topic_count && clock_mono_ms(clock) < until_ms; i++) {
        struct topic *t = &c->topics[i];
        if (!t->policy_was_asked && kafka_policy(c->intakes[0].kafka, t->name) == KAFKA_COMPACTS)
            log_warn(
                "topic_compacted",
                "topic=%s next=\"counting what is there: records that compaction deletes before they are "
                "counted are never counted; use cleanup.policy=delete if all of them matter\"",
                t->name);
        t->policy_was_asked = true;
    }
}

bool consume_begin(struct consume *c, struct err *e)
{
    if ((c->reader == NULL && !open_consumers(c, e)) ||
        !topics_look(c->topics, c->topic_count, c->engine->options.store, c->intakes[0].kafka, e))
        return false;
    warn_of_compaction(c);
    mark_beginnings(c);
    return store_meet(c->engine->options.store, e) && begin_partitions(c, e) &&
           (c->shared.is_group ? subscribe(c, e) : assign(c, e));
}
