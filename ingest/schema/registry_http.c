/* Requests to the registry, by libcurl. */
#include "base/library.h"
#include "ingest/schema/registry_server.h"
#include "ingest/schema/schema_json.h"

#define CURL_DISABLE_TYPECHECK /* its macros take functions for names */
#include <curl/curl.h>
#include <sysexits.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform) X(curl_easy_getinfo) \
    X(curl_easy_strerror) X(curl_easy_cleanup)
/* clang-format on */

LIBRARY(libcurl, FUNCTIONS, "libcurl.so.4", "libcurl4");

bool registry_server_open(struct err *e)
{
    return schema_json_open(e) && library_load(&libcurl, e);
}

/* Appends received bytes. Returning fewer than came makes curl give up. */
static size_t take(char *bytes, size_t one, size_t count, void *context)
{
    struct text *answer = context;
    size_t len = one * count;
    if (len > REGISTRY_ANSWER_BYTES_MAX - answer->len)
        return 0;
    text_add(answer, bytes, len);
    return len;
}

/* Returning other than 0 makes curl give up. */
static int look_at_stop(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const atomic_bool *stop = context;
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(stop);
}

static void set_identity(CURL *curl, const struct registry_server *r)
{
    if (r->cacert != NULL) { /* trust only `cacert`: Debian's libcurl has its defaults in both options */
        lib.curl_easy_setopt(curl, CURLOPT_CAINFO, r->cacert);
        lib.curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (r->tls_cert != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_SSLCERT, r->tls_cert);
        lib.curl_easy_setopt(curl, CURLOPT_SSLKEY, r->tls_key);
    }
    if (r->token != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        lib.curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, r->token);
    } else if (r->user != NULL) {
        lib.curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        lib.curl_easy_setopt(curl, CURLOPT_USERNAME, r->user);
        lib.curl_easy_setopt(curl, CURLOPT_PASSWORD, r->password);
    }
}

static void set_options(CURL *curl, const struct registry_server *r, const char *address,
                        const atomic_bool *stop, struct text *answer, char *why)
{
    lib.curl_easy_setopt(curl, CURLOPT_URL, address);
    lib.curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    lib.curl_easy_setopt(curl, CURLOPT_PROXY, "");
    lib.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib.curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)(r->timeout_ms < REGISTRY_CONNECT_MS ? r->timeout_ms : REGISTRY_CONNECT_MS));
    lib.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    lib.curl_easy_setopt(curl, CURLOPT_USERAGENT, "tallyd/" TALLYD_VERSION);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    lib.curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    lib.curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_at_stop);
    lib.curl_easy_setopt(curl, CURLOPT_XFERINFODATA, stop);
    lib.curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    set_identity(curl, r);
}

/* Reports an answer that is none: {"error_code": 40403, "message": "Schema 7 not found"}. */
static bool fail_status(const struct registry_server *r, long status, const struct text *answer,
                        struct err *e)
{
    struct err ignored;
    json_t *tree = answer->len > 0 ? schema_json_parse(text_slice(answer), &ignored) : NULL;
    struct slice message = schema_json_text(schema_json_member(tree, "message"));
    if (status == 401 || status == 403)
        err_set(e, EX_NOPERM,
                "%s refuses the credentials (status %ld): check registry.user, password and token", r->url,
                status);
    else if (message.len > 0)
        err_set(e, EX_UNAVAILABLE, "%s answers with status %ld: %.*s", r->url, status,
                (int)(message.len < 200 ? message.len : 200), message.ptr);
    else
        err_set(e, EX_UNAVAILABLE, "%s answers with status %ld: check that registry.url is a schema registry",
                r->url, status);
    schema_json_free(tree);
    return false;
}

static bool fail_curl(const struct registry_server *r, CURLcode code, const char *why, struct err *e)
{
    if (why[0] == '\0')
        why = lib.curl_easy_strerror(code);
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, EX_UNAVAILABLE, "%s answers with more than %d MiB", r->url,
                       REGISTRY_ANSWER_BYTES_MAX >> 20);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return err_set(e, EX_UNAVAILABLE,
                       "%s is not trusted: %s; registry.cacert names who has signed its certificate", r->url,
                       why);
    return err_set(e, EX_UNAVAILABLE, "%s does not answer: %s", r->url, why);
}

bool registry_get(const struct registry_server *r, const char *path, const atomic_bool *stop,
                  struct text *answer, bool *is_away, struct err *e)
{
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    struct text address = {0};
    size_t len = strlen(r->url);
    CURL *curl = lib.curl_easy_init();
    *is_away = true;
    if (curl == NULL)
        return err_set(e, EX_OSERR, "libcurl cannot be used");
    while (len > 0 && r->url[len - 1] == '/')
        len--;
    text_printf(&address, "%.*s%s", (int)len, r->url, path);
    text_clear(answer);
    set_options(curl, r, address.ptr, stop, answer, why);
    CURLcode code = lib.curl_easy_perform(curl);
    lib.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    bool good = code == CURLE_OK && status == 200;
    if (code != CURLE_OK)
        fail_curl(r, code, why, e);
    else if (!good)
        fail_status(r, status, answer, e);
    *is_away = !good && status != 404 && status != 422 && code != CURLE_WRITE_ERROR;
    lib.curl_easy_cleanup(curl);
    text_fini(&address);
    return good;
}
