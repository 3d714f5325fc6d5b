/* budget.h - how much memory `tallyd run` takes at most, part by part, by the limits of its configuration.
 *
 * Covers  : everything that grows with traffic. Not covered: the program and its libraries (about 20 MiB),
 *           and the rows that one query adds up (query.series_max, query.points_max).
 * Estimate: each part is as full as its limit allows; no traffic fills all of them at once. A block of lines
 *           or a message may overshoot a limit.
 */
#pragma once

#include "base/text.h"
#include "config/config.h"

struct budget {
    int64_t shards_bytes;  /* series, cells and raw events of two batches, of all ingest threads */
    int64_t input_bytes;   /* lines and messages that are being decoded */
    int64_t derived_bytes; /* what was made of texts that were seen lately */
    int64_t queue_bytes;   /* messages that librdkafka fetched ahead */
    int64_t rejects_bytes; /* dead letters that are not written yet */
    int64_t store_bytes;   /* SQLite's pages and keys; or MongoDB's names, batches and connections */
    int64_t http_bytes;    /* HTTP connections, answers, questions, and the store pages of their readers */
};

struct budget budget_of(const struct config *c);
int64_t budget_total(const struct budget *b);
/* Print the budget as comments of YAML. */
void budget_print(const struct config *c, struct text *out);
