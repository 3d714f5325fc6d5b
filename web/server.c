#include "web/server.h"

#include "base/mem.h"
#include "web/admit.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/clients.h"
#include "web/form.h"
#include "web/guard.h"
#include "web/listen.h"
#include "web/prom_api.h"
#include "web/remote.h"
#include "web/respond.h"
#include "web/streams.h"
#include "web/tls.h"
#include "web/workers.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define SETTLE_MS     500 /* time for the last answers when the server stops */
#define REQUEST_TEXTS 4   /* a request's bytes: as they came, its URI, its parameters, its body */
#define SHORT_BYTES   ((int64_t)64 << 10) /* an answer to no question: states, metrics */
#define TLS_BYTES     ((int64_t)64 << 10) /* TLS of a connection */
#define SMALL_BYTES   (4 << 20) /* a question's sets of series, windows, tree: not taken from its share */

struct server {
    struct api api;
    struct admit admit;
    struct clients *clients;
    char address[LISTEN_TEXT_BYTES];
    struct MHD_Daemon *daemon;
    struct workers *workers;
};

struct parameters {
    struct parameter list[SERVER_PARAMETERS_MAX];
    size_t count; /* parameters given; more than fit into `list` are an error */
};

/* The state of a request between the calls of libmicrohttpd. */
struct request {
    struct job job; /* first; only of a question */
    struct server *server;
    struct client *client;
    struct MHD_Connection *con;
    struct text uri;     /* as it came */
    struct text query;   /* its parameters, decoded in place */
    const char *uri_end; /* in libmicrohttpd's buffer */
    const char *path;    /* valid as long as the request */
    api_fn *answer;      /* NULL: Prometheus' API answers */
    struct text body;    /* of a POST: a form, or a ReadRequest; at most SERVER_REQUEST_BYTES and one chunk */
    struct parameters parameters;
    struct reply reply;
    struct share memory;           /* of a question */
    struct MHD_Response *response; /* of a question, once it is answered */
    int socket;                    /* of the connection, while a question is asked */
    bool is_begun;                 /* whether its headers were seen */
    bool is_asked;                 /* whether the workers have the question, or have answered it */
};

static const struct {
    const char *path;
    api_fn *answer;
    bool is_question; /* whether the store is read, by the workers; else the answer takes no time */
} routes[] = {
    {"/api/v1/query", api_query, true},      {"/api/v1/top", api_top, true},
    {"/api/v1/series", api_series, true},    {"/api/v1/stream", stream_answer, true},
    {"/api/v1/reports", api_reports, true},  {"/api/v1/status", api_status, false},
    {"/api/v1/rejects", api_rejects, false}, {"/metrics", api_metrics, false},
    {"/healthz", api_health, false},         {"/readyz", api_ready, false},
};

/* The parameters of the URI; empty: none. */
static struct text query_of(const struct text *uri)
{
    struct text query = {0};
    const char *mark = memchr(uri->ptr, '?', uri->len);
    if (mark != NULL)
        text_puts(&query, mark + 1);
    return query;
}

/* Gets the parameters of the URI, then those of the form. False: there are too many, which the reply says. */
static bool get_parameters(struct request *rq)
{
    struct parameters *p = &rq->parameters;
    rq->query = query_of(&rq->uri);
    p->count = form_decode(&rq->query, p->list, SERVER_PARAMETERS_MAX);
    size_t in_uri = p->count < SERVER_PARAMETERS_MAX ? p->count : SERVER_PARAMETERS_MAX;
    if (!remote_is(rq->path))
        p->count += form_decode(&rq->body, p->list + in_uri, SERVER_PARAMETERS_MAX - in_uri);
    if (p->count > SERVER_PARAMETERS_MAX)
        api_error(&rq->reply, MHD_HTTP_BAD_REQUEST, slice_text("too many parameters"));
    return p->count <= SERVER_PARAMETERS_MAX;
}

static void answer_asset(const struct asset *a, struct reply *rp)
{
    rp->code = MHD_HTTP_OK;
    rp->type = a->type;
    rp->asset = a;
}

static bool is_prom(const char *path)
{
    return strncmp(path, PROM_API_PREFIX, strlen(PROM_API_PREFIX)) == 0;
}

