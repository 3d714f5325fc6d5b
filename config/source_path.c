#include "config/source_path.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static void take_captures(const struct pattern *p, const struct slice captures[], struct constants *k)
{
    enum field f = FIELD_COUNT;
    *k = (struct constants){0};
    for (size_t i = 0; i < p->capture_count; i++) {
        bool is_known = field_parse(slice_text(p->captures[i]), &f); /* since it was loaded */
        ASSERT(is_known);
        constants_add(k, f, captures[i]);
    }
}

/* Matches a real path with a relative pattern, behind the working directory. */
static bool match_relative(const struct pattern *p, const char *real, struct slice captures[])
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == NULL)
        return false;
    size_t len = strcmp(here, "/") == 0 ? 0 : strlen(here);
    return strncmp(real, here, len) == 0 && real[len] == '/' &&
           pattern_match(p, slice_text(real + len + 1), captures);
}

static bool match_real(const struct pattern *p, const char *real, struct slice captures[])
{
    return p->is_absolute ? pattern_match(p, slice_text(real), captures) : match_relative(p, real, captures);
}

bool source_path_match(const struct config_source *source, const char *path, struct constants *k)
{
    struct slice captures[PATTERN_CAPTURES_MAX];
    char real[PATH_MAX];
    bool is_real = source->path_count > 0 && realpath(path, real) != NULL;
    for (size_t i = 0; i < source->path_count; i++) {
        const struct pattern *p = source->paths[i];
        if (!pattern_match(p, slice_text(path), captures) && !(is_real && match_real(p, real, captures)))
            continue;
        if (k != NULL)
            take_captures(p, captures, k);
        return true;
    }
    return false;
}
