/* mongo/admin/problem.h - where the problems go that a check finds. */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_problems {
    check_fn *fn;
    void *context;
};

void mongo_tell(const struct mongo_problems *to, const char *format, ...) PRINTF_LIKE(2, 3);
