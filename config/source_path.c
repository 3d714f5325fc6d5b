#include "config/source_path.h"

#include <limits.h>
#include <stdlib.h>

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

/* Matches a real path, from the real path of the pattern's folder. */
static bool match_real(const struct pattern *p, const char *real, struct slice captures[])
{
    char folder[PATH_MAX];
    struct text base = {0};
    size_t part = pattern_base(p, &base);
    bool is_there = realpath(base.ptr, folder) != NULL;
    text_fini(&base);
    if (!is_there)
        return false;
    size_t len = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(real, folder, len) == 0 && real[len] == '/' &&
           pattern_match_rest(p, part, slice_text(real + len + 1), captures);
}

bool source_path_match(const struct config_source *source, const char *path, struct constants *k)
{
    struct slice captures[PATTERN_CAPTURES_MAX];
    char buf[PATH_MAX];
    const char *real = source->path_count > 0 ? realpath(path, buf) : NULL;
    if (real == NULL)
        real = path;
    for (size_t i = 0; i < source->path_count; i++) {
        const struct pattern *p = source->paths[i];
        if (!pattern_match(p, slice_text(path), captures) && !match_real(p, real, captures))
            continue;
        if (k != NULL)
            take_captures(p, captures, k);
        return true;
    }
    return false;
}

const char *source_path_olddir(const struct config *c, const char *path)
{
    for (size_t i = 0; i < c->source_count; i++) {
        if (source_path_match(&c->sources[i], path, NULL))
            return c->sources[i].olddir;
    }
    return NULL;
}

bool source_path_list(const struct config *c, struct listing *files, struct err *e)
{
    for (size_t i = 0; i < c->source_count; i++) {
        for (size_t k = 0; k < c->sources[i].path_count; k++) {
            if (!listing_add(files, c->sources[i].paths[k], e))
                return false;
        }
    }
    return files->unread[0] == '\0' || err_set(e, EX_NOINPUT, "%s", files->unread);
}
