/* Requests to the registry, by libcurl. */
#include "base/http.h"
#include "ingest/schema/registry_server.h"
#include "ingest/schema/schema_json.h"

#include <sysexits.h>

bool registry_server_open(struct err *e)
{
    return schema_json_open(e) && http_load(e);
}

/* Reports an answer that is none: {"error_code": 40403, "message": "Schema 7 not found"}. */
static bool fail_status(const struct registry_server *r, int status, const struct text *answer, struct err *e)
{
    struct err ignored;
    json_t *tree = answer->len > 0 ? schema_json_parse(text_slice(answer), &ignored) : NULL;
    struct slice message = schema_json_text(schema_json_member(tree, "message"));
    if (status == 401 || status == 403)
        err_set(e, EX_NOPERM,
                "%s refuses the credentials (status %d): check registry.user, password and token", r->url,
                status);
    else if (message.len > 0)
        err_set(e, EX_UNAVAILABLE, "%s answers with status %d: %.*s", r->url, status,
                (int)(message.len < 200 ? message.len : 200), message.ptr);
    else
        err_set(e, EX_UNAVAILABLE, "%s answers with status %d: check that registry.url is a schema registry",
                r->url, status);
    schema_json_free(tree);
    return false;
}

bool registry_get(const struct registry_server *r, const char *path, const atomic_bool *stop,
                  struct text *answer, bool *is_away, struct err *e)
{
    struct http_answer got = {.body = *answer};
    const struct http_server server = {
        .url = r->url,
        .user = r->user,
        .password = r->password,
        .token = r->token,
        .cacert = r->cacert,
        .cacert_option = "registry.cacert",
        .large_advice = "",
        .tls_cert = r->tls_cert,
        .tls_key = r->tls_key,
        .connect_ms = r->timeout_ms < REGISTRY_CONNECT_MS ? r->timeout_ms : REGISTRY_CONNECT_MS,
        .timeout_ms = r->timeout_ms,
        .bytes_max = REGISTRY_ANSWER_BYTES_MAX,
        .stop = stop,
    };
    bool good = http_get(&server, path, &got, e);
    *answer = got.body;
    *is_away = got.status != 200 && got.status != 404 && got.status != 422;
    return good && (got.status == 200 || fail_status(r, got.status, answer, e));
}