static bool answer_prom(struct request *rq)
{
    if (remote_is(rq->path)) {
        remote_answer(&rq->server->api, text_slice(&rq->body), &rq->reply);
        return true;
    }
    return prom_api_answer(&rq->server->api, rq->path, rq->parameters.list, rq->parameters.count, &rq->reply);
}

static void say_nothing_is_here(struct reply *rp)
{
    api_error(
        rp, MHD_HTTP_NOT_FOUND,
        slice_text("nothing is here: the page is /, the API is under /api/v1/ and /prometheus/api/v1/"));
}

/* Answers what takes no time. False: it is a question for the workers. */
static bool answer_at_once(struct request *rq)
{
    struct api *api = &rq->server->api;
    const struct asset *a = assets_find(rq->path);
    size_t i = 0;
    if (a != NULL) {
        answer_asset(a, &rq->reply);
        return true;
    }
    while (i < COUNT_OF(routes) && strcmp(rq->path, routes[i].path) != 0)
        i++;
    if (i == COUNT_OF(routes) && !is_prom(rq->path)) {
        say_nothing_is_here(&rq->reply);
        return true;
    }
    if (!get_parameters(rq))
        return true;
    if (i == COUNT_OF(routes))
        return prom_api_answer_at_once(api, rq->path, &rq->reply);
    rq->answer = routes[i].answer;
    if (!routes[i].is_question)
        rq->answer(api, rq->parameters.list, rq->parameters.count, &rq->reply);
    return !routes[i].is_question;
}

/* ---- questions, on the threads of the workers */

/* Also true of a client that has shut down its side only: no program does that before it has the answer. */
static bool has_left(void *asker)
{
    struct pollfd pfd = {.fd = *(const int *)asker, .events = POLLRDHUP};
    return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void run_question(struct job *job)
{
    struct request *rq = (struct request *)job;
    if (rq->answer != NULL)
        rq->answer(&rq->server->api, rq->parameters.list, rq->parameters.count, &rq->reply);
    else if (!answer_prom(rq))
        say_nothing_is_here(&rq->reply);
    rq->response = respond_reserve(rq->con, &rq->reply, rq->server->clients);
    share_end(&rq->memory);
}

static void end_question(struct job *job)
{
    MHD_resume_connection(((struct request *)job)->con);
}

/* The connection is suspended until the question is answered; then on_request() is called again. */
static enum MHD_Result ask_workers(struct request *rq)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(rq->con, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct deadline *d = &rq->job.deadline;
    deadline_init(d, rq->server->api.clock, api_timeout_ms(&rq->server->api));
    if (info != NULL) {
        rq->socket = info->connect_fd;
        d->is_left = has_left;
        d->asker = &rq->socket;
    }
    rq->memory.quota = &rq->server->api.memory;
    rq->reply.deadline = d;
    rq->reply.memory = &rq->memory;
    rq->job.run = run_question;
    rq->job.done = end_question;
    rq->is_asked = true;
    MHD_suspend_connection(rq->con);
    if (workers_add(rq->server->workers, &rq->job))
        return MHD_YES;
    deadline_cancel(d);
    run_question(&rq->job);
    MHD_resume_connection(rq->con);
    return MHD_YES;
}

/* ---- requests */

/* libmicrohttpd calls this with the URI as it came, before it reads the headers. It would put each parameter
 * into the connection's memory, which 250 of them exceed, and then be silent until the connection times out:
 * so the parameters are taken here, and no `?` is left for it. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *con)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct request *rq = xcalloc(1, sizeof *rq);
    rq->server = context;
    rq->con = con;
    rq->client = info->socket_context;
    text_puts(&rq->uri, uri);
    rq->uri_end = uri + rq->uri.len;
    char *mark = strchr((char *)(uintptr_t)uri, '?');
    if (mark != NULL)
        memset(mark, '\0', strlen(mark));
    return rq;
}

static void on_end(void *context, struct MHD_Connection *con, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct request *rq = *state;
    (void)context, (void)con, (void)why;
    if (rq == NULL)
        return;
    client_waits(rq->client);
    if (rq->response != NULL)
        MHD_destroy_response(rq->response);
    text_fini(&rq->uri);
    text_fini(&rq->query);
    text_fini(&rq->body);
    free(rq);
}

static enum MHD_Result send_reply(struct request *rq, struct MHD_Response *response)
{
    if (rq->reply.stream == NULL)
        client_sends(rq->client, rq->reply.sent_bytes);
    return respond_send(rq->con, rq->reply.code, response);
}

static enum MHD_Result answer(struct request *rq)
{
    if (rq->is_asked) {
        struct MHD_Response *response = rq->response;
        rq->response = NULL;
        return send_reply(rq, response);
    }
    client_works(rq->client);
    if (rq->body.len > SERVER_REQUEST_BYTES)
        api_error(&rq->reply, MHD_HTTP_CONTENT_TOO_LARGE, slice_text("the body is too long"));
    else if (!answer_at_once(rq))
        return ask_workers(rq);
    return send_reply(rq, respond_make(rq->con, &rq->reply, false));
}

/* States are answered also when there is no place for anything else. */
static bool is_state(const char *path)
{
    return guard_is_open(path) || strcmp(path, "/metrics") == 0;
}

static enum MHD_Result begin(struct request *rq, const char *path, const char *method, const char *version)
{
    const char *mark = memchr(rq->uri.ptr, '?', rq->uri.len), *nul = strstr(rq->uri.ptr, "%00");
    struct admit_request ask = {.con = rq->con,
                                .path = path,
                                .method = method,
                                .version = version,
                                .uri_end = rq->uri_end,
                                .has_nul = nul != NULL && (mark == NULL || nul < mark),
                                .is_prom = is_prom(path),
                                .takes = remote_is(path) ? REMOTE_TYPE : NULL,
                                .is_free = guard_is_open(path) || assets_find(path) != NULL};
    rq->is_begun = true;
    rq->path = path;
    if (!admit_refuse(&rq->server->admit, &ask, &rq->reply)) {
        if (is_state(path) || !clients_are_busy(rq->server->clients)) {
            /* It is whole, unless it has a body: it must not be taken for one that is slow to come. */
            if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
                client_works(rq->client);
            return MHD_YES;
        }
        api_error(&rq->reply, MHD_HTTP_SERVICE_UNAVAILABLE,
                  slice_text("all connections are in use (http.connections_max)"));
        rq->reply.retry = true;
    }
    return send_reply(rq, respond_make(rq->con, &rq->reply, true));
}

/* libmicrohttpd calls this after the headers, for each piece of a body, and after the whole request; again
 * after the connection was resumed. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *con, const char *path,
                                  const char *method, const char *version, const char *data, size_t *data_len,
                                  void **state)
{
    struct request *rq = *state;
    (void)context, (void)con;
    if (!rq->is_begun)
        return begin(rq, path, method, version);
    if (*data_len == 0)
        return answer(rq);
    if (rq->body.len <= SERVER_REQUEST_BYTES)
        text_add(&rq->body, data, *data_len);
    *data_len = 0;
    return MHD_YES;
}

/* ---- connections */

static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t len)
{
    struct server *sv = context;
    (void)len;
    return clients_take(sv->clients, address) ? MHD_YES : MHD_NO;
}

