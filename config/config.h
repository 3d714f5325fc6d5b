/* config.h - what the user asked for: one YAML file (or the built-in one), checked whole (config_read.h).
 *
 * Table  : config/keys.def lists every key once: path, type, unit, range, default, reloadable, help. The
 *          reader, `tallyd check --print` and docs/CONFIG.md all come from it.
 * Fields : sources are read before reports, wherever they stand. A report may use the fields of event.h,
 *          those that some source names in `fields`, and any other where a decoding is open (decode.h).
 * Secrets: ${NAME} in a value is taken from the environment ($${ stands for ${), and store.url and the
 *          values of kafka.properties may be file:PATH, which stands for what that file holds. Neither in
 *          reports and decodings: what is counted must not change with the environment. config_print() and
 *          errors show the reference, never what it stood for.
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
#include "ingest/kafka/conf.h"
#include "store/store.h"

#define CONFIG_FILE_BYTES_MAX ((size_t)1 << 20)
#define CONFIG_PROBLEMS_MAX   100 /* further ones are only counted */
#define CONFIG_SOURCES_MAX    RAW_SOURCES_MAX
#define CONFIG_REPORTS_MAX    64
#define CONFIG_PROPERTIES_MAX 100

struct key; /* keys.h */

enum source_type { SOURCE_FILE, SOURCE_STDIN, SOURCE_KAFKA };

/* Where a topic begins that the store knows nothing of; else an instant in ms. */
#define CONFIG_START_EARLIEST   (-2)
#define CONFIG_PREALLOCATE_AUTO (-1)
#define CONFIG_PREALLOCATE_OFF  0
#define CONFIG_START_LATEST     (-1)

struct config_source {
    char *name;
    enum source_type type;
    char *path;       /* of SOURCE_FILE; NULL: only what `import` is given */
    char *topic;      /* of SOURCE_KAFKA */
    int64_t start_ms; /* of SOURCE_KAFKA */
    struct decode decode;
    struct raw raw;
};

/* A value that came from elsewhere: its key ("store.url", "sources.access.path") and how it was written. */
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

    struct {
        char *brokers; /* "a:9092,b:9092"; NULL: no source needs it */
        char *group;
        char *instance; /* NULL: none */
        int64_t revoke_ms;
        int64_t threads;
        int64_t queue_bytes;               /* per thread */
        struct kafka_property *properties; /* which kafka_conf_check() found good */
        size_t property_count;
    } kafka;
    struct {
        char *topic, *file; /* at most one; else rejects go nowhere */
    } rejects;
    struct {
        char *url; /* "sqlite:tallyd.db" */
        int64_t connections;
        bool indexes;
        bool ttl;
        bool unsafe_write_concern;
        enum store_validation validation;
        int64_t preallocate;    /* 1/N: N; or one of CONFIG_PREALLOCATE_… */
        bool preallocate_zeros; /* else shells */
    } store;
    struct {
        int64_t flush_ms;      /* run: a batch is sealed so often, … */
        int64_t flush_max_ms;  /* … and less often, up to this, as the store can take it */
        int64_t batch_bytes;   /* import: a batch is sealed after so much input … */
        int64_t batch_ms;      /* … or so long */
        int64_t cells_max;     /* per report and thread in one batch */
        int64_t series_max;    /* per report and thread kept in memory */
        int64_t key_bytes_max; /* per thread, of series' keys kept in memory */
        int64_t raw_bytes_max; /* per thread in one batch, of documents of events */
    } aggregate;
    struct {
        int64_t threads; /* 0: one per processor, at most 8 */
    } import;
    struct {
        int64_t line_max; /* bytes */
        int64_t future_max_ms;
        int64_t dimension_bytes_max; /* of one dimension's text */
    } limits;
    struct {
        int64_t rows_max;   /* rows read by one query */
        int64_t points_max; /* steps in one answer */
        int64_t series_max; /* series in one answer */
        int64_t response_bytes_max;
        enum weekday week_start;
    } query;
    struct {
        bool enabled;
        char *listen;             /* "127.0.0.1:8080" */
        char *token;              /* NULL: none */
        char *tls_cert, *tls_key; /* paths; NULL: plain HTTP */
        int64_t connections_max;
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

/* The effective configuration, whole, as YAML that config_load() takes back to the same. */
void config_print(const struct config *c, struct text *out);
/* The value of one key of `base`, a struct of the key's owner, also of a list: what it is, not how it was
 * written. For comparing, since it may be a secret. */
void config_print_value(const struct key *k, const void *base, struct text *out);
/* docs/CONFIG.md, from the table. */
void config_document(struct text *out);
