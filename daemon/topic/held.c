#include "daemon/topic/held.h"

#include "base/mem.h"

#include <stdlib.h>

void held_add(struct held *h, struct kafka *k, struct partition *p, rd_kafka_message_t *m)
{
    struct held_partition *of = NULL;
    for (size_t i = 0; i < h->count && of == NULL; i++)
        of = h->list[i].partition == p ? &h->list[i] : NULL;
    if (of == NULL) {
        h->list = xgrow(h->list, &h->capacity, h->count + 1, sizeof *h->list);
        of = &h->list[h->count++];
        *of = (struct held_partition){.partition = p};
        kafka_pause(k, p->topic->name, p->number, true);
        p->is_held = true;
    }
    of->messages = xgrow(of->messages, &of->capacity, of->count + 1, sizeof(rd_kafka_message_t *));
    of->messages[of->count++] = m;
}

/* The messages are the caller's now. */
static void release(struct held *h, struct kafka *k, size_t i)
{
    struct partition *p = h->list[i].partition;
    p->is_held = false;
    kafka_pause(k, p->topic->name, p->number, false);
    free(h->list[i].messages);
    h->list[i] = h->list[--h->count];
}

size_t held_poll(struct held *h, struct kafka *k, struct chain *const *chains, const struct topic *topics,
                 rd_kafka_message_t **messages)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct held_partition *of = &h->list[i];
        const struct topic *t = of->partition->topic;
        struct record r;
        kafka_record(of->messages[0], t->name, &r);
        if (!chain_knows_schema(chains[t - topics], &r))
            continue;
        size_t count = of->count;
        memcpy(messages, of->messages, count * sizeof(rd_kafka_message_t *));
        release(h, k, i);
        return count;
    }
    return 0;
}

void held_drop(struct held *h, struct kafka *k, const struct partition *p)
{
    for (size_t i = h->count; i > 0; i--) {
        const struct held_partition *of = &h->list[i - 1];
        if (p != NULL && of->partition != p)
            continue;
        for (size_t m = 0; m < of->count; m++)
            rd_kafka_message_destroy(of->messages[m]);
        release(h, k, i - 1);
    }
    if (h->count > 0)
        return;
    free(h->list);
    *h = (struct held){0};
}
