/* Directives of mod_log_config, mod_logio and mod_ssl. Source: the documentation of mod_log_config,
 * "Custom Log Formats". */
#include "base/suggest.h"
#include "ingest/decode/format_item.h"

/* %h and so on; names of more than one byte have an argument: {us}T, {c}a. */
static const struct item_type directives[] = {
    {"h", ITEM_ADDRESS, "host", 2, NULL, 0},
    {"a", ITEM_ADDRESS, "host", 1, "client_addr", 0},
    {"{c}a", ITEM_ADDRESS, "peer_addr", 0, NULL, 0},
    {"A", ITEM_ADDRESS, "server_addr", 0, NULL, 0},
    {"l", ITEM_WORD, "logname", 0, NULL, 0},
    {"u", ITEM_USER, "user", 0, NULL, 0},
    {"r", ITEM_REQUEST, "request", 0, NULL, 0},
    {"s", ITEM_STATUS, "status", 1, "original_status", 0},
    {"<s", ITEM_STATUS, "status", 1, "original_status", 0},
    {">s", ITEM_STATUS, "status", 2, NULL, 0},
    {"b", ITEM_BYTES, "bytes", 2, NULL, 0},
    {"B", ITEM_BYTES, "bytes", 2, NULL, 0},
    {"O", ITEM_BYTES, "bytes", 1, "bytes_sent", 0},
    {"I", ITEM_NUMBER, "bytes_received", 0, NULL, 1000000},
    {"S", ITEM_NUMBER, "bytes_total", 0, NULL, 1000000},
    {"D", ITEM_NUMBER, "duration", 3, NULL, 1},
    {"{us}T", ITEM_NUMBER, "duration", 3, NULL, 1},
    {"{ms}T", ITEM_NUMBER, "duration", 2, NULL, 1000},
    {"{s}T", ITEM_NUMBER, "duration", 1, NULL, 1000000},
    {"T", ITEM_NUMBER, "duration", 1, NULL, 1000000},
    {"^FB", ITEM_NUMBER, "first_byte_duration", 0, NULL, 1},
    {"v", ITEM_ADDRESS, "vhost", 3, NULL, 0},
    {"V", ITEM_ADDRESS, "vhost", 2, "server_name", 0},
    {"p", ITEM_NUMBER, "port", 3, NULL, 1000000},
    {"{canonical}p", ITEM_NUMBER, "port", 3, NULL, 1000000},
    {"{local}p", ITEM_NUMBER, "port", 2, "local_port", 1000000},
    {"{remote}p", ITEM_NUMBER, "remote_port", 0, NULL, 1000000},
    {"m", ITEM_WORD, "method", 1, NULL, 0},
    {"U", ITEM_PATH, "path", 1, "url_path", 0},
    {"q", ITEM_PATH, "query", 0, NULL, 0},
    {"H", ITEM_WORD, "protocol", 1, NULL, 0},
    {"f", ITEM_TEXT, "filename", 0, NULL, 0},
    {"k", ITEM_NUMBER, "keepalive_requests", 0, NULL, 1000000},
    {"L", ITEM_WORD, "log_id", 0, NULL, 0},
    {"P", ITEM_NUMBER, "pid", 0, NULL, 1000000},
    {"{pid}P", ITEM_NUMBER, "pid", 0, NULL, 1000000},
    {"{tid}P", ITEM_NUMBER, "tid", 0, NULL, 1000000},
    {"{hextid}P", ITEM_WORD, "tid", 0, NULL, 0},
    {"R", ITEM_TEXT, "handler", 0, NULL, 0},
    {"X", ITEM_WORD, "connection_status", 0, NULL, 0},
    {"{Referer}i", ITEM_TEXT, "referrer", 0, NULL, 0},
    {"{User-Agent}i", ITEM_TEXT, "agent", 0, NULL, 0},
    {"{Host}i", ITEM_PATH, "vhost", 1, "header_host", 0},
    {"{SSL_PROTOCOL}x", ITEM_WORD, "ssl_ssl_protocol", 0, NULL,
     0}, /* without quotes in httpd's ssl_request_log */
    {"{SSL_CIPHER}x", ITEM_WORD, "ssl_ssl_cipher", 0, NULL, 0},
    {"{X-Forwarded-For}i", ITEM_LIST, "x_forwarded_for", 0, NULL, 0},
};

/* %{NAME}i and so on: the name becomes the field's, behind a prefix. */
static const struct {
    const char *directive, *prefix;
} named[] = {{"i", ""},     {"o", "response_"}, {"C", "cookie_"},    {"e", "env_"},          {"n", "note_"},
             {"x", "ssl_"}, {"c", "ssl_"},      {"^ti", "trailer_"}, {"^to", "trailer_out_"}};

/* A directive such as %!200,304>{X-Test}i. */
struct directive {
    struct slice whole;
    struct slice argument; /* ptr NULL: none */
    struct slice letters;  /* "i", "^ti" */
    char which;            /* '<', '>', or '\0' */
};

