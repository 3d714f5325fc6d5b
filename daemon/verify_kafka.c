#include "daemon/verify_kafka.h"

#include "base/mem.h"
#include "daemon/topic.h"

#include <inttypes.h>
#include <stdlib.h>

#define MESSAGES_MAX 1024
#define POLL_MS      100
#define SILENCE_MS   30000 /* of the cluster, while records are still to come */

/* One partition that is read again. */
struct reading {
    size_t index; /* of the positions */
    const struct config_source *source;
    struct chain *chain;
    struct verify_part part;
    int64_t from, to;
    bool is_done;
};

struct rereader {
    struct verify *v;
    struct kafka *kafka;
    struct reading *readings;
    size_t count, open;
};

/* The source whose newest incarnation this is. */
static const struct config_source *find_source(const struct verify *v, const struct position *positions,
                                               size_t count, const char *source)
{
    for (size_t i = 0; i < v->config->source_count; i++) {
        const struct config_source *s = &v->config->sources[i];
        int newest = 0;
        if (s->type != SOURCE_KAFKA || topic_incarnation(s->topic, source) == 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            int incarnation = topic_incarnation(s->topic, positions[k].range.source);
            newest = incarnation > newest ? incarnation : newest;
        }
        return topic_incarnation(s->topic, source) == newest ? s : NULL;
    }
    return NULL;
}

/* The first offset that any report counts; the end where none does. */
static int64_t first_offset(const struct verify_part *part, int64_t to)
{
    int64_t first = to;
    for (size_t r = 0; r < part->v->store->report_count; r++) {
        if (part->since[r] >= 0 && part->since[r] < first)
            first = part->since[r];
    }
    return first;
}

/* Where its records begin today; false: some that were counted are deleted. */
static bool find_beginning(struct rereader *rr, struct reading *rd, int32_t number, bool *is_there,
                           struct err *e)
{
    struct kafka_offset low = {rd->source->topic, number, KAFKA_EARLIEST};
    rd->from = first_offset(&rd->part, rd->to);
    if (!kafka_offsets(rr->kafka, &low, 1, e))
        return false;
    *is_there = rd->from >= low.offset || rd->from >= rd->to;
    if (!*is_there)
        fprintf(stderr,
                "tallyd verify: topic %s, partition %d: counted from offset %" PRId64
                ", but its records begin at %" PRId64 " today: the first ones are deleted\n",
                rd->source->topic, number, rd->from, low.offset);
    return true;
}

/* False: it is not read, for an error, or since it is not there. */
static bool add_reading(struct rereader *rr, const struct position *position, size_t index,
                        const struct config_source *source, bool *is_there, struct err *e)
{
    struct reading *rd = &rr->readings[rr->count];
    *rd = (struct reading){.index = index, .source = source, .to = position->range.to};
    if (!verify_begin(&rd->part, rr->v, position, e))
        return false;
    if (!find_beginning(rr, rd, atoi(position->range.partition), is_there, e) || !*is_there) {
        verify_end(&rd->part, false);
        return false;
    }
    rd->chain = chain_new(&source->decode, (size_t)rr->v->config->limits.line_max);
    rd->is_done = rd->from >= rd->to;
    rr->open += !rd->is_done;
    rr->count++;
    return true;
}

static bool assign(struct rereader *rr, const struct position *positions, struct err *e)
{
    struct kafka_offset *offsets = xcalloc(rr->count, sizeof *offsets);
    size_t count = 0;
    for (size_t i = 0; i < rr->count; i++) {
        const struct reading *rd = &rr->readings[i];
        if (!rd->is_done)
            offsets[count++] = (struct kafka_offset){rd->source->topic,
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
            strcmp(rd->source->topic, topic) == 0)
            return rd;
    }
    return NULL;
}

static bool take_message(struct rereader *rr, struct reading *rd, rd_kafka_message_t *m, struct err *e)
{
    struct record record;
    if (rd == NULL || rd->is_done)
        return true;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->offset < rd->to) {
        kafka_record(m, rd->source->topic, &record);
        verify_record(&rd->part, rd->chain, &record);
    } else if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR && kafka_is_lost(m->err)) {
        return err_set(e, EX_UNAVAILABLE, "topic %s, partition %d: %s", rd->source->topic, m->partition,
                       rd_kafka_err2str(m->err));
    }
    bool is_end = m->err == RD_KAFKA_RESP_ERR_NO_ERROR || m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (is_end && m->offset >= rd->to - (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)) {
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
        if (silent_ms > SILENCE_MS)
            good = err_set(e, EX_TEMPFAIL, "the cluster has sent nothing for %d s: is it reachable?",
                           SILENCE_MS / 1000);
        for (size_t i = 0; i < n; i++) {
            good = good && take_message(rr, find_reading(rr, messages[i], positions), messages[i], e);
            rd_kafka_message_destroy(messages[i]);
        }
    }
    return good;
}

static bool reread(struct rereader *rr, const struct position *positions, bool *given, size_t count,
                   struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct config_source *source = find_source(rr->v, positions, count, positions[i].range.source);
        bool is_there = true;
        if (source == NULL || given[i])
            continue;
        if (!add_reading(rr, &positions[i], i, source, &is_there, e) && is_there)
            return false;
        given[i] = is_there;
    }
    return assign(rr, positions, e) && read_all(rr, positions, e);
}

bool verify_kafka(struct verify *v, const struct kafka_options *options, const struct position *positions,
                  bool *given, size_t count, struct err *e)
{
    struct rereader rr = {.v = v, .kafka = kafka_open(options, e)};
    if (rr.kafka == NULL)
        return false;
    rr.readings = xcalloc(count, sizeof *rr.readings);
    bool good = reread(&rr, positions, given, count, e);
    for (size_t i = 0; i < rr.count; i++) {
        verify_end(&rr.readings[i].part, good);
        chain_free(rr.readings[i].chain);
    }
    free(rr.readings);
    kafka_close(rr.kafka);
    return good;
}
