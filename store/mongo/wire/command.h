/* mongo/wire/command.h - what the store says to the server most often. client.h describes the errors.
 *
 * Owner : these functions destroy the filters, updates, options and commands that they are given, in any
 *         case.
 */
#pragma once

#include "store/mongo/wire/client.h"

/* Reads a document by its `_id`, from the primary. `document` is empty if there is no such document. The
 * caller destroys it. */
bool mongo_read_document(struct mongo_client *c, const char *collection, const char *id, bson_t *document,
                         struct err *e) MUST_CHECK;
/* The same with `options` of mongo_find(), such as a projection. */
bool mongo_read_part(struct mongo_client *c, const char *collection, const char *id, bson_t *options,
                     bson_t *document, struct err *e) MUST_CHECK;
/* findAndModify. *found is false if no document matches `query`. `after` is the document after the change;
 * the caller destroys it. */
bool mongo_modify(struct mongo_client *c, const char *collection, bson_t *query, bson_t *update, bool *found,
                  bson_t *after, struct err *e) MUST_CHECK;

/* mongo_find(). `filter` NULL: all documents. `options` NULL: none. */
bool mongo_look(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *options,
                mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
/* mongo_update_one(). `matched` NULL: the caller does not ask. */
bool mongo_change(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *update, bool upsert,
                  bool *matched, struct err *e) MUST_CHECK;
/* Changes every document that the filter matches. `count` as in mongo_write_many(); NULL: the caller does not
 * ask. */
bool mongo_change_all(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *update,
                      int64_t *count, struct err *e) MUST_CHECK;
bool mongo_delete_all(struct mongo_client *c, const char *collection, bson_t *filter, int64_t *count,
                      struct err *e) MUST_CHECK;
/* The number of documents that the filter matches; NULL: of all. */
bool mongo_count(struct mongo_client *c, const char *collection, bson_t *filter, int64_t *count,
                 struct err *e) MUST_CHECK;
/* mongo_read(). */
bool mongo_ask(struct mongo_client *c, bson_t *command, bson_t *reply, struct err *e) MUST_CHECK;
/* Calls `fn` for each document of the list at a path, until it returns false. False: there is no list, or one
 * of its members, as far as they were read, is no document. */
bool mongo_each_document(const bson_t *reply, const char *list, mongo_document_fn *fn, void *context);
/* Reads a list in the reply to a command: calls `fn` for each document of it. An absent collection has an
 * empty list. EX_IOERR: the reply has only a part of the list, or no list of documents. `database` NULL:
 * that of the client. */
#define MONGO_LIST_MAX 100000 /* names in one reply, to be asked for */
#define MONGO_BATCH    "cursor.firstBatch"
bool mongo_list(struct mongo_client *c, const char *database, bson_t *command, const char *list,
                mongo_document_fn *fn, void *context, struct err *e) MUST_CHECK;
/* Runs a command whose reply has nothing but success. `harmless`: an error of this code is none; 0: every
 * error is one. `database` as above. */
#define MONGO_NAMESPACE_NOT_FOUND 26
#define MONGO_NAMESPACE_EXISTS    48
bool mongo_run(struct mongo_client *c, const char *database, bson_t *command, int64_t harmless,
               struct err *e) MUST_CHECK;

/* ---- indexes */

enum mongo_index { INDEX_MISSING, INDEX_IS_THERE, INDEX_DIFFERS };

/* An index and its purpose, for the operator. */
struct mongo_index_of {
    const char *name;
    const char *why; /* purpose of the index, for the operator */
    int64_t ttl_s;   /* documents expire this long after their date; 0: never */
};

struct mongo_index_wanted {
    const char *database; /* NULL: the database of the handle */
    const char *collection, *name;
    const bson_t *key;
    int64_t ttl_s; /* documents expire this long after their date; 0: never */
};

/* Creates an index unless it exists. *state afterwards: the index exists, or a different one does, and *e
 * describes it. */
bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e) MUST_CHECK;
