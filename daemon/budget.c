#include "daemon/budget.h"

#include "daemon/backfill.h"
#include "daemon/count/dead_letters.h"
#include "daemon/service/service.h"
#include "daemon/setup.h"
#include "ingest/decode/json_write.h"
#include "ingest/decode/remote_write.h"
#include "ingest/derive/derived.h"
#include "store/mongo/mongo.h"
#include "store/mongo/writer/crowd.h"
#include "store/sqlite/sqlite.h"
#include "web/server.h"

#include <inttypes.h>
#include <stdlib.h>

#define INPUT_BYTES ((int64_t)64 << 10) /* buffers of an input */

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)

/* librdkafka may exceed its limit by one answer to a fetch. */
static int64_t queue_overshoot(const struct config *c)
{
    int64_t bytes = 50 * MIB; /* librdkafka's default */
    for (size_t i = 0; i < c->kafka.property_count; i++) {
        if (strcmp(c->kafka.properties[i].name, "fetch.max.bytes") == 0)
            bytes = strtoll(c->kafka.properties[i].value, NULL, 10);
    }
    return bytes;
}

/* The report whose shard takes most may be backfilled. */
static int64_t backfill_bytes(const struct config *c)
{
    const struct shard_limits limits = backfill_limits(c);
    size_t most = 0;
    for (size_t i = 0; i < c->report_count; i++) {
        size_t bytes = shard_bytes_max(&c->reports[i], 1, &limits);
        most = bytes > most ? bytes : most;
    }
    return (int64_t)most;
}

/* The JSON of a message, as it is written and as the next step reads it; or an unpacked message of remote
 * write and its events, in each topic's chain. */
static int64_t message_bytes(const struct config *c)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < c->source_count; i++) {
        const struct decode *d = &c->sources[i].decode;
        if (decode_needs_schema(d))
            bytes += 2 * JSON_WRITE_GROWTH * c->limits.line_max;
        if (d->step_count > 0 && d->steps[0].kind == STEP_REMOTE_WRITE)
            bytes += REMOTE_WRITE_GROWTH * c->limits.line_max;
    }
    return bytes;
}

struct budget budget_of(const struct config *c)
{
    bool has_topics = setup_has_topics(c), is_sqlite = strncmp(c->store.url, "sqlite:", 7) == 0;
    int64_t files = (int64_t)setup_count_files(c);
    files += is_sqlite; /* one that is handed over, by an import or a backfill */
    int64_t topics = 0;
    for (size_t i = 0; i < c->source_count; i++)
        topics += c->sources[i].type == SOURCE_KAFKA;
    int64_t topic_threads = has_topics ? c->kafka.threads : 0, threads = topic_threads + (files > 0);
    struct pipeline_options options = setup_pipeline(c, 1);
    struct budget b = {0};
    b.shards_bytes = threads * (int64_t)shard_bytes_max(c->reports, c->report_count, &options.shard);
    if (is_sqlite)
        b.shards_bytes += backfill_bytes(c);
    /* A block, and each reader's rest; and a record's text without escapes. */
    b.input_bytes = topic_threads * c->limits.line_max + files * (c->limits.line_max + INPUT_BYTES) +
                    (files + (files > 0)) * ((int64_t)READER_BLOCK_BYTES + c->limits.line_max);
    b.input_bytes += topic_threads * message_bytes(c);
    b.derived_bytes = (topic_threads * topics + files) * (int64_t)derived_bytes_max(&c->derive);
    if (has_topics)
        b.queue_bytes = topic_threads * (c->kafka.queue_bytes + queue_overshoot(c));
    if (has_topics && is_sqlite)
        b.queue_bytes += BACKFILL_QUEUE_BYTES;
    if (c->rejects.topic != NULL || c->rejects.file != NULL)
        b.rejects_bytes = threads * 2 * (int64_t)DEAD_LETTERS_BYTES_MAX;
    if (is_sqlite)
        b.store_bytes = (int64_t)sqlite_bytes_max(c->reports, c->report_count);
    int64_t names_bytes = (int64_t)mongo_bytes_max(c->reports, c->report_count);
    if (mongo_is_url(c->store.url)) /* the writer and the jobs have a handle each, with its own names */
        b.store_bytes = 2 * names_bytes + MONGO_BATCH_FACTOR * b.shards_bytes +
                        (int64_t)mongo_crowd_bytes_max(c->reports, c->report_count) +
                        (c->store.connections + 1) * (int64_t)MONGO_CONNECTION_BYTES;
    if (c->http.enabled) {
        const struct server_options http = service_server_options(c);
        b.sending_bytes = server_sending_bytes_max(&http);
        b.question_bytes = server_question_bytes_max(&http) +
                           READERS_MAX * (is_sqlite ? SQLITE_READER_CACHE_KIB * KIB : names_bytes);
    }
    return b;
}

int64_t budget_total(const struct budget *b)
{
    return b->shards_bytes + b->input_bytes + b->derived_bytes + b->queue_bytes + b->rejects_bytes +
           b->store_bytes + b->sending_bytes + b->question_bytes + BUDGET_PROGRAM_BYTES;
}

static void print_part(const char *what, int64_t bytes, const char *limits, struct text *out)
{
    if (bytes > 0)
        text_printf(out, "#   %-38s %6" PRId64 " MiB%s%s\n", what, (bytes + MIB - 1) / MIB,
                    limits[0] != '\0' ? "  " : "", limits);
}

void budget_print(const struct config *c, struct text *out)
{
    struct budget b = budget_of(c);
    text_puts(out,
              "#\n# The most memory that `tallyd run` uses, if each part is as full as its limits allow:\n");
    print_part("series, counters, sketches, raw events", b.shards_bytes,
               "aggregate.*, of each report and kafka.threads", out);
    print_part("lines and messages in work", b.input_bytes, "limits.line_max", out);
    print_part("fields made of others", b.derived_bytes, "", out);
    print_part("fetched ahead", b.queue_bytes, "kafka.queue_size and one answer (fetch.max.bytes)", out);
    print_part("rejects not yet written", b.rejects_bytes, "", out);
    print_part("pages, keys and rows of the store", b.store_bytes, "", out);
    print_part("connections, answers, streams", b.sending_bytes,
               "http.connections_max, http.streams_max, query.response_max", out);
    print_part("questions that are being answered", b.question_bytes, "query.memory_max, query.response_max",
               out);
    print_part("the program itself", BUDGET_PROGRAM_BYTES, "", out);
    print_part("in all", budget_total(&b), "", out);
}
