/* faulty.c - spoils one of a program's reads or writes: loaded by LD_PRELOAD, told what by the environment.
 *
 *   FAULTY_PATH   the files meant: those whose path has this in it
 *   FAULTY_CALLS  read: calls of read and pread; write: of write, pwrite, fsync, fdatasync and ftruncate
 *   FAULTY_AT     which of these calls, from 1; 0: none
 *   FAULTY_HOW    errno's number: that call and all after it fail so; a number and "once": that call only;
 *                 "short": that call and all after it do one byte only; "kill": the process dies before it;
 *                 "full:PATH": while there is a file PATH, the disk is full: the first such call writes half
 *                 of what it is given, the others fail with ENOSPC; what cuts a file or syncs it succeeds;
 *                 "hang:PATH": that call and all after it wait while there is a file PATH, having made
 *                 PATH.met
 *   FAULTY_COUNT  a file that is told, at the end, how many calls there were
 *
 * Threads : any; calls are counted in the order in which they begin.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static bool is_meant(int fd, const char *kind)
{
    char link[64], path[4096];
    if (strcmp(setting("FAULTY_CALLS"), kind) != 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return false;
    path[len] = '\0';
    return strstr(path, setting("FAULTY_PATH")) != NULL;
}

/* While there is a file of this name. */
static void hang(const char *name)
{
    char met[4096];
    if (access(name, F_OK) != 0)
        return;
    snprintf(met, sizeof met, "%s.met", name);
    close(open(met, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    while (access(name, F_OK) == 0)
        usleep(10000);
}

/* Is there a file of this name? */
static bool is_there(const char *name)
{
    int before = errno;
    bool there = access(name, F_OK) == 0;
    errno = before;
    return there;
}

enum fate { FATE_NORMAL, FATE_SHORT, FATE_HALF, FATE_FAIL };

/* A disk that is full has room for half of what comes first. */
static enum fate fate_on_disk(bool full)
{
    static atomic_bool was_full;
    bool before = atomic_exchange(&was_full, full);
    if (!full)
        return FATE_NORMAL;
    errno = ENOSPC;
    return before ? FATE_FAIL : FATE_HALF;
}

/* Decides whether this call fails, and sets errno if it does. */
static enum fate fate_of(int fd, const char *kind)
{
    if (!is_meant(fd, kind))
        return FATE_NORMAL;
    long at = strtol(setting("FAULTY_AT"), NULL, 10), call = atomic_fetch_add(&calls, 1) + 1;
    const char *how = setting("FAULTY_HOW");
    if (at == 0 || call < at || (call > at && strstr(how, "once") != NULL))
        return FATE_NORMAL;
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "short") == 0)
        return FATE_SHORT;
    if (strncmp(how, "full:", 5) == 0)
        return fate_on_disk(is_there(how + 5));
    if (strncmp(how, "hang:", 5) == 0) {
        hang(how + 5);
        return FATE_NORMAL;
    }
    errno = (int)strtol(how, NULL, 10);
    return FATE_FAIL;
}

__attribute__((destructor)) static void tell_count(void)
{
    FILE *out = fopen(setting("FAULTY_COUNT"), "w");
    if (out == NULL)
        return;
    fprintf(out, "%ld\n", atomic_load(&calls));
    fclose(out);
}

/* As above, for a call that needs no room on the disk. */
static bool is_refused(int fd)
{
    return strncmp(setting("FAULTY_HOW"), "full:", 5) != 0 && fate_of(fd, "write") == FATE_FAIL;
}

/* So many bytes of `count` are done. */
static size_t part_of(size_t count, enum fate fate)
{
    if (fate == FATE_NORMAL || count == 0)
        return count;
    return fate == FATE_HALF ? (count + 1) / 2 : 1;
}

/* The function that this file's function of the same name hides. */
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
ssize_t read(int fd, void *buf, size_t count)
{
    enum fate fate = fate_of(fd, "read");
    return fate == FATE_FAIL ? -1 : REAL(read)(fd, buf, part_of(count, fate));
}

ssize_t write(int fd, const void *buf, size_t count)
{
    enum fate fate = fate_of(fd, "write");
    return fate == FATE_FAIL ? -1 : REAL(write)(fd, buf, part_of(count, fate));
}

ssize_t pread64(int fd, void *buf, size_t count, off64_t offset)
{
    enum fate fate = fate_of(fd, "read");
    return fate == FATE_FAIL ? -1 : REAL(pread64)(fd, buf, part_of(count, fate), offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t count, off64_t offset)
{
    enum fate fate = fate_of(fd, "write");
    return fate == FATE_FAIL ? -1 : REAL(pwrite64)(fd, buf, part_of(count, fate), offset);
}

int ftruncate64(int fd, off64_t length)
{
    return is_refused(fd) ? -1 : REAL(ftruncate64)(fd, length);
}

int fsync(int fd)
{
    return is_refused(fd) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return is_refused(fd) ? -1 : REAL(fdatasync)(fd);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* Of 64-bit machines, where the two are one. */
__typeof__(pread64) pread __attribute__((alias("pread64")));
__typeof__(pwrite64) pwrite __attribute__((alias("pwrite64")));
__typeof__(ftruncate64) ftruncate __attribute__((alias("ftruncate64")));
