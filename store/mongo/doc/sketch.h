/* mongo/doc/sketch.h - the sketch of a time bucket as members of a document, beside the columns of its
 * measure (document.h). Writers and readers call it; nothing here asks the server.
 *
 *   histogram   zero: 2, buckets: { "-64": 11, "-3": 3 }, negative: { "17": 1 }     each by $inc
 *
 * A key of `buckets` is an index of Prometheus' native histograms: slot - HISTOGRAM_SLOT_OF_ONE. A negative
 * number has the key of its opposite, in `negative`. A count of 0 is left by lines that were taken out.
 */
#pragma once

#include "aggregate/measure.h"

#include <bson/bson.h>

/* Adds a sketch to the $inc of an update. `path` is that of its bucket; `takes`: it is taken out. */
void mongo_add_sketch(bson_t *inc, const struct measure *m, const char *path, const union sketch *sketch,
                      bool takes);
/* Appends the sketch of a bucket to `packed`. `value` is the bucket, as BSON. False: it is damaged. */
bool mongo_read_sketch(const struct measure *m, struct slice value, struct sketch_work *work,
                       struct text *packed) MUST_CHECK;
