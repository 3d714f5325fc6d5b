#include "daemon/file/handover.h"

#include "base/clock.h"
#include "base/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SUFFIX  "-handover"
#define LOOK_MS 200 /* between two looks at *stop */
#define PREFIX  "sqlite:"

/* The path of a store's socket. False: the store is no SQLite file, or not there. */
static bool path_of(const char *store_url, char path[PATH_MAX])
{
    char real[PATH_MAX];
    if (strncmp(store_url, PREFIX, strlen(PREFIX)) != 0 || realpath(store_url + strlen(PREFIX), real) == NULL)
        return false;
    int len = snprintf(path, PATH_MAX, "%s" SUFFIX, real);
    return len > 0 && len < PATH_MAX;
}

int handover_connect(const char *store_url)
{
    char path[PATH_MAX];
    return path_of(store_url, path) ? local_socket_connect(path) : -1;
}

int handover_listen(const char *store_url, struct err *e)
{
    char path[PATH_MAX];
    if (!path_of(store_url, path))
        return err_set(e, EX_NOINPUT, "%s is not there any more", store_url), -1;
    return local_socket_listen(
        path, e); /* a daemon that was killed leaves its own: this one has the store's lock */
}

void handover_unlisten(const char *store_url)
{
    char path[PATH_MAX];
    if (path_of(store_url, path))
        (void)unlink(path);
}

/* ---- packets */

/* It looks at least once, even if *stop is true. */
static bool wait_for(int fd, short event, int silent_ms, const atomic_bool *stop)
{
    struct pollfd p = {.fd = fd, .events = event};
    int64_t end_ms = clock_mono_ms(&clock_system) + silent_ms;
    do {
        int n = poll(&p, 1, LOOK_MS);
        if (n > 0)
            return (p.revents & event) != 0;
        if ((n < 0 && errno != EINTR) || clock_mono_ms(&clock_system) > end_ms)
            return false;
    } while (stop == NULL || !atomic_load(stop));
    return false;
}

bool handover_is_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&p, 1, 0) > 0 &&
           ((p.revents & (POLLHUP | POLLERR)) != 0 || recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

bool handover_send_reply(int fd, const struct handover_reply *rp, const atomic_bool *stop)
{
    return wait_for(fd, POLLOUT, HANDOVER_SILENT_MS, stop) &&
           send(fd, rp, sizeof *rp, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *rp;
}

bool handover_take_reply(int fd, struct handover_reply *rp, const atomic_bool *stop)
{
    if (!wait_for(fd, POLLIN, HANDOVER_SILENT_MS, stop) || recv(fd, rp, sizeof *rp, 0) != (ssize_t)sizeof *rp)
        return false;
    rp->text[sizeof rp->text - 1] = rp->source[sizeof rp->source - 1] = '\0';
    rp->error.text[sizeof rp->error.text - 1] = '\0';
    return true;
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool handover_send_request(int fd, const struct handover_request *rq, int log_fd)
{
    union control control = {.bytes = {0}};
    struct iovec body = {.iov_base = (void *)rq, .iov_len = sizeof *rq};
    struct msghdr m = {.msg_iov = &body,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof log_fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &log_fd, sizeof log_fd);
    if (log_fd < 0)
        m.msg_controllen = 0;
    return wait_for(fd, POLLOUT, HANDOVER_SILENT_MS, NULL) &&
           sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *rq;
}

/* Texts come from another process. */
static bool is_request(const struct handover_request *rq)
{
    return memcmp(rq->magic, HANDOVER_MAGIC, sizeof rq->magic) == 0 &&
           (rq->topics ? rq->report[0] != '\0' : rq->path[0] == '/') &&
           memchr(rq->path, '\0', sizeof rq->path) != NULL &&
           memchr(rq->decode, '\0', sizeof rq->decode) != NULL &&
           memchr(rq->source_id, '\0', sizeof rq->source_id) != NULL &&
           memchr(rq->report, '\0', sizeof rq->report) != NULL;
}

/* Only a regular file: a pipe may bring nothing for long, and would stop the thread that reads all files. */
static bool is_log(int fd)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY && fstat(fd, &status) == 0 &&
           S_ISREG(status.st_mode);
}

bool handover_take_request(int fd, struct handover_request *rq, int *log_fd, const atomic_bool *stop)
{
    union control control;
    struct iovec body = {.iov_base = rq, .iov_len = sizeof *rq};
    struct msghdr m = {.msg_iov = &body,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    *log_fd = -1;
    if (!wait_for(fd, POLLIN, HANDOVER_REQUEST_MS, stop))
        return false;
    ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof *log_fd))
        memcpy(log_fd, CMSG_DATA(c), sizeof *log_fd);
    if (n == (ssize_t)sizeof *rq && is_request(rq) &&
        (rq->topics ? *log_fd < 0 : *log_fd >= 0 && is_log(*log_fd)))
        return true;
    if (*log_fd >= 0)
        close(*log_fd);
    *log_fd = -1;
    return false;
}
