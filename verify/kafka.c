#include "verify/kafka.h"

#include "base/mem.h"
#include "base/units.h"
#include "daemon/topic/reread.h"

#include <inttypes.h>
#include <stdlib.h>

#define MESSAGES_MAX 1024
#define POLL_MS      100

/* A topic as it is now. */
struct today {
    const struct config_source *source;
    bool is_known;
    int32_t partitions; /* 0: there is no such topic */
    enum kafka_policy policy;
};

/* A partition that is read again. */
struct reading {
    size_t index; /* index of its position */
    const struct today *topic;
    struct chain *chain;
    struct verify_part part;
    int64_t first, low; /* offsets: first one counted; first one that still exists */
    int64_t from, to;
    int64_t next;  /* next offset to read */
    int64_t empty; /* number of offsets that had no record */
    bool is_done;
};

struct rereader {
    struct verify *v;
    struct kafka *kafka;
    struct today *topics; /* by source of the configuration */
    struct reading *readings;
    size_t count, open;
};

static bool look_at_topic(struct rereader *rr, const struct config_source *source, struct today **topic,
                          struct err *e)
{
    *topic = &rr->topics[source - rr->v->config->sources];
    if ((*topic)->is_known)
        return true;
    (*topic)->source = source;
    if (!kafka_find_topic(rr->kafka, source->topic, &(*topic)->partitions, e))
        return false;
    if ((*topic)->partitions > 0)
        (*topic)->policy = kafka_policy(rr->kafka, source->topic);
    (*topic)->is_known = true;
    return true;
}

/* The first offset that any report counts; `to` if no report does. */
static int64_t first_offset(const struct verify_part *part, int64_t to)
{
    int64_t first = to;
    for (size_t r = 0; r < part->v->store->report_count; r++) {
        if (part->since[r] >= 0 && part->since[r] < first)
            first = part->since[r];
    }
    for (size_t i = 0; i < part->stretch_count; i++) {
        if (part->stretches[i].is_filled && part->stretches[i].from < first)
            first = part->stretches[i].from;
    }
    return first;
}

/* Judge a position of which no record is left. */
static bool give_up(struct rereader *rr, const struct position *position, struct verify_source *source,
                    const char *why, struct err *e)
{
    if (!verify_gone(rr->v, position, &source->missing, e))
        return false;
    source->is = source->missing > 0 ? SOURCE_GONE : SOURCE_WHOLE;
    snprintf(source->why, sizeof source->why, "%s", why);
    return true;
}

static bool add_reading(struct rereader *rr, const struct position *position, size_t index,
                        const struct today *topic, int64_t low, struct err *e)
{
    struct reading *rd = &rr->readings[rr->count];
    *rd = (struct reading){.index = index, .topic = topic, .to = position->range.to, .low = low};
    if (!verify_begin(&rd->part, rr->v, position, e))
        return false;
    rd->first = first_offset(&rd->part, rd->to);
    rd->from = rd->next = rd->first > low ? rd->first : low;
    rd->chain = chain_new(&topic->source->decode, (size_t)rr->v->config->limits.line_max);
    rd->is_done = rd->from >= rd->to;
    rr->open += !rd->is_done;
    rr->count++;
    return true;
}

static bool begin_partition(struct rereader *rr, const struct position *position, size_t index,
                            const struct config_source *of, struct verify_source *source, struct err *e)
{
    char why[sizeof source->why];
    struct today *topic;
    int32_t number = atoi(position->range.partition);
    if (!look_at_topic(rr, of, &topic, e))
        return false;
    if (number >= topic->partitions) {
        snprintf(why, sizeof why, "the topic %s",
                 topic->partitions == 0 ? "is deleted" : "has no such partition");
        return give_up(rr, position, source, why, e);
    }
    struct kafka_offset low = {of->topic, number, KAFKA_EARLIEST}, high = {of->topic, number, KAFKA_LATEST};
    if (!kafka_offsets(rr->kafka, &low, 1, e) || !kafka_offsets(rr->kafka, &high, 1, e))
        return false;
    if (high.offset >= position->range.to)
        return add_reading(rr, position, index, topic, low.offset, e);
    snprintf(why, sizeof why, "it ends at offset %" PRId64 ": another topic of that name, or its end is lost",
             high.offset);
    return give_up(rr, position, source, why, e);
}

static bool assign(struct rereader *rr, const struct position *positions, struct err *e)
{
    struct kafka_offset *offsets = xcalloc(rr->count, sizeof *offsets);
    size_t count = 0;
    for (size_t i = 0; i < rr->count; i++) {
        const struct reading *rd = &rr->readings[i];
        if (!rd->is_done)
            offsets[count++] = (struct kafka_offset){rd->topic->source->topic,
                                                     atoi(positions[rd->index].range.partition), rd->from};
    }
    bool good = count == 0 || kafka_assign(rr->kafka, offsets, count, e);
    free(offsets);
    return good;
}

static struct reading *find_reading(struct rereader *rr, const rd_kafka_message_t *m,
                                    const struct position *positions)
{
    const char *topic = m->rkt != NULL ? rd_kafka_topic_name(m->rkt) : "";
    for (size_t i = 0; i < rr->count; i++) {
        struct reading *rd = &rr->readings[i];
        if (atoi(positions[rd->index].range.partition) == m->partition &&
            strcmp(rd->topic->source->topic, topic) == 0)
            return rd;
    }
    return NULL;
}

