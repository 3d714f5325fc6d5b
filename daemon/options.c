#include "daemon/options.h"

#include <stdio.h>

struct config *options_load(const char *file, const char *store_url, int *code)
{
    struct text problems = {0};
    struct err e;
    struct config *c = file == NULL ? config_default() : config_load(file, &problems, code);
    if (c == NULL)
        fputs(problems.ptr, stderr);
    text_fini(&problems);
    if (c == NULL || store_url == NULL || config_set_store(c, store_url, &e))
        return c;
    fprintf(stderr, "--store: %s\n", e.text);
    *code = EX_USAGE;
    config_free(c);
    return NULL;
}
