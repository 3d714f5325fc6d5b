/* registry_server.h - a schema registry as a server: where it is, who asks, and requests to it. registry.h
 * calls it; its thread is the one that waits for the answers.
 *
 *   GET URL/schemas/ids/7                 the schema of an id, as Confluent's registry has it (Karapace,
 *   GET URL/subjects/NAME/versions/3      Apicurio and Redpanda, too); and a schema that it refers to
 *
 * Secrets : password and token are sent to the url only, and appear in no error.
 * Errors  : EX_UNAVAILABLE, EX_NOPERM: the server is away, refuses, or does not know the schema; EX_DATAERR:
 *           it cannot be used; EX_USAGE, EX_NOINPUT, EX_OSFILE: as base/http.h says.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/schema/message_schema.h"

#include <stdatomic.h>

#define REGISTRY_REFERENCES_MAX   256       /* schemas that one schema refers to */
#define REGISTRY_ANSWER_BYTES_MAX (4 << 20) /* bytes of one answer, or of a file */
#define REGISTRY_CONNECT_MS       5000

struct registry_server {
    char *url; /* "http://registry:8081"; NULL: none */
    char *user, *password, *token;
    char *cacert;             /* of those who may sign its certificate; NULL: the system's */
    char *tls_cert, *tls_key; /* of this client; NULL: none */
    int64_t timeout_ms;
};

/* Loads the libraries that the functions below need. */
bool registry_server_open(struct err *e) MUST_CHECK;
/* Gets the answer to a path below the url, such as "/schemas/ids/7". `stop`: gives up soon after it is set.
 * False: *is_away: the next request would fail, too. */
bool registry_get(const struct registry_server *r, const char *path, const atomic_bool *stop,
                  struct text *answer, bool *is_away, struct err *e) MUST_CHECK;
/* Gets the schema of an id, and those that it refers to. NULL: as registry_get(). */
struct message_schema *registry_fetch(const struct registry_server *r, enum schema_kind kind, uint32_t id,
                                      const atomic_bool *stop, bool *is_away, struct err *e) MUST_CHECK;
/* Makes a schema of the text of a file. */
struct message_schema *registry_of_text(enum schema_kind kind, struct slice text, struct err *e) MUST_CHECK;
