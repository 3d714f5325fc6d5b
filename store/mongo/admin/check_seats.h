/* mongo/admin/check_seats.h - checks the ledger against its seats, and these against it. */
#pragma once

#include "store/mongo/admin/problem.h"

/* Names damaged seats, missing seats, and seats that are newer than the ledger. Writers may go on. */
bool mongo_check_seats(struct mongo_store *m, const struct mongo_problems *problems,
                       struct err *e) MUST_CHECK;
