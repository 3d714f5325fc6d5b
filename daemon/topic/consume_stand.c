/* Partitions that an open transaction in Kafka holds back: records behind it must not be counted before its
 * producer commits or aborts it, however long that takes. */
#include "base/log.h"
#include "daemon/topic/consume_internal.h"

#include <inttypes.h>

/* The partition that statistics are about; NULL: this consumer does not read it any more. librdkafka's
 * statistics still include it then. */
static struct partition *find(struct intake *in, const struct kafka_stand *s)
{
    struct partition *found = NULL;
    pthread_mutex_lock(&in->shared->feeds->lanes.lock);
    for (size_t i = 0; i < in->topic_count; i++) {
        struct topic *t = &in->topics[i];
        if (slice_is(s->topic, t->name) && s->partition < t->count &&
            t->partitions[s->partition].kafka == in->kafka)
            found = &t->partitions[s->partition];
    }
    pthread_mutex_unlock(&in->shared->feeds->lanes.lock);
    return found;
}

static void tell(const struct partition *p, const struct kafka_stand *s, int64_t since_ms, int64_t now_ms)
{
    log_limited(LOG_LEVEL_WARN, "open_transaction",
                "topic=%s partition=%d offset=%" PRId64 " held_back=%" PRId64 " seconds=%" PRId64
                " next=\"waiting until its producer or Kafka commits or aborts it\"",
                p->topic->name, p->number, s->stable, s->end - s->stable, (now_ms - since_ms) / 1000);
}

void consume_note_stand(void *context, const struct kafka_stand *s)
{
    struct intake *in = context;
    struct partition *p = find(in, s);
    if (p == NULL)
        return;
    int64_t now_ms = clock_mono_ms(in->shared->feeds->lanes.clock), since_ms = atomic_load(&p->stands_ms);
    bool stands = s->stable < s->end && s->next >= s->stable;
    if (!stands || s->stable != p->stable) { /* no open transaction, or another one */
        if (p->stand_is_told)
            log_limited(LOG_LEVEL_INFO, "transaction_ended", "topic=%s partition=%d offset=%" PRId64,
                        p->topic->name, p->number, p->stable);
        p->stand_is_told = false;
        p->stable = s->stable;
        atomic_store(&p->stands_ms, stands ? now_ms : 0);
    } else if (!p->stand_is_told && since_ms > 0 && now_ms - since_ms >= CONSUME_STAND_MS) {
        tell(p, s, since_ms, now_ms);
        p->stand_is_told = true;
    }
}

int64_t consume_stands_s(const struct partition *p, int64_t now_ms)
{
    int64_t since_ms = atomic_load(&p->stands_ms);
    return since_ms > 0 ? (now_ms - since_ms) / 1000 : 0;
}
