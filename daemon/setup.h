/* setup.h - the configuration as the options of what is built from it. */
#pragma once

#include "config/config.h"
#include "daemon/count/pipeline.h"
#include "ingest/kafka/kafka.h"

/* For import; `run` changes what differs. threads 0: as configured, or one per processor, at most 8. */
struct pipeline_options setup_pipeline(const struct config *c, size_t threads);
/* What `run` and `import` ask of their store. */
struct store_options setup_store(const struct config *c);
/* Of a daemon that counts topics: who it is to others. */
struct store_writer setup_writer(const struct config *c);
/* … and what `run` makes before it is needed; an import would write the next period anyway. */
struct prealloc_options setup_prealloc(const struct config *c);
/* How the lines of a file are decoded: as the source whose path it is says (or its second name, which may be
 * NULL), else as the first file source, else [auto]. Standard input, "-", is the source of that type. */
const struct decode *setup_decode(const struct config *c, const char *path, const char *other_path);
/* … and what is kept of their events; NULL: nothing. */
const struct raw *setup_raw(const struct config *c, const char *path);
/* How to reach the cluster; it borrows from the configuration. */
struct kafka_options setup_kafka(const struct config *c);
/* Is there a source of type kafka? */
bool setup_has_topics(const struct config *c);
/* --decode STEP,STEP… */
bool setup_parse_decode(const char *text, struct decode *d, struct err *e) MUST_CHECK;
