/* budget.h - how much memory `tallyd run` takes at most, part by part, by the limits of its configuration.
 *
 * Covers  : everything that grows with traffic, and the program itself: all of RssAnon in /proc. Not covered:
 *           pages of its file and libraries, which the system shares and takes back.
 * Estimate: each part is as full as its limit allows; no traffic fills all of them at once. A block of lines
 *           or a message may overshoot a limit.
 */
#pragma once

#include "base/text.h"
#include "config/config.h"

#define BUDGET_PROGRAM_BYTES ((int64_t)16 << 20) /* what it takes before there is any traffic */

struct budget {
    int64_t shards_bytes;   /* series, cells, sketches and raw events of two batches, of all ingest threads */
    int64_t input_bytes;    /* lines and messages that are being decoded */
    int64_t derived_bytes;  /* what was made of texts that were seen lately */
    int64_t queue_bytes;    /* messages that librdkafka fetched ahead */
    int64_t rejects_bytes;  /* dead letters that are not written yet */
    int64_t store_bytes;    /* SQLite's pages, keys and rows; or MongoDB's names, batches and connections */
    int64_t sending_bytes;  /* HTTP connections, streams, and answers that are being sent */
    int64_t question_bytes; /* questions that are being answered, and the store pages of their readers */
};

struct budget budget_of(const struct config *c);
int64_t budget_total(const struct budget *b);
/* Print the budget as comments of YAML. */
void budget_print(const struct config *c, struct text *out);
