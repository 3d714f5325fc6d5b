#include "base/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

/* An address holds 107 bytes only: so it leads through the folder's descriptor, which the caller closes. */
static bool make_address(const char *path, struct sockaddr_un *address, int *folder_fd)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    *folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len =
        snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", *folder_fd, slash + 1);
    return *folder_fd >= 0 && len > 0 && (size_t)len < sizeof address->sun_path;
}

static int open_socket(const char *path, int (*with)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address;
    int folder_fd, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && make_address(path, &address, &folder_fd);
    if (good)
        good = with(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int why = errno;
    if (fd >= 0 && folder_fd >= 0)
        close(folder_fd);
    if (!good && fd >= 0)
        close(fd);
    errno = why;
    return good ? fd : -1;
}

int local_socket_connect(const char *path)
{
    return open_socket(path, connect);
}

int local_socket_listen(const char *path, struct err *e)
{
    (void)unlink(path);
    int fd = open_socket(path, bind);
    if (fd >= 0 && chmod(path, 0600) == 0 && listen(fd, BACKLOG) == 0) /* nobody connects before it listens */
        return fd;
    err_set(e, EX_CANTCREAT, "cannot listen at %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}
