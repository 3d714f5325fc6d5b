/* config.h - what the user asked for: one YAML file (or the built-in one), checked whole.
 *
 * Table  : config/keys.def lists every key once: path, type, unit, range, default, reloadable, help. The
 *          reader, `tallyd check --print`, docs/CONFIG.md and the man page all come from it.
 * Errors : all of a file at once, each "FILE:LINE:COLUMN: found …, expected …", with a "did you mean"
 *          for a misspelt key. Exit status EX_CONFIG (78).
 * Owner  : config_free() frees all; nothing points into the YAML document.
 */
#pragma once

#include "aggregate/report.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "ingest/clf.h"

enum source_type { SOURCE_FILE, SOURCE_STDIN };

struct config_source {
    char *name;
    enum source_type type;
    char *path; /* of SOURCE_FILE; NULL: only what `import` is given */
    enum clf_format format;
};

struct config {
    char *file; /* NULL: built in */
    struct config_source *sources;
    size_t source_count;
    struct report *reports;
    size_t report_count;

    struct {
        char *url; /* "sqlite:tallyd.db" */
    } store;
    struct {
        int64_t flush_ms;      /* run: a batch is sealed at least this often */
        int64_t batch_bytes;   /* import: a batch is sealed after so much input … */
        int64_t batch_ms;      /* … or so long */
        int64_t cells_max;     /* per report and thread in one batch */
        int64_t series_max;    /* per report and thread kept in memory */
        int64_t key_bytes_max; /* per thread, of series' keys kept in memory */
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
    } query;
    struct {
        bool enabled;
        char *listen; /* "127.0.0.1:8080" */
        int64_t connections_max;
        int64_t timeout_ms;
    } http;
    struct {
        enum log_level level;
    } log;
};

/* The built-in configuration: source `access` (auto), reports `site` and `pages`, store tallyd.db in
 * the working directory. */
struct config *config_default(void);
/* NULL with every problem of the file in `problems`, a line each; *code is the exit status. */
struct config *config_load(const char *path, struct text *problems, int *code);
void config_free(struct config *c);

/* The effective configuration as YAML that config_load() takes; secrets are not shown. */
void config_print(const struct config *c, struct text *out);
/* docs/CONFIG.md, from the table. */
void config_document(struct text *out);
