#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool backup_partial(const char *path, char partial[BACKUP_PATH_BYTES], struct err *e)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    int n = snprintf(partial, BACKUP_PATH_BYTES, "%.*s-partial", (int)len, path);
    return (n > 0 && n < BACKUP_PATH_BYTES) ||
           err_set(e, EX_CANTCREAT, "cannot create %s: the path is too long", path);
}

bool backup_may_write(const struct backup *b, struct err *e)
{
    return b->force || access(b->path, F_OK) != 0 ||
           err_set(e, EX_CANTCREAT, "%s exists already: name another one, or give --force to replace it",
                   b->path);
}

bool backup_sync(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return good ||
           err_set_retryable(e, EX_IOERR, "cannot make %s durable (fsync): %s", path, strerror(error));
}

bool backup_sync_parent(const char *path, struct err *e)
{
    char parent[BACKUP_PATH_BYTES];
    snprintf(parent, sizeof parent, "%s", path);
    size_t len = strlen(parent);
    while (len > 1 && parent[len - 1] == '/')
        parent[--len] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return backup_sync(".", e);
    slash[slash == parent ? 1 : 0] = '\0';
    return backup_sync(parent, e);
}

bool backup_stopped(const char *what, struct err *e)
{
    return err_set(e, EX_TEMPFAIL, "%s was stopped: run it again", what);
}
