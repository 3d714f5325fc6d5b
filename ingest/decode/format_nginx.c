/* Variables of nginx. Source: nginx's "Alphabetical index of variables". */
#include "base/suggest.h"
#include "ingest/decode/format_item.h"

static const struct item_type variables[] = {
    {"remote_addr", ITEM_ADDRESS, "host", 0, NULL, 0},
    {"realip_remote_addr", ITEM_ADDRESS, "peer_addr", 0, NULL, 0},
    {"proxy_protocol_addr", ITEM_ADDRESS, "proxy_protocol_addr", 0, NULL, 0},
    {"server_addr", ITEM_ADDRESS, "server_addr", 0, NULL, 0},
    {"remote_port", ITEM_NUMBER, "remote_port", 0, NULL, 1000000},
    {"remote_user", ITEM_USER, "user", 0, NULL, 0},
    {"request", ITEM_REQUEST, "request", 0, NULL, 0},
    {"request_method", ITEM_WORD, "method", 1, NULL, 0},
    {"request_uri", ITEM_TARGET, "target", 1, NULL, 0},
    {"uri", ITEM_PATH, "path", 1, "uri", 0},
    {"document_uri", ITEM_PATH, "path", 1, "uri", 0},
    {"args", ITEM_PATH, "query", 0, NULL, 0},
    {"query_string", ITEM_PATH, "query", 0, NULL, 0},
    {"server_protocol", ITEM_WORD, "protocol", 1, NULL, 0},
    {"status", ITEM_STATUS, "status", 0, NULL, 0},
    {"body_bytes_sent", ITEM_BYTES, "bytes", 2, NULL, 0},
    {"bytes_sent", ITEM_BYTES, "bytes", 1, "bytes_sent", 0},
    {"request_length", ITEM_NUMBER, "bytes_received", 0, NULL, 1000000},
    {"request_time", ITEM_NUMBER, "duration", 0, NULL, 1000000},
    {"upstream_response_time", ITEM_SUM, "upstream_duration", 0, NULL, 0},
    {"upstream_connect_time", ITEM_SUM, "upstream_connect_duration", 0, NULL, 0},
    {"upstream_header_time", ITEM_SUM, "upstream_header_duration", 0, NULL, 0},
    {"upstream_first_byte_time", ITEM_SUM, "upstream_first_byte_duration", 0, NULL, 0},
    {"upstream_session_time", ITEM_SUM, "upstream_session_duration", 0, NULL, 0},
    {"upstream_queue_time", ITEM_SUM, "upstream_queue_duration", 0, NULL, 0},
    {"upstream_response_length", ITEM_SUM, "upstream_response_length", 0, NULL, 0},
    {"upstream_bytes_received", ITEM_SUM, "upstream_bytes_received", 0, NULL, 0},
    {"upstream_bytes_sent", ITEM_SUM, "upstream_bytes_sent", 0, NULL, 0},
    {"upstream_status", ITEM_LAST, "upstream_status", 0, NULL, 0},
    {"upstream_addr", ITEM_LAST, "upstream_addr", 0, NULL, 0},
    {"upstream_cache_status", ITEM_WORD, "upstream_cache_status", 0, NULL, 0},
    {"server_name", ITEM_ADDRESS, "vhost", 3, NULL, 0},
    {"host", ITEM_WORD, "vhost", 2, "header_host", 0},
    {"http_host", ITEM_PATH, "vhost", 1, "header_host", 0},
    {"server_port", ITEM_NUMBER, "port", 0, NULL, 1000000},
    {"http_referer", ITEM_TEXT, "referrer", 0, NULL, 0},
    {"http_user_agent", ITEM_TEXT, "agent", 0, NULL, 0},
    {"http_x_forwarded_for", ITEM_LIST, "x_forwarded_for", 0, NULL, 0},
    {"proxy_add_x_forwarded_for", ITEM_LIST, "x_forwarded_for", 0, NULL, 0},
    {"gzip_ratio", ITEM_NUMBER, "gzip_ratio", 0, NULL, 1000000},
    {"connection", ITEM_NUMBER, "connection", 0, NULL, 1000000},
    {"connection_requests", ITEM_NUMBER, "connection_requests", 0, NULL, 1000000},
    {"connection_time", ITEM_NUMBER, "connection_duration", 0, NULL, 1000000},
    {"pid", ITEM_NUMBER, "pid", 0, NULL, 1000000},
    {"pipe", ITEM_WORD, "pipe", 0, NULL, 0},
    {"scheme", ITEM_ADDRESS, "scheme", 0, NULL, 0},
    {"https", ITEM_WORD, "https", 0, NULL, 0},
    {"hostname", ITEM_ADDRESS, "hostname", 0, NULL, 0},
    {"request_id", ITEM_ADDRESS, "request_id", 0, NULL, 0},
    {"request_completion", ITEM_WORD, "request_completion", 0, NULL, 0},
    {"ssl_protocol", ITEM_WORD, "ssl_protocol", 0, NULL, 0},
    {"ssl_cipher", ITEM_WORD, "ssl_cipher", 0, NULL, 0},
    {"proxy_upstream_name", ITEM_ADDRESS, "proxy_upstream_name", 0, NULL, 0}, /* these of ingress-nginx */
    {"proxy_alternative_upstream_name", ITEM_ADDRESS, "proxy_alternative_upstream_name", 0, NULL, 0},
    {"req_id", ITEM_ADDRESS, "req_id", 0, NULL, 0},
    {"namespace", ITEM_ADDRESS, "namespace", 0, NULL, 0},
    {"ingress_name", ITEM_ADDRESS, "ingress_name", 0, NULL, 0},
    {"service_name", ITEM_ADDRESS, "service_name", 0, NULL, 0},
    {"service_port", ITEM_ADDRESS, "service_port", 0, NULL, 0},
    {"http2", ITEM_WORD, "http2", 0, NULL, 0},
    {"http3", ITEM_WORD, "http3", 0, NULL, 0},
};

