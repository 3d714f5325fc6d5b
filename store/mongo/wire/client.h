/* mongo/wire/client.h - a connection to MongoDB: commands and their replies. Nothing else knows libmongoc.
 *
 * URI     : mongodb://…/DATABASE?…, with all that libmongoc takes (TLS, authentication, read preference); the
 *           database is `tallyd` where it names none. Writes are acknowledged by `w: majority`, `j: true`
 *           unless it says otherwise, which is unsafe: a failover may lose what fewer have, or none on disk.
 *           w=0 is refused, since nothing would be exact.
 * Retries : none here, and none by the driver: what is sent again, and when, is the protocol's
 *           (docs/LEDGER.md).
 * Timeouts: MONGO_*_MS unless the URI says otherwise, of a write concern half of what a reply may take; so
 *           every call ends.
 * Threads : one per client.
 * Errors  : EX_UNAVAILABLE + retryable: no name in DNS, no server, no primary, a broken connection, no room,
 *           a write concern that was not met, a login that failed; but EX_NOPERM: no right, and a wrong
 *           password, unless one was right before in this process; EX_CONFIG: the URI; EX_OSFILE: no
 *           libmongoc; EX_IOERR: what else the server refuses.
 */
#pragma once

#include "base/err.h"

#include <bson/bson.h>

#define MONGO_DATABASE_DEFAULT "tallyd"
#define MONGO_SELECT_MS        5000
#define MONGO_CONNECT_MS       5000
#define MONGO_SOCKET_MS        30000

struct mongo_client;

/* `primary`: read nowhere else, whatever the URI says. */
struct mongo_client *mongo_client_open(const char *url, bool primary, struct err *e);
void mongo_client_close(struct mongo_client *c);
/* What the server takes at most in one command, … */
struct mongo_limits {
    size_t updates;
    size_t bytes;
    size_t document_bytes;
    bool is_router; /* of a sharded cluster: it asks each shard unless it is told the shard key */
};

/* … as it said when the connection was made. */
bool mongo_client_limits(struct mongo_client *c, struct mongo_limits *limits, struct err *e) MUST_CHECK;
/* Is it a router that says so of itself, in answer to "hello"? */
bool mongo_is_router(const bson_t *hello);
/* EX_CONFIG: by its URI, what was acknowledged may be lost. */
bool mongo_client_is_safe(const struct mongo_client *c, struct err *e) MUST_CHECK;
/* Without its password. */
const char *mongo_client_name(const struct mongo_client *c);
const char *mongo_client_database(const struct mongo_client *c);
/* How long a reply is waited for. */
int32_t mongo_client_socket_ms(const struct mongo_client *c);

/* `reply` is initialised in any case; the caller destroys it. Errors of single documents ("writeErrors") are
 * not looked at, … */
bool mongo_read(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e) MUST_CHECK;
bool mongo_write(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e) MUST_CHECK;
/* The same in another database; `concern`: how many members are to have what is written, NULL: as the URI has
 * it. Where that is w: 0, nothing is waited for, and the reply is empty. */
bool mongo_write_in(struct mongo_client *c, const char *database, const bson_t *command,
                    const bson_t *concern, bson_t *reply, struct err *e) MUST_CHECK;
/* The first in another database. */
bool mongo_read_in(struct mongo_client *c, const char *database, const bson_t *command, bson_t *reply,
                   struct err *e) MUST_CHECK;
/* … but by this, one by one: returns false. */
bool mongo_check_write(struct mongo_client *c, const bson_iter_t *failure, const char *what, struct err *e);

#define MONGO_DUPLICATE_KEY 11000

/* After an insert of several: they are there, those that were there before, too. */
bool mongo_check_inserts(struct mongo_client *c, const bson_t *reply, const char *what,
                         struct err *e) MUST_CHECK;

/* An insert, after which the document is there: one with its `_id` that was there before is taken for it. */
bool mongo_make(struct mongo_client *c, const char *collection, const bson_t *document,
                struct err *e) MUST_CHECK;
/* An upsert that meets a duplicate key is good, and *matched false: the document is there. */
bool mongo_update_one(struct mongo_client *c, const char *collection, const bson_t *filter,
                      const bson_t *update, bool upsert, bool *matched, struct err *e) MUST_CHECK;

/* An update or delete of many, all or nothing of which is an error; *count: documents that it changed. */
bool mongo_write_many(struct mongo_client *c, const bson_t *command, const char *collection, int64_t *count,
                      struct err *e) MUST_CHECK;

typedef bool mongo_document_fn(void *context, const bson_t *document); /* false ends the walk */
/* `options` as of mongoc_collection_find_with_opts(): projection, sort, limit. NULL: none. */
bool mongo_find(struct mongo_client *c, const char *collection, const bson_t *filter, const bson_t *options,
                mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
/* The same, document by document; several may be open. Of an error mongo_cursor_next() tells. */
struct mongo_cursor;
struct mongo_cursor *mongo_cursor_open(struct mongo_client *c, const char *collection, const bson_t *filter,
                                       const bson_t *options);
/* *document is NULL at the end, and valid until the next. */
bool mongo_cursor_next(struct mongo_cursor *cu, const bson_t **document, struct err *e) MUST_CHECK;
void mongo_cursor_close(struct mongo_cursor *cu); /* NULL: none */
/* `pipeline`: { pipeline: [ … ] }. */
bool mongo_aggregate(struct mongo_client *c, const char *collection, const bson_t *pipeline,
                     mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
