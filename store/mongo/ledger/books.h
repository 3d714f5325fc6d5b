/* mongo/ledger/books.h - reads the books of each partition from `books`. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e);
