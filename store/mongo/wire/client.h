/* mongo/wire/client.h - a connection to MongoDB: commands and their replies. This is the only code that uses
 * libmongoc. All of the store calls it.
 *
 * URI     : mongodb://…/DATABASE?…, with all options of libmongoc (TLS, authentication, read preference). The
 *           default database is `tallyd`. The default write concern is `w: majority`, `j: true`; a weaker one
 *           is unsafe, since a failover may lose writes that too few members have on disk. w=0 is refused,
 *           since nothing would be exact.
 * Retries : none here. The driver tries a read again once, unless waits are bounded. The protocol decides on
 *           retries of writes (docs/LEDGER.md).
 * Timeouts: MONGO_*_MS unless the URI says otherwise. A write concern has half of the reply's timeout. Every
 *           call ends.
 * Threads : one per client.
 * Errors  : EX_UNAVAILABLE + retryable: no name in DNS, no server, no primary, a broken connection, no room,
 *           a write concern that was not met, or a failed login. EX_NOPERM: no right, or a wrong password,
 *           unless a login succeeded before in this process. EX_CONFIG: the URI. EX_OSFILE: no
 *           libmongoc. EX_IOERR: the server refuses for another reason.
 */
#pragma once

#include "base/err.h"

#include <bson/bson.h>

#define MONGO_DATABASE_DEFAULT "tallyd"
#define MONGO_SELECT_MS        5000
#define MONGO_CONNECT_MS       5000
#define MONGO_SOCKET_MS        30000

struct mongo_client;

/* `primary`: read from the primary only, whatever the URI says. `wait_max_ms`: no timeout is longer, whatever
 * the URI says; 0: as it says. */
struct mongo_client *mongo_client_open(const char *url, bool primary, int64_t wait_max_ms,
                                       struct err *e) MUST_CHECK;
void mongo_client_close(struct mongo_client *c);
/* The server's limits of one command. */
struct mongo_limits {
    size_t updates;
    size_t bytes;
    size_t document_bytes;
    bool is_router; /* it asks every shard unless the filter has the shard key */
};

/* Returns the limits that the server named when the connection was made. */
bool mongo_client_limits(struct mongo_client *c, struct mongo_limits *limits, struct err *e) MUST_CHECK;
/* Is the server a router (mongos)? `hello` is its reply to the command of that name. */
bool mongo_is_router(const bson_t *hello);
/* EX_CONFIG: with this URI, acknowledged writes may be lost. */
bool mongo_client_is_safe(const struct mongo_client *c, struct err *e) MUST_CHECK;
/* The URI without its password. */
const char *mongo_client_name(const struct mongo_client *c);
const char *mongo_client_database(const struct mongo_client *c);
/* Timeout of a reply. */
int32_t mongo_client_socket_ms(const struct mongo_client *c);

/* `reply` is initialised in any case; the caller destroys it. Neither function looks at the errors of single
 * documents ("writeErrors"): pass those to mongo_check_write(). */
bool mongo_read(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e) MUST_CHECK;
bool mongo_write(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e) MUST_CHECK;
/* mongo_write() in another database; NULL: that of the client. `concern`: the write concern; NULL: that of
 * the URI. With w: 0 it does not wait, and the reply is empty. */
bool mongo_write_in(struct mongo_client *c, const char *database, const bson_t *command,
                    const bson_t *concern, bson_t *reply, struct err *e) MUST_CHECK;
/* mongo_read() in another database; NULL: that of the client. */
bool mongo_read_in(struct mongo_client *c, const char *database, const bson_t *command, bson_t *reply,
                   struct err *e) MUST_CHECK;
/* Sets *e from one element of "writeErrors". Returns false. */
bool mongo_check_write(struct mongo_client *c, const bson_iter_t *failure, const char *what,
                       struct err *e) MUST_CHECK;

#define MONGO_DUPLICATE_KEY 11000

/* Checks the reply of an insert of several documents. A document that existed already counts as inserted. */
bool mongo_check_inserts(struct mongo_client *c, const bson_t *reply, const char *what,
                         struct err *e) MUST_CHECK;

/* Inserts a document. If a document with its `_id` exists already, that document is taken for it. */
bool mongo_make(struct mongo_client *c, const char *collection, const bson_t *document,
                struct err *e) MUST_CHECK;
/* An upsert that meets a duplicate key succeeds with *matched false: the document exists. */
bool mongo_update_one(struct mongo_client *c, const char *collection, const bson_t *filter,
                      const bson_t *update, bool upsert, bool *matched, struct err *e) MUST_CHECK;

/* Upserts several documents, by an array of updates. One that meets a duplicate key leaves its document as it
 * is. *count: documents that were found or made. */
bool mongo_upsert_all(struct mongo_client *c, const char *collection, const bson_t *updates, int64_t *count,
                      struct err *e) MUST_CHECK;

/* An update or delete of many documents; the error of any document fails the call. *count: documents
 * changed; NULL: the caller does not ask. Destroys the command. */
bool mongo_write_many(struct mongo_client *c, bson_t *command, const char *collection, int64_t *count,
                      struct err *e) MUST_CHECK;

typedef bool mongo_document_fn(void *context, const bson_t *document); /* false ends the walk */
/* `options` of mongoc_collection_find_with_opts(): projection, sort, limit. NULL: none. */
bool mongo_find(struct mongo_client *c, const char *collection, const bson_t *filter, const bson_t *options,
                mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
/* mongo_find() as a cursor; several may be open. mongo_cursor_next() returns errors of opening, too. */
struct mongo_cursor;
struct mongo_cursor *mongo_cursor_open(struct mongo_client *c, const char *collection, const bson_t *filter,
                                       const bson_t *options);
/* *document is valid until the next call, and NULL at the end. */
bool mongo_cursor_next(struct mongo_cursor *cu, const bson_t **document, struct err *e) MUST_CHECK;
void mongo_cursor_close(struct mongo_cursor *cu); /* NULL: nothing to close */
/* `pipeline`: { pipeline: [ … ] }. */
bool mongo_aggregate(struct mongo_client *c, const char *collection, const bson_t *pipeline,
                     mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