static void on_connection(void *context, struct MHD_Connection *con, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *sv = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        clients_remove(*state);
        return;
    }
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket = fd->connect_fd;
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(con, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *state = clients_add(sv->clients, socket, address->client_addr);
}

static void suspend(void *client)
{
    MHD_suspend_connection(client);
}

static void resume(void *client)
{
    MHD_resume_connection(client);
}

static struct MHD_Daemon *start_daemon(struct server *sv, const struct server_options *o, const struct tls *t,
                                       int fd)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem secrets[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, t->cert.ptr},
                                       {MHD_OPTION_HTTPS_MEM_KEY, 0, t->key.ptr},
                                       {MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES},
                                       {MHD_OPTION_END, 0, NULL}};
    bool has_tls = t->cert.ptr != NULL;
    return MHD_start_daemon(
        flags | (has_tls ? MHD_USE_TLS : 0), 0, on_accept, sv, on_request, sv, MHD_OPTION_NOTIFY_COMPLETED,
        on_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, sv, MHD_OPTION_URI_LOG_CALLBACK, on_uri,
        sv, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, o->connections_max + CLIENTS_SPARE,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((o->timeout_ms + 999) / 1000),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_REQUEST_BYTES, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)SERVER_THREADS, MHD_OPTION_ARRAY, has_tls ? secrets : secrets + 3, MHD_OPTION_END);
}

