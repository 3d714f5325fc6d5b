#include "ingest/file/family.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NUMBER_DIGITS_MAX 5 /* longer runs of digits are dates */
#define DATE_DIGITS_MIN   6

static const char *const packings[] = {".gz", ".zst", ".bz2", ".xz"};

/* ---- names */

static bool take_end(struct slice *s, const char *end)
{
    size_t len = strlen(end);
    if (s->len < len || memcmp(s->ptr + s->len - len, end, len) != 0)
        return false;
    s->len -= len;
    return true;
}

static bool take_packing(struct slice *name)
{
    for (size_t i = 0; i < COUNT_OF(packings); i++) {
        if (take_end(name, packings[i]))
            return true;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A dot or hyphen, then a number or date: ".1", "-20261123", "-2026-11-23_10". */
static bool is_mark(struct slice s)
{
    if (s.len < 2 || (s.ptr[0] != '.' && s.ptr[0] != '-') || !is_digit(s.ptr[1]))
        return false;
    for (size_t i = 2; i < s.len; i++) {
        if (!is_digit(s.ptr[i]) && strchr("-_.:T", s.ptr[i]) == NULL)
            return false;
    }
    return is_digit(s.ptr[s.len - 1]);
}

/* The mark that makes `name` a rotated one of `base`; empty: ".old", or it is none (*is is false). */
static struct slice find_mark(struct slice base, struct slice name, bool *is)
{
    (void)take_packing(&name);
    struct slice stem = {base.ptr, base.len};
    for (size_t i = base.len; i > 0 && stem.len == base.len; i--)
        stem.len = base.ptr[i - 1] == '.' ? i - 1 : base.len;
    struct slice extension = {base.ptr + stem.len, base.len - stem.len};
    *is = false;
    if (slice_begins(name, base)) {
        struct slice rest = {name.ptr + base.len, name.len - base.len};
        *is = is_mark(rest) || slice_is(rest, ".old");
        return slice_is(rest, ".old") ? slice_of("", 0) : rest;
    }
    if (stem.len == 0 || extension.len == 0 || !slice_begins(name, stem) ||
        name.len <= stem.len + extension.len ||
        memcmp(name.ptr + name.len - extension.len, extension.ptr, extension.len) != 0)
        return slice_of("", 0);
    struct slice mark = {name.ptr + stem.len, name.len - stem.len - extension.len};
    *is = is_mark(mark) && (mark.ptr[0] == '.' || mark.len > DATE_DIGITS_MIN); /* site-2.log is another log */
    return mark;
}

bool family_has(struct slice base, struct slice name)
{
    bool is;
    (void)find_mark(base, name, &is);
    return is;
}

struct slice family_unpacked(struct slice name)
{
    (void)take_packing(&name);
    return name;
}

bool family_next_log(struct slice name, size_t *at, struct text *base)
{
    struct slice bare = family_unpacked(name);
    size_t extension = bare.len;
    while (extension > 0 && bare.ptr[extension - 1] != '.')
        extension--;
    for (; *at < 2 * bare.len; ++*at) { /* each place twice: with what stands behind the mark, and without */
        size_t len = *at / 2;
        bool has_extension = *at % 2 == 1 && extension > len + 1;
        if (len == 0 || (bare.ptr[len] != '.' && bare.ptr[len] != '-') || (*at % 2 == 1 && !has_extension))
            continue;
        text_clear(base);
        text_printf(base, "%.*s", (int)len, bare.ptr);
        if (has_extension)
            text_printf(base, "%.*s", (int)(bare.len - extension + 1), bare.ptr + extension - 1);
        if (family_has(text_slice(base), name)) {
            ++*at;
            return true;
        }
    }
    return false;
}

/* ---- order */

/* A file with what it is sorted by. */
struct aged {
    struct family_file file;
    int64_t number; /* -1: it has no number */
    char date[64];  /* its digits; "": it has no date */
};

static void set_age(struct aged *a, struct slice mark)
{
    bool is_number = mark.len > 1 && mark.len - 1 <= NUMBER_DIGITS_MAX;
    size_t n = 0;
    a->number = 0;
    for (size_t i = 1; i < mark.len; i++) {
        is_number = is_number && is_digit(mark.ptr[i]);
        if (is_digit(mark.ptr[i]) && n + 1 < sizeof a->date)
            a->date[n++] = mark.ptr[i];
        a->number = is_number ? 10 * a->number + (mark.ptr[i] - '0') : 0;
    }
    a->date[is_number ? 0 : n] = '\0';
    a->number = is_number ? a->number : -1;
}

static int compare_age(const void *one, const void *other)
{
    const struct aged *a = one, *b = other;
    int order = 0;
    if (a->number >= 0 && b->number >= 0)
        order = order_int64(b->number, a->number);
    else if (a->date[0] != '\0' && strlen(a->date) == strlen(b->date))
        order = strcmp(a->date, b->date);
    if (order == 0)
        order = order_int64(a->file.changed_ns, b->file.changed_ns);
    return order != 0 ? order : strcmp(a->file.path, b->file.path);
}

/* ---- folders */

struct listing {
    struct slice base; /* of the log */
    struct aged *list;
    size_t count, capacity;
    bool takes_all; /* files of any name */
};

static char *join(const char *folder, const char *name)
{
    struct text path = {0};
    text_printf(&path, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/", name);
    return path.ptr;
}

void family_folders(const char *path, const char *olddir, char *folders[FAMILY_FOLDERS])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    folders[0] = len == 0 ? xstrdup(".") : xstrndup(path, len);
    folders[1] = olddir == NULL ? NULL : olddir[0] == '/' ? xstrdup(olddir) : join(folders[0], olddir);
}

/* The length of the folder of a path, with its slash. */
static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

bool family_holds(const char *path, const char *olddir, const char *file)
{
    size_t of_log = folder_len(path), of_file = folder_len(file);
    if (!family_has(slice_text(path + of_log), slice_text(file + of_file)))
        return false;
    if (of_log == of_file && strncmp(path, file, of_log) == 0)
        return true;
    char *folders[FAMILY_FOLDERS];
    bool holds = false;
    family_folders(path, olddir, folders);
    for (size_t i = 0; i < FAMILY_FOLDERS; i++) {
        size_t len = folders[i] != NULL ? strlen(folders[i]) : 0;
        while (len > 0 && folders[i][len - 1] == '/')
            len--;
        holds |= folders[i] != NULL && len + 1 == of_file && strncmp(folders[i], file, len) == 0;
        free(folders[i]);
    }
    return holds;
}

bool family_look(const char *path, struct stat *status, bool *is_there, struct err *e)
{
    *is_there = stat(path, status) == 0;
    if (*is_there || errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
        *is_there = *is_there && S_ISREG(status->st_mode);
        return true;
    }
    int why = errno;
    err_set(e, why == EACCES ? EX_NOPERM : EX_IOERR, "cannot look at %s: %s", path, strerror(why));
    e->retryable = why != EACCES;
    return false;
}

static bool add_file(struct listing *l, const char *folder, const char *name, struct err *e)
{
    struct stat status;
    struct slice bare = slice_text(name);
    bool is_rotated, is_there;
    struct slice mark = find_mark(l->base, bare, &is_rotated);
    if (!is_rotated && !l->takes_all)
        return true;
    char *path = join(folder, name);
    bool good = family_look(path, &status, &is_there, e);
    if (!good || !is_there) {
        free(path);
        return good || (!is_rotated && e->code == EX_NOPERM); /* what has any name may be closed */
    }
    l->list = xgrow(l->list, &l->capacity, l->count + 1, sizeof *l->list);
    struct aged *a = &l->list[l->count++];
    *a = (struct aged){.file = {.path = path,
                                .device = status.st_dev,
                                .inode = status.st_ino,
                                .size = status.st_size,
                                .changed_ns = clock_ns(status.st_mtim),
                                .is_packed = take_packing(&bare)}};
    set_age(a, mark);
    return true;
}

static bool fail_folder(const char *folder, int why, struct err *e)
{
    bool is_missing = why == ENOENT || why == ENOTDIR;
    err_set(e,
            why == EACCES ? EX_NOPERM
            : is_missing  ? EX_NOINPUT
                          : EX_IOERR,
            "cannot read the folder %s: %s", folder, strerror(why));
    e->retryable = e->code == EX_IOERR;
    return false;
}

static bool read_folder(struct listing *l, const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return fail_folder(folder, errno, e);
    bool good = true;
    const struct dirent *entry;
    while (good && (errno = 0, entry = readdir(dir)) != NULL) {
        if (entry->d_type == DT_DIR || slice_equal(slice_text(entry->d_name), l->base))
            continue;
        good = add_file(l, folder, entry->d_name, e) &&
               (l->takes_all || l->count <= FAMILY_FILES_MAX ||
                err_set(e, EX_CONFIG, "%s has more than %d rotated files of one log: delete old ones", folder,
                        FAMILY_FILES_MAX));
    }
    if (good && errno != 0)
        good = fail_folder(folder, errno, e);
    closedir(dir);
    return good;
}

/* Does the list have the same name unpacked? */
static bool has_unpacked(const struct listing *l, const struct family_file *f)
{
    struct slice bare = slice_text(f->path);
    (void)take_packing(&bare);
    for (size_t i = 0; i < l->count; i++) {
        if (l->list[i].file.path != NULL && slice_is(bare, l->list[i].file.path))
            return true;
    }
    return false;
}

static void take_files(struct family *f, struct listing *l)
{
    if (l->count > 0)
        qsort(l->list, l->count, sizeof *l->list, compare_age);
    for (size_t i = 0; i < l->count; i++) {
        if (!l->list[i].file.is_packed || !has_unpacked(l, &l->list[i].file))
            continue;
        free(l->list[i].file.path);
        l->list[i].file.path = NULL;
    }
    for (size_t i = 0; i < l->count; i++) {
        if (l->list[i].file.path == NULL)
            continue;
        f->files = xgrow(f->files, &f->capacity, f->count + 1, sizeof *f->files);
        f->files[f->count] = l->list[i].file;
        f->files[f->count++].number = l->list[i].number;
        l->list[i].file.path = NULL;
    }
}

static bool list_files(struct family *f, const char *path, const char *olddir, bool takes_all, struct err *e)
{
    const char *slash = strrchr(path, '/');
    struct listing l = {.base = slice_text(slash != NULL ? slash + 1 : path), .takes_all = takes_all};
    char *folders[FAMILY_FOLDERS];
    bool good = true;
    *f = (struct family){0};
    family_folders(path, olddir, folders);
    for (size_t i = 0; i < FAMILY_FOLDERS; i++) {
        good = good && (folders[i] == NULL || read_folder(&l, folders[i], e));
        free(folders[i]);
    }
    if (good)
        take_files(f, &l);
    for (size_t i = 0; i < l.count; i++)
        free(l.list[i].file.path);
    free(l.list);
    return good;
}

bool family_list(struct family *f, const char *path, const char *olddir, struct err *e)
{
    return list_files(f, path, olddir, false, e);
}

bool family_list_all(struct family *f, const char *path, const char *olddir, struct err *e)
{
    return list_files(f, path, olddir, true, e);
}

void family_fini(struct family *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->files[i].path);
    free(f->files);
    *f = (struct family){0};
}
