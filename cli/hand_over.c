#include "cli/hand_over.h"

#include "base/mem.h"
#include "daemon/count/account.h"
#include "daemon/file/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hand_over_connect(const struct hand_over *h)
{
    return handover_connect(h->config->store.url);
}

/* `-` is no file either. O_NONBLOCK: opening a FIFO does not wait for its writer. */
static int open_log(const char *path, struct err *e)
{
    struct stat status;
    int fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0) {
        err_set(e, errno == EACCES ? EX_NOPERM : EX_NOINPUT, "cannot open %s: %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        err_set(e, EX_NOINPUT,
                "%s is no file, and a daemon writes this store: it takes only files. Save it to a file first",
                path);
        close(fd);
        fd = -1;
    }
    return fd;
}

/* path NULL: the daemon's topics. */
static bool fill(const struct hand_over *h, const char *path, struct handover_request *rq, struct err *e)
{
    memcpy(rq->magic, HANDOVER_MAGIC, sizeof rq->magic);
    rq->only = h->only;
    rq->takes_last_line = h->last_line;
    rq->insists = h->force;
    rq->config = h->has_config ? config_fingerprint(h->config) : 0;
    if (h->decode != NULL && strlen(h->decode) >= sizeof rq->decode)
        return err_set(e, EX_USAGE, "--decode is longer than %zu bytes, which a daemon takes at most",
                       sizeof rq->decode - 1);
    if (h->source_id != NULL && strlen(h->source_id) >= sizeof rq->source_id)
        return err_set(e, EX_USAGE, "--source-id is longer than %zu bytes", sizeof rq->source_id - 1);
    snprintf(rq->decode, sizeof rq->decode, "%s", h->decode != NULL ? h->decode : "");
    snprintf(rq->report, sizeof rq->report, "%s", h->report != NULL ? h->report : "");
    snprintf(rq->source_id, sizeof rq->source_id, "%s", h->source_id != NULL ? h->source_id : "");
    rq->topics = path == NULL;
    return rq->topics || realpath(path, rq->path) != NULL ||
           err_set(e, EX_NOINPUT, "cannot open %s: %s", path, strerror(errno));
}

static bool await(const struct hand_over *h, int fd, const char *path, struct handover_reply *rp,
                  struct err *e)
{
    struct progress_bar bar;
    struct pipeline_progress p = {0};
    bool has_bar = false;
    books_init(&p.books, 0);
    bool good;
    while ((good = handover_take_reply(fd, rp, h->stop)) && rp->what <= HANDOVER_READING) {
        if (rp->what == HANDOVER_READING && !has_bar)
            progress_bar_init(&bar, path, rp->raw_size, &clock_system, h->quiet);
        has_bar |= rp->what == HANDOVER_READING;
        p.raw_offset = rp->raw_offset;
        p.offset = rp->offset;
        p.books.entries[BOOK_CONSUMED] = rp->consumed;
        if (has_bar)
            progress_bar_show(&bar, &p);
    }
    if (has_bar)
        progress_bar_clear(&bar);
    books_fini(&p.books);
    if (!good && atomic_load(h->stop))
        return err_set(e, EX_TEMPFAIL, "interrupted");
    if (!good)
        return err_set_retryable(
            e, EX_TEMPFAIL,
            "the daemon has gone, does not answer, or is another version of tallyd: what it "
            "has read is stored, run the same command again to resume");
    if (rp->what == HANDOVER_FAILED)
        *e = rp->error;
    return rp->what == HANDOVER_DONE;
}

static bool send_request(const struct hand_over *h, int fd, int log_fd, const char *path,
                         struct handover_reply *rp, struct err *e)
{
    struct handover_request *rq = xcalloc(1, sizeof *rq);
    bool good = fill(h, path, rq, e) &&
                (handover_send_request(fd, rq, log_fd) ||
                 err_set_retryable(e, EX_TEMPFAIL, "the daemon has gone: run the same command again")) &&
                await(h, fd, path != NULL ? path : "topics", rp, e);
    close(fd);
    free(rq);
    return good;
}

static bool check_connection(int fd, struct err *e)
{
    return fd >= 0 || err_set_retryable(e, EX_TEMPFAIL, "the daemon has gone: run the same command again");
}

bool hand_over_file(const struct hand_over *h, int fd, const char *path, struct handover_reply *rp,
                    struct err *e)
{
    *rp = (struct handover_reply){0};
    if (!check_connection(fd, e))
        return false;
    int log_fd = open_log(path, e);
    if (log_fd < 0) {
        close(fd);
        return false;
    }
    bool good = send_request(h, fd, log_fd, path, rp, e);
    close(log_fd);
    return good;
}

bool hand_over_topics(const struct hand_over *h, int fd, struct handover_reply *rp, struct err *e)
{
    *rp = (struct handover_reply){0};
    return check_connection(fd, e) && send_request(h, fd, -1, NULL, rp, e);
}