static size_t take_directive(const char *p, const char *end, struct directive *d)
{
    const char *from = p++;
    *d = (struct directive){.which = '\0'};
    for (; p < end && (strchr("!,<>", *p) != NULL || (*p >= '0' && *p <= '9') || *p == '{'); p++) {
        if (*p == '<' || *p == '>')
            d->which = *p;
        if (*p != '{')
            continue;
        const char *close = memchr(p, '}', (size_t)(end - p));
        if (close == NULL)
            return 0;
        d->argument = slice_of(p + 1, (size_t)(close - p - 1));
        p = close;
    }
    size_t letters = p < end && *p == '^' ? 3 : 1;
    if ((size_t)(end - p) < letters)
        return 0;
    d->letters = slice_of(p, letters);
    p += letters;
    d->whole = slice_of(from, (size_t)(p - from));
    return d->whole.len;
}

static bool has_argument(const struct directive *d)
{
    return d->argument.ptr != NULL;
}

/* Is the row of the table the directive's? Names of headers are the same in any case. */
static bool is_named(const struct directive *d, const char *name)
{
    char which[2] = {d->which, '\0'};
    struct slice left = slice_text(name), argument;
    if (which[0] != '\0' && slice_begins(left, slice_text(which)))
        left = slice_of(left.ptr + 1, left.len - 1);
    else if (which[0] != '\0' && slice_is(d->letters, "s"))
        return false;
    if (!has_argument(d))
        return slice_equal(d->letters, left);
    const char *close = memchr(left.ptr, '}', left.len);
    if (close == NULL)
        return false;
    argument = slice_of(left.ptr + 1, (size_t)(close - left.ptr) - 1);
    if (!slice_is(d->letters, close + 1) || argument.len != d->argument.len)
        return false;
    return slice_is(d->letters, "i") ? strncasecmp(argument.ptr, d->argument.ptr, argument.len) == 0
                                     : slice_equal(argument, d->argument);
}

static const struct item_type *find_type(const struct directive *d)
{
    for (size_t i = 0; i < COUNT_OF(directives); i++) {
        if (is_named(d, directives[i].name))
            return &directives[i];
    }
    return NULL;
}

static bool set_time(struct item *it, const struct directive *d, struct err *e)
{
    static const char *const moments[] = {"begin:", "end:"};
    struct slice spec = d->argument;
    it->time = OP_TIME_CLF;
    for (size_t i = 0; i < COUNT_OF(moments); i++) {
        struct slice moment = slice_text(moments[i]);
        if (spec.ptr != NULL && slice_begins(spec, moment))
            spec = slice_of(spec.ptr + moment.len, spec.len - moment.len);
    }
    return spec.len == 0 || item_set_time(it, spec, e);
}

static bool add_directive(struct items *items, const struct format_source *s, size_t at,
                          const struct directive *d, struct err *e)
{
    static const struct item_type time = {"t", ITEM_TIME, NULL, 0, NULL, 0};
    static const struct item_type text = {"i", ITEM_TEXT, NULL, 0, NULL, 0};
    char quote[SUGGEST_QUOTE_BYTES];
    const struct item_type *type = find_type(d);
    size_t end = at + d->whole.len;
    if (type != NULL)
        return items_add(items, s, at, end, type, e) != NULL;
    if (slice_is(d->letters, "t")) {
        struct item *it = items_add(items, s, at, end, &time, e);
        return it != NULL && set_time(it, d, e);
    }
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (!has_argument(d) || !slice_is(d->letters, named[i].directive))
            continue;
        struct item *it = items_add(items, s, at, end, &text, e);
        return it != NULL && item_set_name(it, named[i].prefix, d->argument, e);
    }
    return err_set(e, EX_CONFIG, "found %s in column %u, expected a directive of Apache's LogFormat",
                   suggest_quote(d->whole, quote), s->columns[at]);
}

bool format_apache_split(const struct format_source *s, struct items *items, struct err *e)
{
    const char *end = s->bytes + s->len;
    items->count = 0;
    items->escape = s->escape;
    for (size_t i = 0; i < s->len;) {
        struct directive d;
        const char *p = s->bytes + i;
        size_t len = 1;
        if (*p == '%' && end - p >= 2 && p[1] == '%') {
            if (!items_add_literal(items, s, i + 1, i + 2, e))
                return false;
            i += 2;
            continue;
        }
        if (*p == '%' && (len = take_directive(p, end, &d)) == 0)
            return err_set(e, EX_CONFIG,
                           "found %% in column %u, expected a directive such as %%h or %%{Host}i",
                           s->columns[i]);
        if (*p == '%' ? !add_directive(items, s, i, &d, e) : !items_add_literal(items, s, i, i + 1, e))
            return false;
        i += len;
    }
    return true;
}
