/* budget.h - what the limits of the configuration let `tallyd run` take, part by part, at most.
 *
 * Of      : what grows with traffic, and is bounded. Not the program and its libraries (about 20 MiB), nor
 *           what one query adds up (query.series_max, query.points_max).
 * Estimate: each part is as full as its limit lets it be, which no traffic does to all of them at once. A
 *           block of lines, or a message, may overshoot a limit.
 */
#pragma once

#include "base/text.h"
#include "config/config.h"

struct budget {
    int64_t shards_bytes;  /* series, and the counters of two batches, of every ingest thread */
    int64_t input_bytes;   /* lines and messages at hand */
    int64_t queue_bytes;   /* what librdkafka fetched ahead */
    int64_t rejects_bytes; /* waiting to be written */
    int64_t store_bytes;   /* the writer's pages and keys */
    int64_t http_bytes;    /* connections, and the pages of their readers */
};

struct budget budget_of(const struct config *c);
int64_t budget_total(const struct budget *b);
/* As comments of YAML. */
void budget_print(const struct config *c, struct text *out);
