#include "cli/top/client.h"

#include "base/library.h"
#include "base/mem.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"

#define CURL_DISABLE_TYPECHECK /* its macros take functions for names */
#include <curl/curl.h>
#include <stdlib.h>

#define DEPTH_MAX 8 /* depth of JSON in an error answer */

/* clang-format off */
#define FUNCTIONS(X) \
    X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform) X(curl_easy_getinfo) \
    X(curl_easy_strerror) X(curl_easy_cleanup)
/* clang-format on */

LIBRARY(libcurl, FUNCTIONS, "libcurl.so.4", "libcurl4");

bool client_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static void write_address(const char *url, const char *path, const struct parameter *parameters, size_t count,
                          struct text *out)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    text_add(out, url, len);
    text_puts(out, path);
    for (size_t i = 0; i < count; i++) {
        text_putc(out, i == 0 ? '?' : '&');
        text_percent(out, parameters[i].name, NULL);
        text_putc(out, '=');
        text_percent(out, parameters[i].value, NULL);
    }
}

/* Append received bytes. Returning fewer than came makes curl give up. */
static size_t take(char *bytes, size_t one, size_t count, void *context)
{
    struct text *answer = context;
    size_t len = one * count;
    if (len > CLIENT_ANSWER_BYTES_MAX - answer->len)
        return 0;
    text_add(answer, bytes, len);
    return len;
}

/* Read the text of {"error":"…"}. */
static bool read_error(const struct text *answer, struct text *what)
{
    struct json_found found = {0};
    struct json_paths *paths = json_paths_new(DEPTH_MAX);
    size_t path = json_paths_add(paths, slice_text("/error"));
    const char *at;
    bool good = answer->len > 0 && json_read(paths, text_slice(answer), &found, &at) == JSON_OK;
    const struct json_value *error = good ? json_found_get(&found, path) : NULL;
    good = error != NULL && json_type_is_string(error->type);
    if (good) {
        char *plain = xmalloc(error->text.len);
        text_add(what, plain, json_unescape(error->text, plain)); /* err_set() makes it safe */
        free(plain);
    }
    json_paths_free(paths);
    return good;
}

static int code_of(long status)
{
    return status == 400   ? EX_USAGE
           : status == 404 ? EX_NOINPUT
           : status == 401 ? EX_NOPERM
           : status == 403 ? EX_NOPERM
           : status == 422 ? EX_UNAVAILABLE
           : status == 503 ? EX_TEMPFAIL
                           : EX_IOERR;
}

static bool judge(const char *url, long status, const char *type, struct text *answer, struct err *e)
{
    struct text what = {0};
    bool good = status == 200 && type != NULL && strncmp(type, "text/html", 9) != 0;
    if (!good && read_error(answer, &what))
        err_set(e, code_of(status), "%s", what.ptr);
    else if (!good)
        err_set(e, EX_PROTOCOL, "%s answers, but is not tallyd (status %ld): check the address", url, status);
    text_fini(&what);
    return good;
}

static void set_options(CURL *curl, const char *address, const char *cacert, long timeout_ms,
                        struct text *answer, char *why)
{
    lib.curl_easy_setopt(curl, CURLOPT_URL, address);
    lib.curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    lib.curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (cacert != NULL) { /* trust only `cacert`: Debian's libcurl has its defaults in both options */
        lib.curl_easy_setopt(curl, CURLOPT_CAINFO, cacert);
        lib.curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    lib.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib.curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CLIENT_CONNECT_MS);
    lib.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    lib.curl_easy_setopt(curl, CURLOPT_USERAGENT, "tallyd/" TALLYD_VERSION);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    lib.curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    lib.curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
}

/* Add the token of the environment: an option could be read by everybody on the machine. */
static void add_token(CURL *curl)
{
    const char *token = getenv("TALLYD_TOKEN");
    if (token == NULL)
        return;
    lib.curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    lib.curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, token);
}

static bool no_address(const char *url, struct err *e)
{
    return err_set(e, EX_USAGE, "found %s, expected an address: http://HOST:PORT", url);
}

/* Report why there is no answer, or that it is too large. */
static bool fail(CURLcode code, const struct client *c, const char *why, struct err *e)
{
    if (why[0] == '\0')
        why = lib.curl_easy_strerror(code);
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, EX_UNAVAILABLE, "%s answers with more than %zu MiB; ask for less", c->url,
                       CLIENT_ANSWER_BYTES_MAX >> 20);
    if (code == CURLE_URL_MALFORMAT)
        return no_address(c->url, e);
    if (code == CURLE_SSL_CACERT_BADFILE && c->cacert != NULL)
        return err_set(e, EX_NOINPUT, "cannot read certificates from %s (--cacert)", c->cacert);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return err_set(e, EX_UNAVAILABLE,
                       "%s is not trusted: %s; --cacert FILE names who has signed its certificate", c->url,
                       why);
    return err_set(e, EX_UNAVAILABLE, "%s does not answer: %s", c->url, why);
}

static bool perform(const struct client *c, const char *address, long timeout_ms, struct text *answer,
                    struct err *e)
{
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    char *type = NULL;
    if (!library_load(&libcurl, e))
        return false;
    CURL *curl = lib.curl_easy_init();
    if (curl == NULL)
        return err_set(e, EX_OSERR, "libcurl cannot be used");
    set_options(curl, address, c->cacert, timeout_ms, answer, why);
    add_token(curl);
    CURLcode code = lib.curl_easy_perform(curl);
    lib.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    lib.curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    bool good = code == CURLE_OK ? judge(c->url, status, type, answer, e) : fail(code, c, why, e);
    lib.curl_easy_cleanup(curl);
    return good;
}

bool client_get(const struct client *c, const char *path, const struct parameter *parameters, size_t count,
                long timeout_ms, struct text *out, struct err *e)
{
    struct text address = {0}, answer = {0};
    const char *host = strstr(c->url, "://") + 3;
    if (*host == '\0' || *host == '/')
        return no_address(c->url, e);
    write_address(c->url, path, parameters, count, &address);
    bool good = perform(c, address.ptr, timeout_ms, &answer, e);
    if (good)
        text_add(out, answer.ptr, answer.len);
    text_fini(&address);
    text_fini(&answer);
    return good;
}
