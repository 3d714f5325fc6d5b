/* pace.c - a producer that keeps time, to measure how old an event is when a query first sees it.
 *
 *     build/kafka_pace ADDRESS TOPIC PARTITIONS RATE SECONDS [PROPERTY=VALUE …]
 *
 * Every 10 ms it sends a hundredth of RATE combined log lines of that moment. A message's key says in which
 * slot of PACE_SLOT_MS it was sent: slots are numbered from the start on and the key is the number modulo
 * PACE_SLOTS. All slots are equally full, so whoever counts messages by key knows of each one when it was
 * sent, without looking at it. It begins with
 *
 *     START_MS SLOT_MS SLOTS MESSAGES_PER_SLOT
 *
 * (START_MS: wall clock, of the first slot), and ends with the latest that it was behind its time, in ms.
 */
#include "bench/kafka/client.h"
#include "bench/site.h"
#include "bench/wall.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    TICK_MS = 10,
    PACE_SLOT_MS = 50,
    PACE_SLOTS = 64,
    TICK_MESSAGES_MAX = 20000,
    KEY_BYTES = 4,
    SEED = 1,
};

static const struct setting settings[] = {
    {"enable.idempotence", "true"},
    {"log_level", "3"}, /* not that the broker is still loading */
    {"linger.ms", "5"},
    {"queue.buffering.max.messages", "1000000"},
    {NULL, NULL},
};

struct pace {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    struct site *site;
    int partitions, per_tick;
    uint64_t sent;
    rd_kafka_message_t messages[TICK_MESSAGES_MAX];
    char (*lines)[SITE_LINE_BYTES_MAX];
};

/* The records of `at_ms` are written before, so that sending takes no time. */
static void prepare(struct pace *pa, int64_t start_ms, int64_t at_ms, char *key)
{
    int length = snprintf(key, KEY_BYTES, "%" PRId64, (at_ms - start_ms) / PACE_SLOT_MS % PACE_SLOTS);
    for (int i = 0; i < pa->per_tick; i++) {
        size_t bytes = site_encode(pa->site, at_ms / 1000, pa->lines[i]);
        pa->messages[i] = (rd_kafka_message_t){
            .partition = (int32_t)(pa->sent++ % (uint64_t)pa->partitions),
            .payload = pa->lines[i],
            .len = bytes - 1, /* without its newline */
            .key = key,
            .key_len = (size_t)length,
        };
    }
}

static int64_t run(struct pace *pa, int64_t start_ms, int64_t seconds)
{
    int64_t behind_ms = 0;
    char key[KEY_BYTES];

    for (int64_t tick = 0; tick < seconds * 1000 / TICK_MS; tick++) {
        int64_t at_ms = start_ms + tick * TICK_MS;
        prepare(pa, start_ms, at_ms, key);
        wall_sleep_until(at_ms);
        if (wall_ms() - at_ms > behind_ms)
            behind_ms = wall_ms() - at_ms;
        client_send(pa->rk, pa->rkt, pa->messages, pa->per_tick);
    }
    client_flush(pa->rk);
    return behind_ms;
}

int main(int argc, char **argv)
{
    static struct pace pa;

    if (argc < 6) {
        fputs("usage: kafka_pace ADDRESS TOPIC PARTITIONS RATE SECONDS [PROPERTY=VALUE ...]\n", stderr);
        return EX_USAGE;
    }
    pa.partitions = atoi(argv[3]);
    pa.per_tick = atoi(argv[4]) * TICK_MS / 1000;
    if (pa.partitions < 1 || pa.per_tick < 1 || pa.per_tick > TICK_MESSAGES_MAX)
        client_fail("RATE or PARTITIONS", "out of range");
    pa.rk = client_new(RD_KAFKA_PRODUCER, argv[1], settings, argv + 6);
    pa.rkt = rd_kafka_topic_new(pa.rk, argv[2], NULL);
    pa.site = site_new(SEED);
    pa.lines = malloc((size_t)pa.per_tick * sizeof(*pa.lines));
    if (!pa.lines)
        client_fail("malloc", "out of memory");
    int64_t start_ms = wall_ms() / 1000 * 1000 + 2000;
    printf("%" PRId64 " %d %d %d\n", start_ms, PACE_SLOT_MS, PACE_SLOTS,
           pa.per_tick * PACE_SLOT_MS / TICK_MS);
    fflush(stdout);
    printf("%" PRId64 "\n", run(&pa, start_ms, strtoll(argv[5], NULL, 10)));
    free(pa.lines);
    site_free(pa.site);
    return EX_OK;
}
