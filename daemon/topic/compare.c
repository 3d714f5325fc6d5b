#include "daemon/topic/compare.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define COMPARE_MESSAGES 1024
#define COMPARE_POLL_MS  50

uint64_t compare_hash(const rd_kafka_message_t *m)
{
    uint64_t hash = XXH3_64bits_withSeed(m->payload, m->len, (uint64_t)kafka_timestamp(m));
    return m->key_len > 0 ? XXH3_64bits_withSeed(m->key, m->key_len, hash) : hash;
}

/* One read of a witness from each open partition. */
struct round {
    struct comparison **asked; /* sorted by topic and partition */
    size_t count, answered;
};

static int by_partition(const void *a, const void *b)
{
    const struct comparison *x = *(struct comparison *const *)a, *y = *(struct comparison *const *)b;
    int order = strcmp(x->topic, y->topic);
    return order != 0 ? order : order_int64(x->partition, y->partition);
}

static struct comparison *find_asked(const struct round *r, const rd_kafka_message_t *m)
{
    if (m->rkt == NULL)
        return NULL;
    struct comparison key = {.topic = rd_kafka_topic_name(m->rkt), .partition = m->partition};
    struct comparison *of = &key;
    struct comparison **found = bsearch(&of, r->asked, r->count, sizeof(struct comparison *), by_partition);
    return found != NULL ? *found : NULL;
}

/* Judge a message. True: `m` answers the question: it is the first of the partition, at the witness's offset
 * or behind it. */
static bool take_answer(struct comparison *c, const rd_kafka_message_t *m)
{
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR && m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (!kafka_is_lost(m->err))
            return false;
        c->result = COMPARISON_LOST;
    } else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->offset == c->offset) {
        bool is_same = compare_hash(m) == c->witnesses[c->left].hash;
        c->result = is_same ? COMPARISON_SAME : COMPARISON_OTHER;
    } else if (c->left == 0) {
        c->result = COMPARISON_GONE;
    }
    c->is_asked = false;
    return true;
}

static void take_answers(struct round *r, struct kafka *reader)
{
    rd_kafka_message_t *messages[COMPARE_MESSAGES];
    size_t n = kafka_poll(reader, messages, COMPARE_MESSAGES, COMPARE_POLL_MS);
    for (size_t i = 0; i < n; i++) {
        struct comparison *c = find_asked(r, messages[i]);
        if (c != NULL && c->is_asked)
            r->answered += take_answer(c, messages[i]);
        rd_kafka_message_destroy(messages[i]);
    }
}

/* Read the newest witness that was not asked yet, of each open partition. */
static bool read_round(struct round *r, struct kafka *reader, int64_t until_ms, struct err *e)
{
    struct kafka_offset *offsets = xcalloc(r->count, sizeof *offsets);
    for (size_t i = 0; i < r->count; i++) {
        struct comparison *c = r->asked[i];
        c->offset = c->witnesses[--c->left].offset;
        c->is_asked = true;
        offsets[i] = (struct kafka_offset){c->topic, c->partition, c->offset};
    }
    qsort(r->asked, r->count, sizeof(struct comparison *), by_partition);
    bool good = kafka_read(reader, offsets, r->count, e);
    if (good) {
        while (r->answered < r->count && clock_mono_ms(&clock_system) < until_ms)
            take_answers(r, reader);
        kafka_read_end(reader);
        if (r->answered < r->count)
            good = err_set_retryable(
                e, EX_UNAVAILABLE,
                "the last counted records cannot be fetched: check that every broker is reachable");
    }
    free(offsets);
    return good;
}

bool compare(struct kafka *reader, struct comparison *comparisons, size_t count, int timeout_ms,
             struct err *e)
{
    bool good = true;
    /* Brokers answer, and kafka_poll() waits, in real time. */
    int64_t until_ms = clock_mono_ms(&clock_system) + timeout_ms;
    struct round r = {.asked = xcalloc(count + 1, sizeof(struct comparison *))};
    do {
        r.count = r.answered = 0;
        for (size_t i = 0; i < count; i++) {
            if (comparisons[i].result == COMPARISON_OPEN && comparisons[i].left > 0)
                r.asked[r.count++] = &comparisons[i];
        }
        good = r.count == 0 || read_round(&r, reader, until_ms, e);
    } while (good && r.count > 0);
    free(r.asked);
    return good;
}
