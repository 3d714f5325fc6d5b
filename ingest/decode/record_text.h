/* record_text.h - the text of a record's key, topic, partition, time or header, for a field that is taken
 * from there. A chain asks once for all events of a record. Nothing here fails.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/record.h"

/* ptr NULL: the record has none. Numbers are printed into `memory`; other texts are the record's own.
 * Pre: the origin is of the record, not of its value. */
struct slice record_text(const struct record *r, const struct origin *o, struct arena *memory);
