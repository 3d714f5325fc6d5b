#include "store/mongo/admin/problem.h"

#include <stdarg.h>
#include <stdio.h>

#define PROBLEM_BYTES 2048

void mongo_tell(const struct mongo_problems *to, const char *format, ...)
{
    char line[PROBLEM_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to->fn(to->context, line);
}
