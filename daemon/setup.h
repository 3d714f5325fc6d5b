/* setup.h - turns the configuration into the options of engine, pipeline, store and Kafka client. */
#pragma once

#include "config/config.h"
#include "daemon/count/pipeline.h"
#include "ingest/decode/constants.h"
#include "ingest/kafka/kafka.h"

/* Options of an import. threads 0: as configured, or one per processor, at most 8. */
struct pipeline_options setup_pipeline(const struct config *c, size_t threads);
/* Store options of `run` and `import`. */
struct store_options setup_store(const struct config *c);
/* A topic daemon's group, instance and topics, which identify it to the other writers of a store. */
struct store_writer setup_writer(const struct config *c);
/* Documents that `run` preallocates. An import would write the next period anyway. */
struct prealloc_options setup_prealloc(const struct config *c);
/* Decoding of a file's lines: the first source with a pattern that matches this path (or other_path, which
 * may be NULL), else the first file source, else [auto]. "-" is the source of type stdin. */
const struct decode *setup_decode(const struct config *c, const char *path, const char *other_path);
/* That source; NULL: [auto]. */
const struct config_source *setup_source(const struct config *c, const char *path);
/* The fields that a file's path sets (or else other_path, which may be NULL), if it matches a pattern of a
 * source. The caller frees them with constants_fini(). */
void setup_constants(const struct config *c, const char *path, const char *other_path, struct constants *k);
/* Raw events of a file; NULL: none. */
const struct raw *setup_raw(const struct config *c, const char *path);
/* Options of a Kafka client; they borrow from the configuration. */
struct kafka_options setup_kafka(const struct config *c);
/* Is there a source of type kafka? */
bool setup_has_topics(const struct config *c);
/* Does `run` read lines of this source? A file without a path is for imports, unless it is the only source:
 * then lines come from standard input. */
bool setup_is_followed(const struct config *c, const struct config_source *source);
/* The number of sources that setup_is_followed(). */
size_t setup_count_files(const struct config *c);
/* Parse STEP,STEP… and a source's `time`; "": none. */
bool setup_parse_source(const char *text, const char *time, struct decode *d, struct err *e) MUST_CHECK;
/* Parse --decode STEP,STEP… */
bool setup_parse_decode(const char *text, struct decode *d, struct err *e) MUST_CHECK;
