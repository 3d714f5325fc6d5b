#include "tests/support/scratch.h"

#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

void scratch_make(struct scratch *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/tallyd-test-XXXXXX");
    ASSERT(mkdtemp(s->dir) != NULL);
}

static void remove_all_in(int fd)
{
    DIR *dir = fdopendir(fd);
    ASSERT(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        remove_all_in(openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        ASSERT(unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0);
    }
    closedir(dir);
}

void scratch_remove(struct scratch *s)
{
    remove_all_in(open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT(rmdir(s->dir) == 0);
}

struct scratch scratch_own;

int scratch_set_up(void **state)
{
    (void)state;
    scratch_make(&scratch_own);
    return 0;
}

int scratch_tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch_own);
    return 0;
}

const char *scratch_path(const struct scratch *s, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % COUNT_OF(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", s->dir, name);
    return path;
}

static void write_to(const char *path, const char *mode, struct slice bytes)
{
    FILE *f = fopen(path, mode);
    ASSERT(f != NULL);
    if (bytes.len > 0)
        ASSERT(fwrite(bytes.ptr, 1, bytes.len, f) == bytes.len);
    ASSERT(fclose(f) == 0);
}

void scratch_write(const char *path, struct slice bytes)
{
    write_to(path, "w", bytes);
}

void scratch_append(const char *path, struct slice bytes)
{
    write_to(path, "a", bytes);
}

void scratch_read(const char *path, struct text *bytes)
{
    char buf[65536];
    FILE *f = fopen(path, "r");
    ASSERT(f != NULL);
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
        text_add(bytes, buf, n);
    ASSERT(fclose(f) == 0);
}

void scratch_write_gzip(const char *path, struct slice bytes)
{
    gzFile f = gzopen(path, "wb");
    ASSERT(f != NULL);
    ASSERT(gzwrite(f, bytes.ptr, (unsigned)bytes.len) == (int)bytes.len);
    ASSERT(gzclose(f) == Z_OK);
}
