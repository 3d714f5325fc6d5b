#include "daemon/count/rejects_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns how many bytes were written; errno is set if some were not. */
static size_t write_bytes(int fd, struct slice bytes)
{
    size_t done = 0;
    while (done < bytes.len) {
        ssize_t n = write(fd, bytes.ptr + done, bytes.len - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

/* The file's size; -1: it has none, as a pipe. */
static off_t file_size(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

/* Cut the file back, unless another process appended to it meanwhile. */
static void cut_back(int fd, off_t size, size_t written)
{
    int why = errno;
    if (size >= 0 && written > 0 && file_size(fd) == size + (off_t)written)
        (void)!ftruncate(fd, size); /* if this fails, the partial line is followed by the whole one */
    errno = why;
}

static bool fail_write(const struct rejects_file *f, struct err *e)
{
    return err_set_retryable(e, EX_IOERR, "cannot write the rejects file %s: %s", f->path, strerror(errno));
}

/* The last byte of the file. It takes another descriptor: the file is open for writing only, since opening a
 * pipe for both would behave differently. */
static char last_byte(const char *path, off_t size)
{
    char last = '\n';
    int fd = size > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && pread(fd, &last, 1, size - 1) != 1)
        last = '\n';
    if (fd >= 0)
        close(fd);
    return last;
}

bool rejects_file_open(struct rejects_file *f, const char *path, struct err *e)
{
    f->path = path;
    f->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (f->fd < 0)
        return err_set(e, errno == EACCES ? EX_NOPERM : EX_CANTCREAT, "cannot open the rejects file %s: %s",
                       path, strerror(errno));
    if (last_byte(path, file_size(f->fd)) == '\n' || write_bytes(f->fd, slice_text("\n")) == 1)
        return true;
    fail_write(f, e);
    rejects_file_close(f);
    return false;
}

/* Does its path lead to another file than the open one, or to none? A pipe stays open: no one rotates it. */
static bool was_moved(const struct rejects_file *f)
{
    struct stat opened, found;
    return fstat(f->fd, &opened) == 0 && S_ISREG(opened.st_mode) &&
           (stat(f->path, &found) != 0 || found.st_dev != opened.st_dev || found.st_ino != opened.st_ino);
}

static bool open_again(struct rejects_file *f, struct err *e)
{
    rejects_file_close(f);
    if (!rejects_file_open(f, f->path, e))
        e->retryable = true;
    return f->fd >= 0;
}

bool rejects_file_append(struct rejects_file *f, struct slice lines, struct err *e)
{
    if ((f->fd < 0 || was_moved(f)) && !open_again(f, e))
        return false;
    off_t size = file_size(f->fd);
    size_t written = write_bytes(f->fd, lines);
    bool good = written == lines.len && (fdatasync(f->fd) == 0 || errno == EINVAL); /* EINVAL: a pipe */
    if (good)
        return true;
    cut_back(f->fd, size, written);
    return fail_write(f, e);
}

void rejects_file_close(struct rejects_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
