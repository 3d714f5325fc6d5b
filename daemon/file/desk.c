#include "daemon/file/desk.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "daemon/count/account.h"
#include "daemon/file/desk_backfill.h"
#include "daemon/file/handover.h"
#include "daemon/judge.h"
#include "daemon/setup.h"
#include "store/backend/backend.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS_MAX 16  /* importers: one is served, the others wait */
#define TELL_MS     200 /* between two replies */

struct desk {
    struct desk_options options;
    int listen_fd;
    int clients[CLIENTS_MAX]; /* the thread's; the first is served */
    size_t client_count;
    atomic_bool end;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    struct handed *offered; /* under `lock`: not taken yet */
    bool is_back;           /* under `lock`: the present file was given back */
    struct err error;       /* of it; code 0: it was counted to its end */
};

static bool is_ending(const struct desk *d)
{
    return atomic_load(&d->end) || atomic_load(d->options.stop);
}

/* ---- clients */

/* Take further importers, and tell those that wait. */
static void greet(struct desk *d, int wait_ms)
{
    struct pollfd p = {.fd = d->listen_fd, .events = POLLIN};
    struct handover_reply waiting = {.what = HANDOVER_WAITING};
    while (d->client_count < CLIENTS_MAX && poll(&p, 1, wait_ms) > 0) {
        int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            break;
        d->clients[d->client_count++] = fd;
        wait_ms = 0;
    }
    for (size_t i = 1; i < d->client_count; i++)
        (void)send(d->clients[i], &waiting, sizeof waiting, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void dismiss(struct desk *d)
{
    close(d->clients[0]);
    d->client_count--;
    memmove(d->clients, d->clients + 1, d->client_count * sizeof *d->clients);
}

/* ---- one file */

static void handed_free(struct handed *h)
{
    source_close(&h->source);
    constants_fini(&h->constants);
    books_fini(&h->books);
    free(h);
}

/* The steps that --decode names. */
static bool parse_decode(const struct desk *d, const struct handover_request *rq, struct decode *decode,
                         struct err *e)
{
    if (!setup_parse_decode(rq->decode, decode, e))
        return err_prefix(e, "--decode");
    decode->derive = &d->options.config->derive;
    return true;
}

/* A file that is being opened. */
struct opening {
    const struct desk *desk;
    const struct handover_request *request;
    struct handed *handed;
};

static bool choose_decode(void *context, const char *label, struct source_options *options, struct err *e)
{
    const struct opening *o = context;
    const struct config *c = o->desk->options.config;
    const struct handover_request *rq = o->request;
    const struct config_source *guess;
    struct handed *h = o->handed;
    if (rq->decode[0] != '\0') {
        if (!parse_decode(o->desk, rq, &h->decode, e))
            return false;
    } else if (setup_guess(c, label, rq->path, &guess, e)) {
        h->decode = *setup_decode(c, label, rq->path);
    } else {
        return false;
    }
    options->heeds_directives = decode_heeds_directives(&h->decode);
    options->last_line = source_last_line(&h->decode, rq->takes_last_line);
    options->keeps_label = setup_keeps_label(c, label, rq->path);
    setup_constants(c, label, rq->path, &h->constants);
    return true;
}

static bool check_config(const struct desk *d, const struct handover_request *rq, struct err *e)
{
    return rq->config == 0 || rq->config == config_fingerprint(d->options.config) ||
           err_set(e, EX_CONFIG,
                   "a daemon writes this store, and its sources and reports are others than those of the "
                   "configuration given (-c): leave -c away to count as the daemon does (--store names the "
                   "store), or have the daemon read that configuration first");
}

/* Recognise and judge the file. It takes over log_fd. *h NULL: the file is empty. */
static bool open_file(const struct desk *d, const struct handover_request *rq, int log_fd, struct store *st,
                      struct handed **out, struct err *e)
{
    struct input *in = input_take(log_fd, rq->path, e);
    struct handed *h = xcalloc(1, sizeof *h);
    struct opening opening = {d, rq, h};
    struct source_options options = {.line_max = d->options.line_max,
                                     .choose = choose_decode,
                                     .context = &opening,
                                     .source_id = rq->source_id[0] != '\0' ? rq->source_id : NULL,
                                     .stop = d->options.stop,
                                     .in = in};
    books_init(&h->books, d->options.config->report_count);
    *out = h;
    bool good = in != NULL && source_open(&h->source, rq->path, st, &options, e) &&
                (h->source.is_empty || rq->insists ||
                 judge_source(&h->source, &h->decode, d->options.line_max, rq->takes_last_line, st, NULL, e));
    if (good && !h->source.is_empty)
        return true;
    handed_free(h);
    *out = NULL;
    return good;
}

static void tell_reading(int fd, const struct handed *h, int64_t raw_size)
{
    struct handover_reply rp = {.what = HANDOVER_READING,
                                .raw_offset = atomic_load(&h->raw_offset),
                                .raw_size = raw_size,
                                .offset = atomic_load(&h->offset),
                                .consumed = atomic_load(&h->consumed)};
    (void)send(fd, &rp, sizeof rp, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Offer the file to the follower, and wait until it is given back. */
static bool count(struct desk *d, struct handed *h, struct err *e)
{
    int fd = d->clients[0];
    int64_t raw_size = input_raw_size(h->source.in);
    pthread_mutex_lock(&d->lock);
    d->offered = h;
    d->is_back = false;
    while (!d->is_back && !(is_ending(d) && d->offered != NULL)) {
        const struct timespec until = clock_timespec_in(TELL_MS);
        pthread_cond_timedwait(&d->given_back, &d->lock, &until);
        pthread_mutex_unlock(&d->lock);
        tell_reading(fd, h, raw_size);
        atomic_store(&h->is_left, handover_is_gone(fd));
        greet(d, 0);
        pthread_mutex_lock(&d->lock);
    }
    if (!d->is_back)
        err_set_retryable(&d->error, EX_TEMPFAIL, "the daemon is stopping: nothing of it was counted");
    d->offered = NULL;
    *e = d->error;
    pthread_mutex_unlock(&d->lock);
    return e->code == 0;
}

/* The text that an import prints. */
static void describe(const struct desk *d, const struct handed *h, int64_t from, int64_t took_ms,
                     struct text *out)
{
    struct pipeline_progress p = {.stored = h->stored, .books = h->books, .samples = h->samples};
    const struct account_file file = {.path = h->source.range.label,
                                      .note = h->source.note,
                                      .is_known = h->source.is_known,
                                      .from = from,
                                      .took_ms = took_ms,
                                      .left = h->left};
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        return;
    account_file(to, &file, &p, d->options.config->reports);
    fclose(to);
    text_add(out, text, len);
    free(text);
}

static void answer(const struct desk *d, const struct handed *h, int64_t from, int64_t took_ms,
                   const struct err *why)
{
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    struct text said = {0};
    rp->what = why->code == 0 ? HANDOVER_DONE : HANDOVER_FAILED;
    rp->error = *why;
    rp->from = from;
    if (h != NULL) {
        memcpy(rp->source, h->source.range.source, sizeof rp->source);
        describe(d, h, from, took_ms, &said);
        snprintf(rp->text, sizeof rp->text, "%s", said.ptr != NULL ? said.ptr : "");
    }
    (void)!handover_send_reply(d->clients[0], rp, &d->end);
    text_fini(&said);
    free(rp);
}

/* It takes over log_fd. */
static void import(struct desk *d, const struct handover_request *rq, int log_fd, struct store *st)
{
    struct handed *h = NULL;
    struct err e = {0};
    char label[LOG_QUOTE_BYTES];
    int64_t from = 0, begun_ms = clock_mono_ms(&clock_system);
    log_info("import_begun", "source=%s", log_quote(rq->path, label));
    bool good = open_file(d, rq, log_fd, st, &h, &e);
    if (h != NULL)
        from = h->source.range.to;
    if (good && h != NULL)
        (void)count(d, h, &e);
    answer(d, h, from, clock_mono_ms(&clock_system) - begun_ms, &e);
    log_info("import_ended", "source=%s status=%d", label, e.code);
    if (h != NULL)
        handed_free(h);
}

/* ---- a backfill */

struct backfilling {
    struct desk *desk;
    int64_t raw_size;
};

/* Tell the one that waits for it, and those behind. Does it still wait? */
static bool go_on(void *context, const struct pipeline_progress *p)
{
    const struct backfilling *b = context;
    struct handover_reply rp = {.what = HANDOVER_READING,
                                .raw_offset = p->raw_offset,
                                .raw_size = b->raw_size,
                                .offset = p->offset,
                                .consumed = p->books.entries[BOOK_CONSUMED]};
    (void)send(b->desk->clients[0], &rp, sizeof rp, MSG_NOSIGNAL | MSG_DONTWAIT);
    greet(b->desk, 0);
    return !is_ending(b->desk) && !handover_is_gone(b->desk->clients[0]);
}

static bool backfill(struct desk *d, const struct handover_request *rq, int log_fd, struct store *st,
                     struct backfilled *done, struct err *e)
{
    struct stat status;
    struct decode decode;
    struct backfilling waiting = {.desk = d};
    const struct desk_backfill options = {.engine = d->options.engine,
                                          .positions = st,
                                          .report = rq->report,
                                          .only = rq->only,
                                          .path = rq->path,
                                          .fd = log_fd,
                                          .decode = rq->decode[0] != '\0' ? &decode : NULL,
                                          .go_on = go_on,
                                          .context = &waiting};
    if (fstat(log_fd, &status) == 0)
        waiting.raw_size = status.st_size;
    return (options.decode == NULL || parse_decode(d, rq, &decode, e)) && desk_backfill(&options, done, e);
}

/* Backfill from topics. */
static void serve_topics(struct desk *d, const struct handover_request *rq, struct store *st)
{
    struct backfilling waiting = {.desk = d};
    const struct desk_backfill options = {.engine = d->options.engine,
                                          .positions = st,
                                          .report = rq->report,
                                          .only = rq->only,
                                          .go_on = go_on,
                                          .context = &waiting};
    struct err e = {0};
    struct text said = {0};
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    char report[LOG_QUOTE_BYTES];
    log_info("backfill_begun", "report=%s source=topics", log_quote(rq->report, report));
    bool good = d->options.refill(&options, &said, &rp->consumed, &e);
    rp->what = good ? HANDOVER_DONE : HANDOVER_FAILED;
    rp->error = e;
    snprintf(rp->text, sizeof rp->text, "%s", said.ptr != NULL ? said.ptr : "");
    (void)!handover_send_reply(d->clients[0], rp, &d->end);
    log_info("backfill_ended", "report=%s source=topics records=%" PRId64 " status=%d", report, rp->consumed,
             good ? 0 : e.code);
    text_fini(&said);
    free(rp);
}

/* It takes over log_fd. */
static void serve_backfill(struct desk *d, const struct handover_request *rq, int log_fd, struct store *st)
{
    struct backfilled done = {0};
    struct err e = {0};
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    char label[LOG_QUOTE_BYTES], report[LOG_QUOTE_BYTES];
    log_info("backfill_begun", "report=%s source=%s", log_quote(rq->report, report),
             log_quote(rq->path, label));
    bool good = backfill(d, rq, log_fd, st, &done, &e);
    rp->what = good ? HANDOVER_DONE : HANDOVER_FAILED;
    rp->error = e;
    rp->offset = done.bytes;
    rp->consumed = done.lines;
    if (done.is_known)
        memcpy(rp->source, done.source, sizeof rp->source);
    (void)!handover_send_reply(d->clients[0], rp, &d->end);
    log_info("backfill_ended", "report=%s source=%s lines=%" PRId64 " status=%d", report, label, done.lines,
             good ? 0 : e.code);
    close(log_fd);
    free(rp);
}

/* ---- the thread */

static void refuse(const struct desk *d, const struct err *why)
{
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    rp->what = HANDOVER_FAILED;
    rp->error = *why;
    (void)!handover_send_reply(d->clients[0], rp, &d->end);
    free(rp);
}

static void serve(struct desk *d)
{
    struct handover_request *rq = xcalloc(1, sizeof *rq);
    struct store *st = NULL;
    struct err e;
    int log_fd;
    if (handover_take_request(d->clients[0], rq, &log_fd, &d->end)) {
        if (!check_config(d, rq, &e) ||
            (st = store_open(d->options.store_url, STORE_READ, NULL, 0, &e)) == NULL) {
            if (log_fd >= 0)
                close(log_fd);
            refuse(d, &e);
        } else if (rq->topics) {
            serve_topics(d, rq, st);
        } else {
            (rq->report[0] != '\0' ? serve_backfill : import)(d, rq, log_fd, st);
        }
    }
    store_close(st);
    free(rq);
    dismiss(d);
}

static void *serve_all(void *context)
{
    struct desk *d = context;
    while (!is_ending(d)) {
        greet(d, d->client_count == 0 ? TELL_MS : 0);
        if (d->client_count > 0)
            serve(d);
    }
    return NULL;
}

/* ---- begin and end; the writer's side */

struct desk *desk_start(const struct desk_options *options, struct err *e)
{
    struct desk *d = xcalloc(1, sizeof *d);
    d->options = *options;
    d->listen_fd = handover_listen(options->store_url, e);
    if (d->listen_fd < 0) {
        free(d);
        return NULL;
    }
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->given_back, NULL);
    if (pthread_create(&d->thread, NULL, serve_all, d) != 0) {
        err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
        handover_unlisten(options->store_url);
        close(d->listen_fd);
        free(d);
        return NULL;
    }
    pthread_setname_np(d->thread, "tallyd-desk");
    return d;
}

void desk_stop(struct desk *d)
{
    if (d == NULL)
        return;
    atomic_store(&d->end, true);
    pthread_join(d->thread, NULL);
    handover_unlisten(d->options.store_url);
    while (d->client_count > 0)
        dismiss(d);
    close(d->listen_fd);
    pthread_cond_destroy(&d->given_back);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

struct handed *desk_take(struct desk *d)
{
    if (d == NULL)
        return NULL;
    pthread_mutex_lock(&d->lock);
    struct handed *h = d->offered;
    d->offered = NULL;
    pthread_mutex_unlock(&d->lock);
    return h;
}

void desk_give_back(struct desk *d, struct handed *h, const struct err *why)
{
    (void)h;
    pthread_mutex_lock(&d->lock);
    d->error = why != NULL ? *why : (struct err){0};
    d->is_back = true;
    pthread_cond_signal(&d->given_back);
    pthread_mutex_unlock(&d->lock);
}
