#include "web/server.h"

#include "base/mem.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/host.h"
#include "web/listen.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <unistd.h>

struct server {
    struct api api;
    const char *listen; /* borrowed; its host is one that requests may name */
    char address[LISTEN_TEXT_BYTES];
    struct MHD_Daemon *daemon;
};

struct parameters {
    struct parameter list[SERVER_PARAMETERS_MAX];
    size_t count; /* that were given; more than fit is an error */
};

static const struct {
    const char *path;
    api_fn *answer;
} routes[] = {
    {"/api/v1/query", api_query},   {"/api/v1/top", api_top},         {"/api/v1/series", api_series},
    {"/api/v1/stream", api_stream}, {"/api/v1/reports", api_reports}, {"/api/v1/status", api_status},
    {"/metrics", api_metrics},      {"/healthz", api_health},         {"/readyz", api_ready},
};

/* Nothing is loaded from elsewhere, nothing inline runs, and no other site may frame or read this one. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                     size_t name_len, const char *value, size_t value_len)
{
    struct parameters *p = context;
    (void)kind;
    if (p->count < SERVER_PARAMETERS_MAX)
        p->list[p->count] =
            (struct parameter){slice_of(name, name_len), slice_of(value, value != NULL ? value_len : 0)};
    p->count++;
    return MHD_YES;
}

static void answer_route(struct server *sv, struct MHD_Connection *con, api_fn *answer, struct reply *rp)
{
    struct parameters p = {.count = 0};
    MHD_get_connection_values_n(con, MHD_GET_ARGUMENT_KIND, add_parameter, &p);
    if (p.count > SERVER_PARAMETERS_MAX)
        api_error(rp, MHD_HTTP_BAD_REQUEST, slice_text("too many parameters"));
    else
        answer(&sv->api, p.list, p.count, rp);
}

static void answer_asset(struct MHD_Connection *con, const struct asset *a, struct reply *rp)
{
    const char *known = MHD_lookup_connection_value(con, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    rp->code = MHD_HTTP_OK;
    rp->type = a->type;
    rp->etag = a->etag;
    rp->asset = a->bytes;
    if (known != NULL && strcmp(known, a->etag) == 0) {
        rp->code = MHD_HTTP_NOT_MODIFIED;
        rp->asset.len = 0;
    }
}

static void answer_path(struct server *sv, struct MHD_Connection *con, const char *path, struct reply *rp)
{
    const struct asset *a = assets_find(path);
    if (a != NULL) {
        answer_asset(con, a, rp);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (strcmp(path, routes[i].path) == 0) {
            answer_route(sv, con, routes[i].answer, rp);
            return;
        }
    }
    api_error(rp, MHD_HTTP_NOT_FOUND,
              slice_text("nothing is here: the page is /, the API is under /api/v1/"));
}

static bool has_body(struct MHD_Connection *con)
{
    const char *length = MHD_lookup_connection_value(con, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return MHD_lookup_connection_value(con, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
           (length != NULL && strcmp(length, "0") != 0);
}

/* Refused by its headers alone; the connection ends with it, since a body may follow. */
static bool refuse(const struct server *sv, struct MHD_Connection *con, const char *method, struct reply *rp)
{
    const char *host = MHD_lookup_connection_value(con, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (host != NULL && !host_allowed(slice_text(host), slice_text(sv->listen)))
        api_error(rp, MHD_HTTP_FORBIDDEN,
                  slice_text("this host name is not mine: tallyd answers to IP addresses, to localhost and "
                             "to the name in http.listen (--listen)"));
    else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        api_error(rp, MHD_HTTP_METHOD_NOT_ALLOWED, slice_text("only GET and HEAD are answered"));
    else if (has_body(con))
        api_error(rp, MHD_HTTP_CONTENT_TOO_LARGE, slice_text("a request has no body here"));
    return rp->code != 0;
}

static void add_headers(struct MHD_Response *response, const struct reply *rp)
{
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, rp->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                            rp->etag != NULL ? "no-cache" : "no-store");
    if (rp->etag != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, rp->etag);
    if (rp->retry)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (rp->code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
}

static void suspend(void *client)
{
    MHD_suspend_connection(client);
}

static void resume(void *client)
{
    MHD_resume_connection(client);
}

/* What the reader of a stream is given: which connection waits where there is nothing to read. */
struct reading {
    struct stream *stream;
    struct MHD_Connection *con;
};

static ssize_t read_stream(void *context, uint64_t position, char *buf, size_t size)
{
    struct reading *r = context;
    (void)position;
    long len = stream_read(r->stream, r->con, buf, size);
    return len >= 0 ? len : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_reading(void *context)
{
    struct reading *r = context;
    stream_close(r->stream);
    free(r);
}

static struct MHD_Response *respond_with_stream(struct MHD_Connection *con, struct stream *stream)
{
    struct reading *r = xmalloc(sizeof *r);
    *r = (struct reading){stream, con};
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, SERVER_STREAM_BYTES, read_stream, r, end_reading);
    if (response == NULL)
        end_reading(r);
    return response;
}

/* Takes the body. */
static enum MHD_Result queue(struct MHD_Connection *con, const struct reply *rp, bool last)
{
    struct MHD_Response *response;
    if (rp->stream != NULL)
        response = respond_with_stream(con, rp->stream);
    else if (rp->etag != NULL)
        response = MHD_create_response_from_buffer(rp->asset.len, (void *)(uintptr_t)rp->asset.ptr,
                                                   MHD_RESPMEM_PERSISTENT);
    else
        response = MHD_create_response_from_buffer(rp->body.len, rp->body.ptr, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    add_headers(response, rp);
    if (last)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result queued = MHD_queue_response(con, rp->code, response);
    MHD_destroy_response(response);
    return queued;
}

/* Called when the headers are there, and again when the whole request is. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *con, const char *path,
                                  const char *method, const char *version, const char *data, size_t *data_len,
                                  void **state)
{
    static char headers_seen;
    struct server *sv = context;
    struct reply rp = {0};
    (void)version, (void)data, (void)data_len;
    if (*state == NULL) {
        *state = &headers_seen;
        return refuse(sv, con, method, &rp) ? queue(con, &rp, true) : MHD_YES;
    }
    answer_path(sv, con, path, &rp);
    return queue(con, &rp, false);
}

static struct MHD_Daemon *start_daemon(struct server *sv, const struct server_options *o, int fd)
{
    unsigned threads = o->connections_max < SERVER_THREADS ? o->connections_max : SERVER_THREADS;
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                            on_request, sv, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                            o->connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)((o->timeout_ms + 999) / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)SERVER_REQUEST_BYTES, MHD_OPTION_THREAD_POOL_SIZE, threads,
                            MHD_OPTION_END);
}

/* Suspended connections cannot be stopped, so that streams end first. */
static void stop_serving(struct server *sv)
{
    if (sv->api.streams != NULL)
        streams_end(sv->api.streams);
    if (sv->daemon != NULL)
        MHD_stop_daemon(sv->daemon);
    streams_free(sv->api.streams);
}

struct server *server_start(const struct server_options *o, struct err *e)
{
    ASSERT(o->connections_max > 0 && o->timeout_ms > 0);
    if (strncmp(o->store_url, "mem:", 4) == 0) {
        err_set(e, EX_CONFIG,
                "the store mem: cannot be served, since only its writer sees it: name a "
                "sqlite:PATH, or say http.enabled: false");
        return NULL;
    }
    struct server *sv = xcalloc(1, sizeof *sv);
    int fd = listen_open(o->listen, sv->address, e);
    if (fd < 0) {
        free(sv);
        return NULL;
    }
    assets_init();
    sv->listen = o->listen;
    pthread_mutex_init(&sv->api.limits_lock, NULL);
    sv->api.limits = o->limits;
    sv->api.status = o->status;
    readers_init(&sv->api.readers, o->store_url);
    sv->api.streams = streams_start(&sv->api, &(struct streams_clients){suspend, resume}, o->streams_max);
    if (sv->api.streams != NULL)
        sv->daemon = start_daemon(sv, o, fd);
    if (sv->daemon != NULL)
        return sv;
    err_set(e, EX_OSERR, "cannot start the HTTP server on %s", sv->address);
    close(fd);
    server_stop(sv);
    return NULL;
}

void server_stop(struct server *sv)
{
    if (sv == NULL)
        return;
    stop_serving(sv);
    readers_fini(&sv->api.readers);
    pthread_mutex_destroy(&sv->api.limits_lock);
    free(sv);
}

void server_set_limits(struct server *sv, const struct query_limits *limits)
{
    pthread_mutex_lock(&sv->api.limits_lock);
    sv->api.limits = *limits;
    pthread_mutex_unlock(&sv->api.limits_lock);
}

const char *server_address(const struct server *sv)
{
    return sv->address;
}