/* libmicrohttpd cannot stop suspended connections, so questions and streams end first. */
static void stop_serving(struct server *sv)
{
    if (sv->workers != NULL)
        workers_end(sv->workers);
    if (sv->api.streams != NULL)
        streams_end(sv->api.streams);
    if (sv->clients != NULL)
        clients_settle(sv->clients, SETTLE_MS);
    if (sv->daemon != NULL)
        MHD_stop_daemon(sv->daemon);
    workers_free(sv->workers);
    clients_free(sv->clients);
    streams_free(sv->api.streams);
}

static struct clients *start_clients(const struct server_options *o)
{
    return clients_start(&(struct clients_options){.connections_max = o->connections_max,
                                                   .per_address_max = o->per_address_max,
                                                   .sending_max = o->sending_max,
                                                   .timeout_ms = o->timeout_ms,
                                                   .clock = o->clock});
}

static struct server *start(const struct server_options *o, const struct tls *t, struct err *e)
{
    struct server *sv = xcalloc(1, sizeof *sv);
    int fd = listen_open(o->listen, sv->address, e);
    if (fd < 0) {
        free(sv);
        return NULL;
    }
    assets_init();
    sv->admit = (struct admit){o->listen, o->token};
    pthread_mutex_init(&sv->api.limits_lock, NULL);
    missed_cache_init(&sv->api.missed);
    sv->api.limits = o->limits;
    quota_init(&sv->api.memory, o->limits.memory_max);
    sv->api.clock = o->clock;
    sv->api.status = o->status;
    sv->api.rejects = o->rejects;
    readers_init(&sv->api.readers, o->store_url, o->clock);
    sv->api.streams = streams_start(&sv->api, &(struct streams_clients){suspend, resume}, o->streams_max);
    sv->workers = workers_start();
    sv->clients = start_clients(o);
    if (sv->api.streams != NULL && sv->workers != NULL && sv->clients != NULL)
        sv->daemon = start_daemon(sv, o, t, fd);
    if (sv->daemon != NULL)
        return sv;
    if (t->cert.ptr != NULL)
        err_set(e, EX_CONFIG,
                "cannot serve by TLS on %s: is the key of %s (http.tls_key) that of the certificate in %s "
                "(http.tls_cert)?",
                sv->address, o->tls_key, o->tls_cert);
    else
        err_set(e, EX_OSERR, "cannot start the HTTP server on %s", sv->address);
    close(fd);
    server_stop(sv);
    return NULL;
}

struct server *server_start(const struct server_options *o, struct err *e)
{
    struct tls tls;
    ASSERT(o->connections_max > 0 && o->timeout_ms > 0);
    if (strncmp(o->store_url, "mem:", 4) == 0) {
        err_set(e, EX_CONFIG,
                "the store mem: cannot be served, since only its writer sees it: name a sqlite:PATH, or set "
                "http.enabled: false");
        return NULL;
    }
    if (!tls_load(&tls, o->tls_cert, o->tls_key, e))
        return NULL;
    struct server *sv = start(o, &tls, e);
    tls_fini(&tls);
    return sv;
}

int64_t server_sending_bytes_max(const struct server_options *o)
{
    const int64_t per_connection =
        REQUEST_TEXTS * SERVER_REQUEST_BYTES + SHORT_BYTES + (o->tls_cert != NULL ? TLS_BYTES : 0);
    return ((int64_t)o->connections_max + CLIENTS_SPARE) * per_connection + (int64_t)o->sending_max +
           (int64_t)o->streams_max * STREAMS_BYTES;
}

int64_t server_question_bytes_max(const struct server_options *o)
{
    return (int64_t)o->limits.memory_max + WORKERS_COUNT * (int64_t)o->limits.bytes_max +
           READERS_MAX * (int64_t)(MEM_KEPT_BYTES + SMALL_BYTES);
}

void server_stop(struct server *sv)
{
    if (sv == NULL)
        return;
    stop_serving(sv);
    readers_fini(&sv->api.readers);
    pthread_mutex_destroy(&sv->api.limits_lock);
    missed_cache_fini(&sv->api.missed);
    free(sv);
}

void server_set_limits(struct server *sv, const struct query_limits *limits)
{
    pthread_mutex_lock(&sv->api.limits_lock);
    sv->api.limits = *limits;
    quota_set_max(&sv->api.memory, limits->memory_max);
    pthread_mutex_unlock(&sv->api.limits_lock);
}

const char *server_address(const struct server *sv)
{
    return sv->address;
}
