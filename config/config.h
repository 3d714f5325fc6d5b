/* config.h - the configuration: one YAML file (or the built-in one), checked whole (config_read.h).
 *
 * Table  : config/keys.def lists every key once: path, type, unit, range, default, reloadable, help. The
 *          reader, `tallyd check --print` and docs/CONFIG.md all come from it.
 * Fields : sources are read before reports, whatever their order. A report may use the fields of event.h
 *          and the fields that a source names in `fields`, and those of derive.h; if a decoding is open
 *          (decode.h), any other too.
 * Secrets: ${NAME} in a value is replaced from the environment ($${ stands for ${). Secrets, store.url and
 *          values of kafka.properties may be file:PATH: the content of that file. Reports and decodings take
 *          neither, since counts must not depend on the environment. config_print() and errors show the
 *          reference, never the value.
 * Limits : CONFIG_* below; no aliases, anchors or tags of YAML.
 * Owner  : config_free() frees all; nothing points into the YAML document.
 */
#pragma once

#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "ingest/decode/decode.h"
#include "ingest/derive/derive.h"
#include "ingest/file/pattern.h"
#include "ingest/kafka/conf.h"
#include "ingest/schema/registry.h"
#include "store/store.h"

#define CONFIG_FILE_BYTES_MAX ((size_t)1 << 20)
#define CONFIG_PROBLEMS_MAX   100 /* further problems are only counted */
#define CONFIG_SOURCES_MAX    RAW_SOURCES_MAX
#define CONFIG_REPORTS_MAX    64
#define CONFIG_PROPERTIES_MAX 100
#define CONFIG_PATHS_MAX      100 /* of one source */

enum source_type { SOURCE_FILE, SOURCE_STDIN, SOURCE_KAFKA };

/* Values of config_source.start_ms and store.preallocate that are no instant and no number. */
#define CONFIG_START_EARLIEST   (-2)
#define CONFIG_PREALLOCATE_AUTO (-1)
#define CONFIG_PREALLOCATE_OFF  0
#define CONFIG_START_LATEST     (-1)

struct config_source {
    char *name;
    enum source_type type;
    struct pattern **paths; /* of a SOURCE_FILE; none: only files given to `import` */
    size_t path_count;
    const char *path; /* the only path, if it has no glob characters; else NULL */
    char *olddir;     /* folder of rotated files, from the folder of the file; NULL: they stay there */
    char *topic;      /* topic of a SOURCE_KAFKA */
    int64_t start_ms; /* first instant of a topic new to the store, in ms, or CONFIG_START_… */
    struct decode decode;
    struct raw raw;
};

/* A value from the environment or a file: its key ("store.url", "sources.access.path.0"), and its reference
 * as written. */
struct config_reference {
    char *key, *text;
};

struct config {
    char *file; /* NULL: built in */
    struct config_source *sources;
    size_t source_count;
    struct report *reports;
    size_t report_count;
    struct config_reference *references;
    size_t reference_count;

    struct decode any_line; /* [auto], for a file that belongs to no source */
    struct derive derive;   /* borrowed by the decodings; not opened */
    struct {
        char *brokers; /* "a:9092,b:9092"; NULL: no source needs them */
        char *group;
        char *instance; /* NULL: none */
        int64_t revoke_ms;
        int64_t threads;
        int64_t queue_bytes;               /* per thread */
        struct kafka_property *properties; /* accepted by kafka_conf_check() */
        size_t property_count;
    } kafka;
    struct registry registry; /* borrowed by the decodings; not opened */
    struct {
        char *topic, *file; /* at most one is set; neither: rejects are dropped */
    } rejects;
    struct {
        char *url; /* "sqlite:tallyd.db" */
        int64_t connections;
        int64_t rollup_delay_ms;
        bool indexes;
        bool ttl;
        bool unsafe_write_concern;
        enum store_validation validation;
        int64_t preallocate;    /* N of 1/N, or CONFIG_PREALLOCATE_… */
        bool preallocate_zeros; /* documents filled with zeros; false: shells */
    } store;
    struct {
        int64_t flush_ms;         /* run: interval between seals */
        int64_t flush_max_ms;     /* run: longest interval between seals, for a store that is slow */
        int64_t batch_bytes;      /* import: input bytes after which a batch is sealed */
        int64_t batch_ms;         /* import: time after which a batch is sealed */
        int64_t cells_max;        /* cells in one batch, per report and thread */
        int64_t series_max;       /* series cached in memory, per report and thread */
        int64_t key_bytes_max;    /* bytes of series' keys cached in memory, per thread */
        int64_t sketch_bytes_max; /* bytes of histograms and distinct counts in a batch, per thread */
        int64_t raw_bytes_max;    /* bytes of raw events in one batch, per thread */
    } aggregate;
    struct {
        int64_t threads; /* 0: one per processor, at most 8 */
    } import;
    struct {
        int64_t line_max; /* bytes */
        int64_t future_max_ms;
        int64_t dimension_bytes_max; /* bytes of one dimension's text */
    } limits;
    struct {
        int64_t rows_max;   /* rows read by one query */
        int64_t points_max; /* steps in one answer */
        int64_t series_max; /* series in one answer */
        int64_t response_bytes_max;
        int64_t sketch_bytes_max; /* histograms and distinct counts of one answer */
        int64_t memory_bytes_max; /* all questions by HTTP under way, without their answers' texts */
        int64_t timeout_ms;
        enum weekday week_start;
    } query;
    struct {
        bool enabled;
        char *listen;             /* "127.0.0.1:8080" */
        char *token;              /* NULL: none */
        char *tls_cert, *tls_key; /* paths; NULL: plain HTTP */
        int64_t connections_max;
        int64_t per_address_max; /* 0: no limit */
        int64_t streams_max;
        int64_t timeout_ms;
        int64_t lag_max; /* messages; 0: no limit */
    } http;
    struct {
        int64_t rollup_after_ms;
        bool weeks;
    } jobs;
    struct {
        int64_t stop_timeout_ms;
    } run;
    struct {
        enum log_level level;
    } log;
};

void config_free(struct config *c);

/* The whole effective configuration as YAML. config_load() reads it back to the same configuration, unless it
 * hides the secrets that stand in it (secret.h). */
void config_print(const struct config *c, bool hides_secrets, struct text *out);
/* A number of what decides what is counted: sources, derived fields and reports, as config_print() writes
 * them. Never 0. */
uint64_t config_fingerprint(const struct config *c);
/* Adds the value of kafka.properties. `path` is its key, under which references are found that are printed
 * instead of values; NULL: print the true values. `hides`: other secrets become "…". */
void config_print_properties(const struct config *c, const char *path, bool hides, struct text *out);
/* Adds the value of a source's path: a text, or a list; nothing if it has none. `path` as above. */
void config_print_paths(const struct config *c, const struct config_source *source, const char *path,
                        struct text *out);
/* Adds the text of docs/CONFIG.md, made from the table. */
void config_document(struct text *out);
