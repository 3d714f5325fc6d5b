/* mongo/admin/check_seats.h - checks the ledger against its seats, and these against it. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Names damaged seats, missing seats, and seats that are newer than the ledger. Writers may go on. */
bool mongo_check_seats(struct mongo_store *m, check_fn *problem, void *context, struct err *e) MUST_CHECK;
