/* consume.h - counts topics of Kafka, for months: sessions of ingest threads, and the one writer.
 *
 *   session:  positions of the store ─▶ where each partition begins (topic.h) ─▶ assign ─▶ intakes
 *   intake k ──delivery──▶ writer (the caller's thread): letters, store_apply(), Kafka's own offsets
 *   housekeeper (a thread): wakes librdkafka, and looks for new partitions
 *
 * Group  : where the store is shared by several daemons, the group gives each its partitions, and takes
 *          them away within a session (member.h); else a session's intakes have all of them.
 * Session: lasts until the stop, or until something is different: a new partition, an offset that is
 *          gone, a topic that went away. It is then drained and the next one begins where the store
 *          stands, so there is one way to begin, and it is the one that a crash would take.
 * Exact  : a batch is durable with its ranges or not at all, and a partition is always read from the
 *          store's `next`. Kafka's committed offsets follow, for lag tools; nothing reads them back.
 * Errors : a cluster or topic that is away is waited for. EX_DATAERR: a topic was re-created or lost
 *          records that were not counted. A store that fails for good ends it. A batch that the store
 *          refuses because another daemon took over ends the session only. EX_CONFIG: another one has this
 *          one's place in the group, or counts what must not be counted beside it (store_meet()).
 */
#pragma once

#include "daemon/service/service.h"
#include "store/store.h"

#define CONSUME_ACCEPT_MAX 64

struct consume_options {
    struct service *service;
    const struct config *config; /* reloadable keys of it change within service_tick() */
    struct store *store;
    const char *accepted[CONSUME_ACCEPT_MAX]; /* topics of --accept */
    size_t accepted_count;
};

/* Until service->stop. */
bool consume_run(const struct consume_options *options, struct err *e) MUST_CHECK;
