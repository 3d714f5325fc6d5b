/* mongo/ledger/books.h - reads the books of each partition from `books`. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Takes a report's entries for the partition of a range. */
bool mongo_read_span(struct mongo_store *m, const struct range *r, size_t report, struct backfill_span *span,
                     struct err *e) MUST_CHECK;
/* Takes the entries of the source itself and of its reports from a document of `books`; `fn` gets the name of
 * neither source nor partition. */
void mongo_read_entries(const struct mongo_store *m, const bson_t *book, book_fn *fn, void *context);
bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e) MUST_CHECK;