static bool take_message(struct rereader *rr, struct reading *rd, rd_kafka_message_t *m, struct err *e)
{
    struct record record;
    if (rd == NULL || rd->is_done)
        return true;
    const char *topic = rd->topic->source->topic;
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR && kafka_is_lost(m->err))
        return err_set(e, EX_UNAVAILABLE, "topic %s, partition %d: %s: run verify again", topic, m->partition,
                       rd_kafka_err2str(m->err));
    bool is_record = m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!kafka_is_readable(m, topic, e))
        return false;
    if (!is_record && m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return true;
    int64_t empty = (m->offset < rd->to ? m->offset : rd->to) - rd->next;
    rd->empty += empty > 0 ? empty : 0;
    rd->next = m->offset + is_record;
    if (is_record && m->offset < rd->to) {
        kafka_record(m, topic, &record);
        if (!reread_await_schema(rr->v->config, rd->chain, &record, e))
            return false;
        verify_record(&rd->part, rd->chain, &record);
    }
    if (rd->next >= rd->to) {
        rd->is_done = true;
        rr->open--;
    }
    return true;
}

static bool read_all(struct rereader *rr, const struct position *positions, struct err *e)
{
    rd_kafka_message_t *messages[MESSAGES_MAX];
    bool good = true;
    int silent_ms = 0;
    while (good && rr->open > 0) {
        size_t n = kafka_poll(rr->kafka, messages, MESSAGES_MAX, POLL_MS);
        kafka_wake(rr->kafka);
        silent_ms = n > 0 ? 0 : silent_ms + POLL_MS;
        if (silent_ms > REREAD_SILENCE_MS)
            good = err_set(e, EX_TEMPFAIL,
                           "the cluster has sent nothing for %d s: check that its brokers are reachable",
                           REREAD_SILENCE_MS / 1000);
        for (size_t i = 0; i < n; i++) {
            good = good && take_message(rr, find_reading(rr, messages[i], positions), messages[i], e);
            rd_kafka_message_destroy(messages[i]);
        }
    }
    return good;
}

static bool begin_all(struct rereader *rr, const struct position *positions, struct verify_source *sources,
                      size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        bool is_newest;
        const struct config_source *source =
            reread_source(rr->v->config, positions, count, positions[i].range.source, &is_newest);
        if (source == NULL || sources[i].is != SOURCE_NOT_GIVEN)
            continue;
        bool good = is_newest ? begin_partition(rr, &positions[i], i, source, &sources[i], e)
                              : give_up(rr, &positions[i], &sources[i], "another topic has this name now", e);
        if (!good)
            return false;
    }
    return true;
}

/* Say why the partition is not whole. */
static void write_why(const struct reading *rd, const struct verify_source *source, char *why, size_t bytes)
{
    char empty[UNITS_NUMBER_BYTES];
    bool compacts = rd->topic->policy == KAFKA_COMPACTS;
    if (rd->low > rd->first)
        snprintf(why, bytes, "its records before offset %" PRId64 " are deleted%s", rd->low,
                 rd->empty > 0 && compacts ? ", and it is compacted" : "");
    else if (source->missing > 0)
        snprintf(why, bytes, "offsets are missing in between: %s",
                 compacts ? "it is compacted" : "it may be compacted");
    else
        snprintf(why, bytes,
                 "it is compacted: %s offsets have no record any more, and may never have been counted",
                 units_number(rd->empty, empty));
}

/* Compacted, and the books agree with what is left: what else was there was deleted before it was counted, if
 * it was no transaction's marker. Nobody can tell. */
static bool may_have_lost(const struct reading *rd)
{
    return rd->topic->policy == KAFKA_COMPACTS && (rd->empty > 0 || rd->low > rd->first);
}

static void end_reading(struct reading *rd, struct verify_source *source)
{
    bool may_lack = rd->low > rd->first || (rd->empty > 0 && rd->topic->policy != KAFKA_DELETES);
    source->missing = verify_end(&rd->part, may_lack ? VERIFY_REST : VERIFY_WHOLE);
    source->from = rd->from < rd->to ? rd->from : rd->to;
    source->to = rd->to;
    if (!may_have_lost(rd) && (!may_lack || source->missing <= 0))
        source->is = SOURCE_WHOLE;
    else
        source->is = rd->from < rd->to ? SOURCE_IN_PART : SOURCE_GONE;
    write_why(rd, source, source->why, sizeof source->why);
}

bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  struct verify_source *sources, size_t count, struct err *e)
{
    struct rereader rr = {.v = v, .kafka = kafka_open(options, e)};
    if (rr.kafka == NULL)
        return false;
    rr.readings = xcalloc(count, sizeof *rr.readings);
    rr.topics = xcalloc(v->config->source_count, sizeof *rr.topics);
    bool good = begin_all(&rr, positions, sources, count, e) && assign(&rr, positions, e) &&
                read_all(&rr, positions, e);
    for (size_t i = 0; i < rr.count; i++) {
        struct reading *rd = &rr.readings[i];
        if (good)
            end_reading(rd, &sources[rd->index]);
        else
            (void)verify_end(&rd->part, VERIFY_NOTHING);
        chain_free(rd->chain);
    }
    free(rr.topics);
    free(rr.readings);
    kafka_close(rr.kafka);
    return good;
}