static const struct {
    const char *name;
    enum format_op_kind kind;
    int scale;
} times[] = {
    {"time_local", OP_TIME_LOCAL, 0}, {"time_iso8601", OP_TIME_ISO, 0}, {"msec", OP_TIME_EPOCH, 1000}};

/* Variables of any name behind a prefix; the field has the name behind another one. */
static const struct {
    const char *prefix, *field;
} families[] = {{"http_", ""}, {"sent_http_", "response_"}, {"", ""}};

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Takes $name or ${name} at `p`; returns its length, 0: it is none. */
static size_t take_variable(const char *p, const char *end, struct slice *name)
{
    bool braces = end - p >= 2 && p[1] == '{';
    const char *from = p + 1 + braces, *q = from;
    while (q < end && is_name_byte(*q))
        q++;
    *name = slice_of(from, (size_t)(q - from));
    if (q == from || (braces && (q == end || *q != '}')))
        return 0;
    return (size_t)(q - p) + braces;
}

static bool add_variable(struct items *items, const struct format_source *s, size_t at, size_t len,
                         struct slice name, struct err *e)
{
    static const struct item_type time = {"time", ITEM_TIME, NULL, 0, NULL, 0};
    static const struct item_type text = {"other", ITEM_TEXT, NULL, 0, NULL, 0};
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        if (slice_is(name, variables[i].name))
            return items_add(items, s, at, at + len, &variables[i], e) != NULL;
    }
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (!slice_is(name, times[i].name))
            continue;
        struct item *it = items_add(items, s, at, at + len, &time, e);
        if (it == NULL)
            return false;
        it->time = times[i].kind;
        it->scale = times[i].scale;
        return true;
    }
    struct item *it = items_add(items, s, at, at + len, &text, e);
    size_t family = 0, skip;
    while (!slice_begins(name, slice_text(families[family].prefix)))
        family++;
    skip = strlen(families[family].prefix);
    return it != NULL &&
           item_set_name(it, families[family].field, slice_of(name.ptr + skip, name.len - skip), e);
}

bool format_nginx_split(const struct format_source *s, struct items *items, struct err *e)
{
    const char *end = s->bytes + s->len;
    items->count = 0;
    items->escape = s->escape;
    for (size_t i = 0; i < s->len;) {
        struct slice name;
        const char *p = s->bytes + i;
        size_t len = 1;
        if (*p == '$' && (len = take_variable(p, end, &name)) == 0)
            return err_set(e, EX_CONFIG, "found $ in column %u, expected a variable such as $status",
                           s->columns[i]);
        if (*p == '$' ? !add_variable(items, s, i, len, name, e) : !items_add_literal(items, s, i, i + 1, e))
            return false;
        i += len;
    }
    return true;
}
