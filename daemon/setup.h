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
/* A file has the source of its label, under which it was counted, or else of its path (source_path_find());
 * each may be NULL. "-" is the source of type stdin. If there is none, it has the first file source without a
 * path, or else the first file source. */

/* Decoding of a file's lines; [auto] without any file source. */
const struct decode *setup_decode(const struct config *c, const char *label, const char *path);
/* The source of a path; NULL: there is no file source. */
const struct config_source *setup_source(const struct config *c, const char *path);
/* Does a file have its source by its label, but not by its path? Then it must keep the label. */
bool setup_keeps_label(const struct config *c, const char *label, const char *path);
/* The fields that the name of a file's log sets. The caller frees them with constants_fini(). */
void setup_constants(const struct config *c, const char *label, const char *path, struct constants *k);
/* Raw events of a file; NULL: none. */
const struct raw *setup_raw(const struct config *c, const char *label, const char *path);
/* Is it certain by which decode a file is read? *guess: no source matches the file, and it has this one as
 * it is the first; NULL: a source matches, or there is no choice. False: no source matches, and their decodes
 * differ, so the user must say one; EX_USAGE. */
bool setup_guess(const struct config *c, const char *label, const char *path,
                 const struct config_source **guess, struct err *e) MUST_CHECK;
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
