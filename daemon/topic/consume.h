/* consume.h - counts Kafka topics for months: one session after the other, each with ingest threads and one
 * writer. `run` calls it.
 *
 *   session:  positions of the store ─▶ where each partition begins (topic.h) ─▶ assign ─▶ intakes
 *   intake k ──delivery──▶ writer (the caller's thread): dead letters, store_apply(), Kafka's own offsets
 *   housekeeper (a thread): wakes librdkafka, and looks for new partitions
 *
 * Group  : if several daemons share the store, the group assigns partitions to each, and revokes them within
 *          a session (member.h). Otherwise a session's intakes have all partitions.
 * Session: lasts until the stop, or until something changes: a new partition, an offset or a topic that is
 *          gone. Then it is drained, and the next session begins at the store's positions. So every session
 *          begins as it would after a crash.
 * Exact  : a batch is durable with its ranges or not at all. A partition is always read from the store's
 *          `next`. Kafka's committed offsets follow for lag tools; tallyd does not read them.
 * Errors : a cluster or topic that is away is waited for. EX_DATAERR: a topic was re-created, or lost records
 *          that were not counted. A final store error ends consume_run(). A batch that the store refuses
 *          because another daemon took over ends only the session. EX_CONFIG: store_meet() refuses this one,
 *          or another daemon takes its place in the group twice within ten minutes.
 */
#pragma once

#include "daemon/engine.h"
#include "daemon/file/follow.h"

#define CONSUME_ACCEPT_MAX 64

struct consume_options {
    struct engine *engine;
    struct follow *files;                     /* NULL, or the files to serve besides */
    const char *accepted[CONSUME_ACCEPT_MAX]; /* topics of --accept */
    size_t accepted_count;
};

/* Runs until the stop. */
bool consume_run(const struct consume_options *options, struct err *e) MUST_CHECK;
