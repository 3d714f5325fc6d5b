/* mongo/ledger/books.h - what was counted of each partition, as documents of `books`. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e);
