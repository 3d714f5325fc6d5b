#include "cli/uncounted.h"

#include "base/mem.h"
#include "base/show.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/file/known.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_BYTES 65536 /* a line that is longer is a line */

void uncounted_add(struct uncounted *u, enum uncounted_kind kind, const char *name, int64_t to, int64_t size)
{
    char full[PATH_MAX];
    u->rows = xgrow(u->rows, &u->capacity, u->count + 1, sizeof *u->rows);
    u->rows[u->count++] =
        (struct uncounted_row){kind, xstrdup(realpath(name, full) != NULL ? full : name), to, size};
}

/* Is there a line feed behind the position? A last line may be unfinished. */
static bool has_line(int fd, int64_t to)
{
    char *buf = xmalloc(LOOK_BYTES);
    ssize_t n = pread(fd, buf, LOOK_BYTES, to);
    bool has = n == LOOK_BYTES || (n > 1 && memchr(buf, '\n', (size_t)n) != NULL);
    free(buf);
    return has;
}

static bool is_old(const struct stat *status, int64_t now_ms)
{
    return S_ISREG(status->st_mode) && now_ms - status->st_mtim.tv_sec * INT64_C(1000) >= UNCOUNTED_AGE_MS;
}

void uncounted_add_packed(struct uncounted *u, const char *path, int64_t to, int64_t now_ms)
{
    struct stat status;
    if (stat(path, &status) == 0 && is_old(&status, now_ms))
        uncounted_add(u, UNCOUNTED_TAIL, path, to, -1);
}

void uncounted_add_tail(struct uncounted *u, const char *path, int64_t to, int64_t now_ms)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && is_old(&status, now_ms) && status.st_size > to && has_line(fd, to))
        uncounted_add(u, UNCOUNTED_TAIL, path, to, status.st_size);
    close(fd);
}

bool uncounted_add_lost(struct uncounted *u, struct store *st, struct err *e)
{
    struct known k;
    bool good = known_read(&k, st, e);
    for (size_t i = 0; i < k.count && good; i++) {
        const struct known_file *f = &k.files[i];
        if (f->state != RANGE_LOST)
            continue;
        struct text name = {0};
        text_printf(&name, "%s (%s)", f->label, f->source);
        uncounted_add(u, UNCOUNTED_LOST, name.ptr, f->to, -1);
        text_fini(&name);
    }
    known_fini(&k);
    return good;
}

bool uncounted_matters(const struct uncounted *u)
{
    bool matters = false;
    for (size_t i = 0; i < u->count && !matters; i++)
        matters = u->rows[i].kind != UNCOUNTED_HISTORY;
    return matters;
}

void uncounted_print(const struct uncounted *u, FILE *out)
{
    static const char *const why[] = {[UNCOUNTED_TAIL] = "lines behind are not counted",
                                      [UNCOUNTED_FILE] = "never counted",
                                      [UNCOUNTED_HISTORY] = "never counted: older than what was",
                                      [UNCOUNTED_LOST] = "lines that came after it, or behind, were lost"};
    char to[UNITS_NUMBER_BYTES], size[UNITS_NUMBER_BYTES], name[SHOW_BYTES];
    if (u->count > 0)
        fprintf(out, "%-40s %15s %15s  %s\n", "NOT COUNTED", "COUNTED TO", "SIZE", "WHY");
    for (size_t i = 0; i < u->count; i++) {
        const struct uncounted_row *row = &u->rows[i];
        fprintf(out, "%-40s %15s %15s  %s\n", show(row->name, name), units_number(row->to, to),
                row->size < 0 ? row->kind == UNCOUNTED_LOST ? "gone" : "-" : units_number(row->size, size),
                why[row->kind]);
    }
}

void uncounted_fini(struct uncounted *u)
{
    for (size_t i = 0; i < u->count; i++)
        free(u->rows[i].name);
    free(u->rows);
    *u = (struct uncounted){0};
}
