/* reread.h - what those share who read a topic's counted records again from their offsets: `verify`, and
 * `backfill` (refill.h). */
#pragma once

#include "config/config.h"
#include "ingest/decode/chain.h"
#include "store/reader.h"

#define REREAD_SILENCE_MS \
    30000 /* silence of the cluster, or of the schema registry, after which reading fails */

/* Find the configured source that is the topic of a stored source; NULL: there is none. *is_newest: no
 * position is of a later incarnation of the topic. */
const struct config_source *reread_source(const struct config *c, const struct position *positions,
                                          size_t count, const char *stored, bool *is_newest);
/* Wait until the schema of the record is known to the chain. EX_TEMPFAIL: it does not come. */
bool reread_await_schema(const struct config *c, struct chain *chain, const struct record *record,
                         struct err *e) MUST_CHECK;
