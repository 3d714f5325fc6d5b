#include "web/respond.h"

#include "base/mem.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/encode.h"
#include "web/guard.h"
#include "web/streams.h"

#include <stdio.h>
#include <stdlib.h>

#define STREAM_BUFFER_BYTES 8192

/* The page loads nothing from elsewhere and runs nothing inline; no other site may frame or read it. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

/* The bytes that are sent of a reply. */
struct payload {
    struct slice bytes; /* bytes of its body, or of the asset */
    const char *tag;    /* NULL: none */
    char own_tag[ENCODE_TAG_BYTES];
    bool is_packed;
};

/* NULL: the client did not send this header. */
static const char *header_of(struct MHD_Connection *con, const char *name)
{
    return MHD_lookup_connection_value(con, MHD_HEADER_KIND, name);
}

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    MHD_add_response_header(response, name, value);
}

static void add_caching(struct MHD_Response *response, const struct reply *rp, const struct payload *p)
{
    char tag[ENCODE_TAG_BYTES + 2];
    if (p->tag == NULL) {
        add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        return;
    }
    snprintf(tag, sizeof tag, "%s%s", p->is_packed ? "W/" : "", p->tag);
    add(response, MHD_HTTP_HEADER_ETAG, tag);
    add(response, MHD_HTTP_HEADER_CACHE_CONTROL, rp->asset != NULL ? "no-cache" : "private, no-cache");
}

static void add_headers(struct MHD_Response *response, const struct reply *rp, const struct payload *p)
{
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        add(response, headers[i].name, headers[i].value);
    add(response, MHD_HTTP_HEADER_CONTENT_TYPE, rp->type);
    add(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    add_caching(response, rp, p);
    if (p->is_packed)
        add(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (rp->coding != NULL)
        add(response, MHD_HTTP_HEADER_CONTENT_ENCODING, rp->coding);
    if (rp->retry)
        add(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (rp->allow != NULL)
        add(response, MHD_HTTP_HEADER_ALLOW, rp->allow);
    if (rp->code == MHD_HTTP_UNAUTHORIZED) {
        add(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, GUARD_BEARER);
        add(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, GUARD_BASIC);
    }
}

/* A stream, and the connection that waits when the stream has nothing to read. */
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
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BUFFER_BYTES, read_stream, r, end_reading);
    if (response == NULL)
        end_reading(r);
    return response;
}

/* False: the bytes stay as they are. */
static bool pack(struct reply *rp, struct slice *bytes)
{
    struct text packed = {0};
    if (rp->asset != NULL) {
        if (rp->asset->packed.ptr != NULL)
            *bytes = rp->asset->packed;
        return rp->asset->packed.ptr != NULL;
    }
    if (bytes->len < ENCODE_BYTES_MIN || !share_take(rp->memory, 2 * bytes->len) ||
        !encode_gzip(*bytes, ENCODE_QUICK, &packed))
        return false;
    text_fini(&rp->body);
    rp->body = packed;
    *bytes = text_slice(&packed);
    return true;
}

/* Omits the bytes if the client has them already; else packs them if the client accepts gzip. */
static void prepare(struct MHD_Connection *con, struct reply *rp, struct payload *p)
{
    p->bytes = rp->asset != NULL ? rp->asset->bytes : text_slice(&rp->body);
    p->tag = rp->asset != NULL ? rp->asset->etag : NULL;
    if (rp->asset == NULL && rp->is_closed && rp->code == MHD_HTTP_OK) {
        encode_tag(p->bytes, p->own_tag);
        p->tag = p->own_tag;
    }
    if (p->tag != NULL && encode_tag_is_known(header_of(con, MHD_HTTP_HEADER_IF_NONE_MATCH), p->tag)) {
        rp->code = MHD_HTTP_NOT_MODIFIED;
        text_fini(&rp->body);
        p->bytes = slice_of(NULL, 0);
        return;
    }
    p->is_packed = rp->coding == NULL &&
                   encode_accepts_gzip(header_of(con, MHD_HTTP_HEADER_ACCEPT_ENCODING)) &&
                   pack(rp, &p->bytes);
}

/* Bytes for which room was reserved. */
struct reserved {
    struct clients *clients;
    char *bytes;
    size_t len;
};

static void release(void *context)
{
    struct reserved *r = context;
    clients_release(r->clients, r->len);
    free(r->bytes);
    free(r);
}

static struct MHD_Response *respond_with_reserved(struct clients *clients, const struct payload *p)
{
    struct reserved *r = xmalloc(sizeof *r);
    char *bytes = (char *)(uintptr_t)p->bytes.ptr, *fitted = realloc(bytes, p->bytes.len);
    *r = (struct reserved){clients, fitted != NULL ? fitted : bytes, p->bytes.len};
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback_cls(r->len, r->bytes, release, r);
    if (response == NULL)
        release(r);
    return response;
}

/* `clients`: where room is reserved; NULL: the answer is short, or an asset. */
static struct MHD_Response *respond_with_bytes(struct MHD_Connection *con, struct reply *rp,
                                               struct payload *p, struct clients *clients)
{
    prepare(con, rp, p);
    if (clients != NULL && p->bytes.len > 0) {
        if (clients_reserve(clients, p->bytes.len, rp->deadline))
            return respond_with_reserved(clients, p);
        *p = (struct payload){0};
        rp->retry = true;
        rp->is_closed = false;
        rp->coding = NULL;
        api_error(rp, MHD_HTTP_SERVICE_UNAVAILABLE,
                  slice_text("all memory for answers is taken by clients that read slowly"));
        p->bytes = text_slice(&rp->body);
    }
    return MHD_create_response_from_buffer(p->bytes.len, (void *)(uintptr_t)p->bytes.ptr,
                                           rp->asset != NULL ? MHD_RESPMEM_PERSISTENT
                                                             : MHD_RESPMEM_MUST_FREE);
}

static struct MHD_Response *make(struct MHD_Connection *con, struct reply *rp, struct clients *clients,
                                 bool last)
{
    struct payload p = {0};
    struct MHD_Response *response =
        rp->stream != NULL ? respond_with_stream(con, rp->stream) : respond_with_bytes(con, rp, &p, clients);
    if (response == NULL)
        return NULL;
    rp->sent_bytes = p.bytes.len;
    add_headers(response, rp, &p);
    if (last)
        add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response;
}

struct MHD_Response *respond_make(struct MHD_Connection *con, struct reply *rp, bool last)
{
    return make(con, rp, NULL, last);
}

struct MHD_Response *respond_reserve(struct MHD_Connection *con, struct reply *rp, struct clients *clients)
{
    return make(con, rp, clients, false);
}

enum MHD_Result respond_send(struct MHD_Connection *con, unsigned code, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    enum MHD_Result queued = MHD_queue_response(con, code, response);
    MHD_destroy_response(response);
    return queued;
}
