#include "daemon/service/control.h"

#include "base/local_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The path of the socket. False: there is no folder for it. */
static bool find_path(char path[PATH_MAX])
{
    const char *folder = getenv(CONTROL_FOLDER);
    if (folder == NULL || *folder == '\0')
        return false;
    int len = snprintf(path, PATH_MAX, "%.*s/" CONTROL_NAME, (int)strcspn(folder, ":"), folder);
    return len > 0 && len < PATH_MAX;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the daemon */

bool control_open(struct control *c, struct err *e)
{
    c->listen_fd = c->asker_fd = -1;
    if (!find_path(c->path))
        return true;
    c->listen_fd = local_socket_listen(c->path, e);
    return c->listen_fd >= 0;
}

void control_close(struct control *c)
{
    close_fd(&c->asker_fd);
    if (c->listen_fd >= 0)
        (void)unlink(c->path);
    close_fd(&c->listen_fd);
}

bool control_take(struct control *c)
{
    struct pollfd p = {.fd = c->listen_fd, .events = POLLIN};
    if (c->listen_fd < 0 || poll(&p, 1, 0) <= 0)
        return false;
    close_fd(&c->asker_fd);
    c->asker_fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return c->asker_fd >= 0;
}

void control_answer(struct control *c, bool is_good, struct slice text)
{
    char packet[1 + CONTROL_TEXT_BYTES];
    size_t len = text.len < CONTROL_TEXT_BYTES ? text.len : CONTROL_TEXT_BYTES;
    if (c->asker_fd < 0)
        return;
    packet[0] = is_good ? CONTROL_GOOD : CONTROL_BAD;
    if (len > 0)
        memcpy(packet + 1, text.ptr, len);
    (void)send(c->asker_fd, packet, 1 + len,
               MSG_NOSIGNAL | MSG_DONTWAIT); /* an asker that has gone needs none */
    close_fd(&c->asker_fd);
}

/* ---- who asks */

bool control_ask(char text[CONTROL_TEXT_BYTES + 1], struct err *e)
{
    char path[PATH_MAX], packet[1 + CONTROL_TEXT_BYTES];
    *text = '\0';
    if (!find_path(path))
        return err_set(e, EX_USAGE,
                       CONTROL_FOLDER
                       " is not set. It names the folder of the daemon's socket, and systemd sets it "
                       "in units with RuntimeDirectory=. Elsewhere, send SIGHUP");
    int fd = local_socket_connect(path);
    if (fd < 0)
        return err_set(e, EX_UNAVAILABLE, "no daemon listens at %s: %s", path, strerror(errno));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool is_answered = poll(&p, 1, CONTROL_WAIT_MS) > 0;
    ssize_t got = is_answered ? recv(fd, packet, sizeof packet, 0) : 0;
    close(fd);
    if (!is_answered)
        return err_set(
            e, EX_TEMPFAIL,
            "the daemon did not answer within %d s. It reloads once it can, and logs what came of it",
            CONTROL_WAIT_MS / 1000);
    if (got <= 0)
        return err_set(e, EX_UNAVAILABLE, "the daemon ended before it answered");
    memcpy(text, packet + 1, (size_t)got - 1);
    text[got - 1] = '\0';
    return packet[0] == CONTROL_GOOD ||
           err_set(e, EX_CONFIG, "the configuration has mistakes. The running one stays in effect");
}
