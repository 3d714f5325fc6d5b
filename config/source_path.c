#include "config/source_path.h"

#include "ingest/file/family.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

/* ---- rotated files */

/* A file, and the logs of which it may be a rotated one. */
struct search {
    const struct config *config;
    const char *path;
    struct constants *constants; /* NULL: not wanted */
    char folder[PATH_MAX];       /* its real folder, or as it is written */
    char written[PATH_MAX];      /* its folder as it is written */
    struct slice name;           /* within the folder */
    bool needs_log;              /* the log must be there */
};

static bool set_folder(struct search *s)
{
    const char *slash = strrchr(s->path, '/');
    char *folders[FAMILY_FOLDERS];
    s->name = slice_text(slash != NULL ? slash + 1 : s->path);
    family_folders(s->path, NULL, folders);
    bool fits = strlen(folders[0]) < sizeof s->written;
    if (fits) {
        snprintf(s->written, sizeof s->written, "%s", folders[0]);
        if (realpath(folders[0], s->folder) == NULL)
            snprintf(s->folder, sizeof s->folder, "%s", folders[0]);
    }
    free(folders[0]);
    return fits;
}

/* Does the source match the log of this name in that folder? */
static bool match_log(const struct search *s, const struct config_source *source, const char *folder,
                      const char *name)
{
    struct text log = {0};
    struct stat status;
    text_printf(&log, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/", name);
    bool is = (!s->needs_log || (stat(log.ptr, &status) == 0 && S_ISREG(status.st_mode))) &&
              source_path_match(source, log.ptr, s->constants);
    text_fini(&log);
    return is;
}

/* Is the file's folder this pattern's olddir? Then `folder` gets that of its logs. */
static bool find_log_folder(const struct search *s, const struct pattern *p, const char *olddir,
                            struct text *folder)
{
    char real[PATH_MAX], *folders[FAMILY_FOLDERS];
    size_t len = strlen(s->folder), old_len = strlen(olddir);
    text_clear(folder);
    if (olddir[0] != '/' && len > old_len + 1 && s->folder[len - old_len - 1] == '/' &&
        strcmp(s->folder + len - old_len, olddir) == 0) {
        text_printf(folder, "%.*s", (int)(len - old_len - 1), s->folder);
        return true;
    }
    bool is_one = pattern_base(p, folder) + 1 == p->part_count;
    text_puts(folder, "/x");
    family_folders(folder->ptr, olddir, folders);
    bool is = is_one && realpath(folders[1], real) != NULL && strcmp(real, s->folder) == 0;
    text_clear(folder);
    text_puts(folder, folders[0]);
    free(folders[0]);
    free(folders[1]);
    return is;
}

static bool match_olddir(const struct search *s, const struct config_source *source, const char *name)
{
    struct text folder = {0};
    bool is = false;
    for (size_t i = 0; source->olddir != NULL && i < source->path_count && !is; i++)
        is = find_log_folder(s, source->paths[i], source->olddir, &folder) &&
             match_log(s, source, folder.ptr, name);
    text_fini(&folder);
    return is;
}

static const struct config_source *find_source_of_log(const struct search *s, const char *name)
{
    for (size_t i = 0; i < s->config->source_count; i++) {
        const struct config_source *source = &s->config->sources[i];
        if (match_log(s, source, s->written, name) || match_log(s, source, s->folder, name) ||
            match_olddir(s, source, name))
            return source;
    }
    return NULL;
}

static const struct config_source *find_rotated(struct search *s, bool needs_log)
{
    const struct config_source *source = NULL;
    struct text name = {0};
    size_t at = 0;
    s->needs_log = needs_log;
    while (source == NULL && family_next_log(s->name, &at, &name))
        source = find_source_of_log(s, name.ptr);
    struct slice unpacked = family_unpacked(s->name);
    if (source == NULL && !needs_log && unpacked.len < s->name.len) {
        text_clear(&name);
        text_printf(&name, "%.*s", SLICE_ARGS(unpacked));
        source = find_source_of_log(s, name.ptr);
    }
    text_fini(&name);
    return source;
}

/* Does one of its patterns have neither glob characters nor captures, and match? */
static bool match_plain(const struct config_source *source, const char *path)
{
    char real[PATH_MAX], other[PATH_MAX];
    for (size_t i = 0; i < source->path_count; i++) {
        const char *plain = source->paths[i]->plain;
        if (plain != NULL &&
            (strcmp(plain, path) == 0 ||
             (realpath(path, real) != NULL && realpath(plain, other) != NULL && strcmp(real, other) == 0)))
            return true;
    }
    return false;
}

const struct config_source *source_path_find(const struct config *c, const char *path, struct constants *k)
{
    struct search s = {.config = c, .path = path, .constants = k};
    const struct config_source *exact = NULL, *source = NULL;
    bool is_plain = false;
    for (size_t i = 0; i < c->source_count && !is_plain; i++) {
        is_plain = match_plain(&c->sources[i], path);
        if (is_plain || (exact == NULL && source_path_match(&c->sources[i], path, NULL)))
            exact = &c->sources[i];
    }
    const bool has_folder = set_folder(&s);
    if (!is_plain && has_folder)
        source = find_rotated(&s, true);
    if (source == NULL && exact != NULL) {
        source = exact;
        (void)source_path_match(exact, path, k);
    }
    return source == NULL && has_folder ? find_rotated(&s, false) : source;
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
