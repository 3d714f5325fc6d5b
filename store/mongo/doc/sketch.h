/* mongo/doc/sketch.h - the sketch of a time bucket as members of a document, beside the columns of its
 * measure (document.h). Writers and readers call it; nothing here asks the server.
 *
 *   histogram   zero: 2, buckets: { "-64": 11, "-3": 3 }, negative: { "17": 1 }     each by $inc
 *   newest      events: [ { time, at, host, … }, … ]                              by $push, sorted and cut
 *   distinct    entries: { "03ab5f1": 2, … } or registers: { "0": 3, "4095": 1 }    each by $max
 *
 * Buckets  : a key is an index of Prometheus' native histograms with schema 4, histogram_index(). A negative
 *            number has the key of its opposite, in `negative`. Buckets of a schema above 4 are in members of
 *            that name: buckets_8 and negative_8, by indexes of schema 8. A count of 0 is left by lines that
 *            were taken out. The writer gives each document the buckets of its resolution (measure.h).
 * Entries  : as aggregate/distinct.h says: key and value of an entry are its 26 bits, in hex, and its rank. A
 *            document with entries of many texts, or with both members, is as good as one with registers.
 */
#pragma once

#include "aggregate/measure.h"

#include <bson/bson.h>

#define MONGO_ZERO       "zero"
#define MONGO_BUCKETS    "buckets"
#define MONGO_NEGATIVE   "negative"
#define MONGO_FINE_BYTES 16
/* The name of one of these two members, of a schema; of up to 4: itself. */
const char *mongo_buckets_name(const char *member, int schema, char buf[MONGO_FINE_BYTES]);
#define MONGO_ENTRIES   "entries"
#define MONGO_REGISTERS "registers"
#define MONGO_EVENTS    "events"

/* Adds a histogram to the $inc of an update. `path` is that of its bucket; `takes`: it is taken out. */
void mongo_add_histogram(bson_t *inc, const char *path, const struct histogram *h, bool takes);
/* Adds a distinct count to the $max of an update, as entries or as registers. It may have entries even so. */
void mongo_add_distinct(bson_t *max, const char *path, const struct distinct *d, bool as_registers);
/* Appends a bucket as a whole, with its columns and its sketch: what updates by the functions above, and
 * mongo_add_value(), make of an absent one. `as_decimal`: is_decimal of the report. */
void mongo_append_bucket(bson_t *to, const char *name, const struct measure *m, bool as_decimal,
                         const int64_t *columns, const union sketch *s);
/* Adds newest events to the $push of an update: the server sorts them among those that it has, and keeps the
 * newest. Pre: there are some. */
void mongo_add_newest(bson_t *push, const char *path, const struct recent *newest);
/* Merges the sketch of a bucket, which is `value`, as BSON. False: it is damaged. */
bool mongo_merge_sketch(const struct measure *m, struct slice value, union sketch *to,
                        struct arena *arena) MUST_CHECK;
/* Appends it to `packed`. */
bool mongo_read_sketch(const struct measure *m, struct slice value, struct sketch_work *work,
                       struct text *packed) MUST_CHECK;
