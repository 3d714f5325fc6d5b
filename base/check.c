#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *text, const char *file, int line, const char *function)
{
    fprintf(stderr, "level=crit event=bug check=\"%s\" at=%s:%d function=%s\n", text, file, line, function);
    abort();
}
