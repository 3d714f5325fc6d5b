#include "ingest/file/listing.h"

#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A walk through the folders of a pattern. */
struct walk {
    struct listing *listing;
    const struct pattern *pattern;
    struct text path; /* of the folder being read, with a slash at its end; empty: the working directory */
    struct err *e;
};

static bool add(struct walk *w, char ***list, size_t *count, size_t *capacity, const char *path)
{
    if (*count == LISTING_MAX)
        return err_set(w->e, EX_CONFIG, "%s matches more than %d files or folders: narrow it",
                       w->pattern->text, LISTING_MAX);
    *list = xgrow(*list, capacity, *count + 1, sizeof **list);
    (*list)[(*count)++] = xstrdup(path);
    return true;
}

static bool add_file(struct walk *w)
{
    struct listing *l = w->listing;
    return add(w, &l->files, &l->file_count, &l->file_capacity, w->path.ptr);
}

/* Adds the folder w->path, without the slash at its end. */
static bool add_folder(struct walk *w)
{
    struct listing *l = w->listing;
    size_t len = w->path.len;
    char *path = len == 0 ? xstrdup(".") : xstrndup(w->path.ptr, len > 1 ? len - 1 : len);
    bool good = add(w, &l->folders, &l->folder_count, &l->folder_capacity, path);
    free(path);
    return good;
}

static void add_plain_name(struct walk *w, const struct pattern_part *part)
{
    for (size_t i = part->from; i < part->to; i++)
        text_putc(&w->path, (char)w->pattern->pieces[i].byte);
}

/* Is w->path, which has this type in its folder, a folder (or, without `is_last`, no folder)? */
static bool is_wanted(const struct walk *w, unsigned char type, bool is_last)
{
    struct stat status;
    if (type == DT_REG || type == DT_DIR)
        return is_last == (type == DT_REG);
    return (type == DT_LNK || type == DT_UNKNOWN) && stat(w->path.ptr, &status) == 0 &&
           (is_last ? S_ISREG(status.st_mode) : S_ISDIR(status.st_mode));
}

static void note_unread(struct walk *w, int why)
{
    struct listing *l = w->listing;
    if (why != ENOENT && why != ENOTDIR && l->unread[0] == '\0')
        snprintf(l->unread, sizeof l->unread, "cannot read the folder %.400s: %s",
                 w->path.len > 0 ? w->path.ptr : ".", strerror(why));
}

static bool walk_from(struct walk *w, size_t part);

/* Goes on with every entry of the folder w->path that the component matches. */
static bool read_folder(struct walk *w, size_t part)
{
    const struct pattern *p = w->pattern;
    bool is_last = part + 1 == p->part_count, good = true;
    size_t len = w->path.len;
    DIR *folder = opendir(len > 0 ? w->path.ptr : ".");
    if (folder == NULL) {
        note_unread(w, errno);
        return true;
    }
    const struct dirent *entry;
    while (good && (errno = 0, entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            !pattern_matches_name(p, &p->parts[part], slice_text(entry->d_name)))
            continue;
        text_puts(&w->path, entry->d_name);
        if (is_wanted(w, entry->d_type, is_last)) {
            if (!is_last)
                text_putc(&w->path, '/');
            good = is_last ? add_file(w) : walk_from(w, part + 1);
        }
        text_cut(&w->path, len);
    }
    if (good && entry == NULL && errno != 0)
        note_unread(w, errno);
    closedir(folder);
    return good;
}

/* Adds the file if it is there. */
static bool look_at_plain(struct walk *w, size_t part)
{
    struct stat status;
    size_t len = w->path.len;
    add_plain_name(w, &w->pattern->parts[part]);
    bool is_there = stat(w->path.ptr, &status) == 0 && !S_ISDIR(status.st_mode);
    bool good = !is_there || add_file(w);
    text_cut(&w->path, len);
    return good;
}

/* Goes on with the components from `part`, in the folder w->path. The walk is as deep as the pattern has
 * components with glob characters. */
static bool walk_from(struct walk *w, size_t part)
{
    const struct pattern *p = w->pattern;
    for (; part + 1 < p->part_count && p->parts[part].is_plain; part++) {
        add_plain_name(w, &p->parts[part]);
        text_putc(&w->path, '/');
    }
    if (!add_folder(w))
        return false;
    return p->parts[part].is_plain ? look_at_plain(w, part) : read_folder(w, part);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the paths and drops those that are there twice. */
static void sort(char **list, size_t *count)
{
    size_t kept = 0;
    if (*count > 0)
        qsort(list, *count, sizeof *list, compare);
    for (size_t i = 0; i < *count; i++) {
        if (kept > 0 && strcmp(list[kept - 1], list[i]) == 0)
            free(list[i]);
        else
            list[kept++] = list[i];
    }
    *count = kept;
}

bool listing_add(struct listing *l, const struct pattern *p, struct err *e)
{
    struct walk w = {.listing = l, .pattern = p, .e = e};
    text_puts(&w.path, p->is_absolute ? "/" : "");
    bool good = walk_from(&w, 0);
    sort(l->files, &l->file_count);
    sort(l->folders, &l->folder_count);
    text_fini(&w.path);
    return good;
}

void listing_fini(struct listing *l)
{
    for (size_t i = 0; i < l->file_count; i++)
        free(l->files[i]);
    for (size_t i = 0; i < l->folder_count; i++)
        free(l->folders[i]);
    free(l->files);
    free(l->folders);
    *l = (struct listing){0};
}
