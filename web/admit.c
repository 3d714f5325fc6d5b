#include "web/admit.h"

#include "web/api.h"
#include "web/form.h"
#include "web/guard.h"
#include "web/host.h"

#include <string.h>
#include <strings.h>

/* Bytes of a token, beside letters and digits (RFC 9110). */
#define TOKEN_BYTES "!#$%&'*+-.^_`|~"

/* Walk over the headers of a request. */
struct headers {
    size_t host_count, length_count, coding_count;
    const char *next; /* where the next header begins; NULL: the first one */
    const char *wrong;
};

static bool is_token(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (c == '\0' || strchr(TOKEN_BYTES, c) == NULL))
            return false;
    }
    return name.len > 0;
}

/* libmicrohttpd ends names and values by NULs, in the buffer that it read: CR and LF become one each. So what
 * stands between a value and the next header shows a NUL that came, a folded line, and an LF without CR. */
static enum MHD_Result see_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                  const char *value, size_t value_len)
{
    struct headers *h = context;
    (void)kind;
    if (!is_token(slice_of(name, name_len)))
        h->wrong = "the name of a header is no token";
    else if (value == NULL || memchr(value, '\0', value_len) != NULL || value[value_len + 1] != '\0' ||
             (h->next != NULL && name != h->next))
        h->wrong = "a header has a NUL, is folded, or ends without CR LF";
    if (h->wrong != NULL)
        return MHD_NO;
    h->next = value + value_len + 2;
    h->host_count += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    h->length_count += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        h->coding_count++;
        h->wrong = strcasecmp(value, "chunked") == 0 ? NULL : "Transfer-Encoding may be chunked only";
    }
    return h->wrong == NULL ? MHD_YES : MHD_NO;
}

/* Returns what is wrong with the request's syntax; NULL: nothing is wrong. */
static const char *find_fault(const struct admit_request *rq)
{
    struct headers h = {0};
    if (rq->has_nul || rq->version != rq->uri_end + 1)
        return "the request line is not METHOD PATH VERSION, or its path has a NUL";
    MHD_get_connection_values_n(rq->con, MHD_HEADER_KIND, see_header, &h);
    if (h.wrong != NULL)
        return h.wrong;
    if (h.host_count > 1 || (h.host_count == 0 && strcmp(rq->version, MHD_HTTP_VERSION_1_1) == 0))
        return "a request has one Host";
    if (h.length_count + h.coding_count > 1)
        return "a request has one Content-Length, or one Transfer-Encoding";
    return NULL;
}

static const char *header_of(const struct admit_request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->con, MHD_HEADER_KIND, name);
}

static bool has_body(const struct admit_request *rq)
{
    const char *length = header_of(rq, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return header_of(rq, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
           (length != NULL && strcmp(length, "0") != 0);
}

static void refuse_type(const struct admit_request *rq, const char *type, struct reply *rp)
{
    struct text expected = {0};
    if (form_type_is(header_of(rq, MHD_HTTP_HEADER_CONTENT_TYPE), type))
        return;
    text_printf(&expected, "a POST must have the header Content-Type: %s", type);
    api_error(rp, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, text_slice(&expected));
    text_fini(&expected);
}

/* Only a question of Prometheus' API may be posted, mostly as a form. */
static void refuse_method(const struct admit_request *rq, struct reply *rp)
{
    bool is_post = strcmp(rq->method, MHD_HTTP_METHOD_POST) == 0;
    if (rq->takes != NULL && !is_post) {
        rp->allow = "POST";
        api_error(rp, MHD_HTTP_METHOD_NOT_ALLOWED, slice_text("only POST is answered here"));
    } else if (rq->takes != NULL) {
        refuse_type(rq, rq->takes, rp);
    } else if (strcmp(rq->method, MHD_HTTP_METHOD_GET) == 0 ||
               strcmp(rq->method, MHD_HTTP_METHOD_HEAD) == 0) {
        if (has_body(rq))
            api_error(rp, MHD_HTTP_CONTENT_TOO_LARGE, slice_text("a request has no body here"));
    } else if (!rq->is_prom) {
        rp->allow = "GET, HEAD";
        api_error(rp, MHD_HTTP_METHOD_NOT_ALLOWED, slice_text("only GET and HEAD are answered here"));
    } else if (!is_post) {
        rp->allow = "GET, HEAD, POST";
        api_error(rp, MHD_HTTP_METHOD_NOT_ALLOWED, slice_text("only GET, HEAD and POST are answered here"));
    } else if (has_body(rq)) {
        refuse_type(rq, FORM_TYPE, rp);
    }
}

bool admit_refuse(const struct admit *admit, const struct admit_request *rq, struct reply *rp)
{
    const char *given = header_of(rq, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *host = header_of(rq, MHD_HTTP_HEADER_HOST), *fault = find_fault(rq);
    if (fault != NULL)
        api_error(rp, MHD_HTTP_BAD_REQUEST, slice_text(fault));
    else if (host != NULL && !host_allowed(slice_text(host), slice_text(admit->listen)))
        api_error(rp, MHD_HTTP_FORBIDDEN,
                  slice_text("unknown host name: tallyd answers to IP addresses, to localhost and to the "
                             "name in http.listen (--listen)"));
    else if (!rq->is_free &&
             guard_is_foreign(header_of(rq, "Sec-Fetch-Site"), header_of(rq, "Origin"), host) &&
             !guard_has_bearer(given, admit->token))
        api_error(rp, MHD_HTTP_FORBIDDEN,
                  slice_text("another site asks: open the page itself, or send the token of http.token as "
                             "Authorization: Bearer"));
    else if (admit->token != NULL && !guard_is_open(rq->path) && !guard_allows(given, admit->token))
        api_error(
            rp, MHD_HTTP_UNAUTHORIZED,
            slice_text(
                "not authorized: send the token of http.token as Authorization: Bearer, or as the password"));
    else
        refuse_method(rq, rp);
    return rp->code != 0;
}
