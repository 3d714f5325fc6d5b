/* registry.h - the schemas by which messages of Kafka are written: those of a schema registry by their ids,
 * and those of files. The configuration fills a struct registry; chains ask for schemas by it, while the
 * daemon or the judge has it open.
 *
 * Wait    : a schema that is not known yet is fetched by a thread of the registry, never by the asking
 *           thread. The asker sets the message aside, and asks again later. It is never told that there is no
 *           schema: an unknown id, or a registry that is away, is asked for again, after longer and longer
 *           pauses up to retry_max_ms. The log tells of it once, registry_note() as long as it lasts.
 * Cache   : the schema of an id never changes, so it is kept for the life of the process, up to
 *           REGISTRY_SCHEMAS_MAX.
 * Threads : the configuration is one thread's. registry_find() and those below may be called by any thread.
 * Errors  : EX_OSFILE: libcurl or libjansson is missing; EX_NOINPUT, EX_DATAERR: a file cannot be used.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "ingest/record.h"
#include "ingest/schema/registry_server.h"

#define REGISTRY_SCHEMAS_MAX 4096
#define REGISTRY_FILES_MAX   64
#define REGISTRY_PATH_BYTES  1024 /* of a file's path, with its NUL */
#define REGISTRY_RETRY_MS    250  /* the first pause before a schema is asked for again */

/* The schema of a file. */
struct registry_file {
    char path[REGISTRY_PATH_BYTES];
    enum schema_kind kind;
    struct message_schema *schema; /* NULL until it is open */
};

struct registry {
    struct registry_server server;
    int64_t retry_max_ms; /* longest pause between two attempts */

    bool is_asked; /* a decoding needs schemas of the registry */
    struct registry_file *files;
    size_t file_count;
    struct registry_client *client; /* NULL: not open, or not asked */
};

void registry_fini(struct registry *r);
/* A decoding needs the schema of this file; "": those of the registry. False: EX_CONFIG, too many files. */
bool registry_ask(struct registry *r, enum schema_kind kind, const char *path, struct err *e) MUST_CHECK;
/* Do url, credentials and certificates fit together? EX_CONFIG; the text names the key. */
bool registry_check(const struct registry *r, struct err *e) MUST_CHECK;
/* Makes ready what is asked for. The registry itself need not answer yet. `clock` is borrowed. */
bool registry_open(struct registry *r, const struct clock *clock, struct err *e) MUST_CHECK;
/* Does the registry answer? Takes up to timeout_ms. Pre: it is open, and asked. */
bool registry_probe(const struct registry *r, struct err *e) MUST_CHECK;

/* The schema of a file that was asked for. Pre: it is open. */
const struct message_schema *registry_file_schema(const struct registry *r, enum schema_kind kind,
                                                  const char *path);
/* The schema of an id; `kind`: which the asker reads. NULL: it is not known yet, and will be fetched; the
 * record is the first that waits for it. Pre: it is open, and asked. */
const struct message_schema *registry_find(const struct registry *r, enum schema_kind kind, uint32_t id,
                                           const struct record *record);
/* Figures of a registry. */
struct registry_figures {
    size_t waiting;   /* schemas that messages wait for, after a failure to get them */
    int64_t failures; /* requests that failed, since the start */
    char why[256];    /* the first one that is waited for, and why; "": none is */
};
void registry_note(const struct registry *r, struct registry_figures *figures);
