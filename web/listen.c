#include "web/listen.h"

#include "web/host.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG       1024 /* a flood of connections must not have the kernel drop others */
#define HOST_MAX      256
#define PORT_MAX      8
#define ANOTHER_HINT  "`--listen 127.0.0.1:9090` (http.listen) takes another"
#define EXAMPLES_HINT "expected HOST:PORT, as 127.0.0.1:8080 or [::1]:8080"

static bool resolve(const char *address, struct addrinfo **found, struct err *e)
{
    struct slice name = host_name(slice_text(address)), digits = host_port(slice_text(address));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char host[HOST_MAX], port[PORT_MAX];
    if (name.len == 0 || name.len >= sizeof host || digits.len == 0 || digits.len >= sizeof port)
        return err_set(e, EX_CONFIG, "cannot listen on %s: " EXAMPLES_HINT, address);
    snprintf(host, sizeof host, "%.*s", SLICE_ARGS(name));
    snprintf(port, sizeof port, "%.*s", SLICE_ARGS(digits));
    int rc = getaddrinfo(host, port, &hints, found);
    return rc == 0 ||
           err_set(e, EX_CONFIG, "cannot listen on %s: %s; " EXAMPLES_HINT, address, gai_strerror(rc));
}

/* -1 with errno. */
static int open_one(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    /* A restart need not wait until the kernel forgets the last connections of the old process. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static void name_socket(int fd, char actual[LISTEN_TEXT_BYTES])
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    char host[LISTEN_TEXT_BYTES - PORT_MAX - 4] = "?", port[PORT_MAX] = "?";
    if (getsockname(fd, (struct sockaddr *)&at, &len) == 0)
        (void)getnameinfo((struct sockaddr *)&at, len, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(actual, LISTEN_TEXT_BYTES, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

int listen_open(const char *address, char actual[LISTEN_TEXT_BYTES], struct err *e)
{
    struct addrinfo *found;
    int fd = -1;
    if (!resolve(address, &found, e))
        return -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = open_one(at);
    int why = errno;
    freeaddrinfo(found);
    if (fd >= 0)
        name_socket(fd, actual);
    else if (why == EADDRINUSE)
        err_set(e, EX_UNAVAILABLE, "cannot listen on %s: another program does; " ANOTHER_HINT, address);
    else
        err_set(e, why == EACCES ? EX_NOPERM : EX_CONFIG, "cannot listen on %s: %s", address, strerror(why));
    return fd;
}

bool listen_is_loopback(const char *actual)
{
    return strncmp(actual, "127.", 4) == 0 || strncmp(actual, "[::1]:", 6) == 0;
}
