#include "cli/top/client.h"

#include "base/http.h"
#include "base/mem.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"

#include <stdlib.h>
#include <sysexits.h>

#define DEPTH_MAX 8 /* depth of JSON in an error answer */

bool client_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static void write_path(const char *path, const struct parameter *parameters, size_t count, struct text *out)
{
    text_puts(out, path);
    for (size_t i = 0; i < count; i++) {
        text_putc(out, i == 0 ? '?' : '&');
        text_percent(out, parameters[i].name, NULL);
        text_putc(out, '=');
        text_percent(out, parameters[i].value, NULL);
    }
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

static int code_of(int status)
{
    return status == 400   ? EX_USAGE
           : status == 404 ? EX_NOINPUT
           : status == 401 ? EX_NOPERM
           : status == 403 ? EX_NOPERM
           : status == 422 ? EX_UNAVAILABLE
           : status == 503 ? EX_TEMPFAIL
                           : EX_IOERR;
}

static bool judge(const char *url, const struct http_answer *answer, struct err *e)
{
    struct text what = {0};
    bool good = answer->status == 200 && !answer->is_page;
    if (!good && read_error(&answer->body, &what))
        err_set(e, code_of(answer->status), "%s", what.ptr);
    else if (!good)
        err_set(e, EX_PROTOCOL, "%s answers, but is not tallyd (status %d): check the address", url,
                answer->status);
    text_fini(&what);
    return good;
}

bool client_get(const struct client *c, const char *path, const struct parameter *parameters, size_t count,
                int64_t timeout_ms, struct text *out, struct err *e)
{
    struct text asked = {0};
    struct http_answer answer = {0};
    const struct http_server server = {
        .url = c->url,
        .token = getenv("TALLYD_TOKEN"), /* an option could be read by everybody on the machine */
        .cacert = c->cacert,
        .cacert_option = "--cacert FILE",
        .large_advice = "; ask for less",
        .connect_ms = CLIENT_CONNECT_MS,
        .timeout_ms = timeout_ms,
        .bytes_max = CLIENT_ANSWER_BYTES_MAX,
    };
    write_path(path, parameters, count, &asked);
    bool good = http_get(&server, asked.ptr, &answer, e) && judge(c->url, &answer, e);
    if (good)
        text_add(out, answer.body.ptr, answer.body.len);
    text_fini(&asked);
    text_fini(&answer.body);
    return good;
}
