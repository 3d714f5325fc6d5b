#include "base/http.h"

#include "base/library.h"

#define CURL_DISABLE_TYPECHECK /* its macros take functions for names */
#include <curl/curl.h>
#include <sysexits.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform) X(curl_easy_getinfo) \
    X(curl_easy_strerror) X(curl_easy_cleanup)
/* clang-format on */

LIBRARY(libcurl, FUNCTIONS, "libcurl.so.4", "libcurl4");

bool http_load(struct err *e)
{
    return library_load(&libcurl, e);
}

/* The room for an answer. */
struct room {
    struct text *body;
    size_t bytes_max;
};

/* Appends received bytes. Returning fewer than came makes curl give up. */
static size_t take(char *bytes, size_t one, size_t count, void *context)
{
    const struct room *room = context;
    size_t len = one * count;
    if (len > room->bytes_max - room->body->len)
        return 0;
    text_add(room->body, bytes, len);
    return len;
}

/* Returning other than 0 makes curl give up. */
static int look_at_stop(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const atomic_bool *stop = context;
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(stop);
}

static void set_identity(CURL *curl, const struct http_server *s)
{
    if (s->cacert != NULL) { /* trust only `cacert`: Debian's libcurl has its defaults in both options */
        lib.curl_easy_setopt(curl, CURLOPT_CAINFO, s->cacert);
        lib.curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (s->tls_cert != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_SSLCERT, s->tls_cert);
        lib.curl_easy_setopt(curl, CURLOPT_SSLKEY, s->tls_key);
    }
    if (s->token != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        lib.curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, s->token);
    } else if (s->user != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        lib.curl_easy_setopt(curl, CURLOPT_USERNAME, s->user);
        lib.curl_easy_setopt(curl, CURLOPT_PASSWORD, s->password);
    }
}

static void set_options(CURL *curl, const struct http_server *s, const char *address, struct room *room,
                        char *why)
{
    lib.curl_easy_setopt(curl, CURLOPT_URL, address);
    lib.curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    lib.curl_easy_setopt(curl, CURLOPT_PROXY, "");
    lib.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib.curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_ms);
    lib.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)s->timeout_ms);
    lib.curl_easy_setopt(curl, CURLOPT_USERAGENT, "tallyd/" TALLYD_VERSION);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEDATA, room);
    lib.curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    if (s->stop != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        lib.curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_at_stop);
        lib.curl_easy_setopt(curl, CURLOPT_XFERINFODATA, s->stop);
    }
    set_identity(curl, s);
}

static bool no_address(const struct http_server *s, struct err *e)
{
    return err_set(e, EX_USAGE, "found %s, expected an address: http://HOST:PORT", s->url);
}

/* Reports why there is no answer, or that it is too large. */
static bool fail(const struct http_server *s, CURLcode code, const char *why, struct err *e)
{
    if (why[0] == '\0')
        why = lib.curl_easy_strerror(code);
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, EX_UNAVAILABLE, "%s answers with more than %zu MiB%s", s->url, s->bytes_max >> 20,
                       s->large_advice);
    if (code == CURLE_URL_MALFORMAT)
        return no_address(s, e);
    if (code == CURLE_SSL_CACERT_BADFILE && s->cacert != NULL)
        return err_set(e, EX_NOINPUT, "cannot read certificates from %s (%s)", s->cacert, s->cacert_option);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return err_set(e, EX_UNAVAILABLE, "%s is not trusted: %s; %s names who has signed its certificate",
                       s->url, why, s->cacert_option);
    return err_set(e, EX_UNAVAILABLE, "%s does not answer: %s", s->url, why);
}

bool http_get(const struct http_server *s, const char *path, struct http_answer *answer, struct err *e)
{
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    const char *type = NULL;
    struct text address = {0};
    size_t len = strlen(s->url);
    struct room room = {&answer->body, s->bytes_max};
    text_clear(&answer->body);
    answer->status = 0;
    const char *host = strstr(s->url, "://");
    if (host == NULL || host[3] == '/' || host[3] == '\0') /* libcurl would take the path for the host */
        return no_address(s, e);
    if (!http_load(e))
        return false;
    CURL *curl = lib.curl_easy_init();
    if (curl == NULL)
        return err_set(e, EX_OSERR, "libcurl cannot be used");
    while (len > 0 && s->url[len - 1] == '/')
        len--;
    text_printf(&address, "%.*s%s", (int)len, s->url, path);
    set_options(curl, s, address.ptr, &room, why);
    CURLcode code = lib.curl_easy_perform(curl);
    lib.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    lib.curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    answer->status = code == CURLE_OK || code == CURLE_WRITE_ERROR ? (int)status : 0;
    answer->is_page = type == NULL || strncmp(type, "text/html", 9) == 0;
    lib.curl_easy_cleanup(curl);
    text_fini(&address);
    return code == CURLE_OK || fail(s, code, why, e);
}
