#include "base/suggest.h"
#include "ingest/decode/format_item.h"

#include <strings.h>

#define COMMON_LOG   "%h %l %u %t \"%r\" %>s %b"
#define COMBINED_LOG COMMON_LOG " \"%{Referer}i\" \"%{User-Agent}i\""
#define NGINX_LOG                                                                      \
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent " \
    "\"$http_referer\" \"$http_user_agent\""

/* The names in Apache's and Debian's configurations, and in nginx's own package (main). */
static const struct {
    enum format_server server;
    const char *name, *format;
} shipped[] = {
    {FORMAT_APACHE, "common", COMMON_LOG},
    {FORMAT_APACHE, "combined", COMBINED_LOG},
    {FORMAT_APACHE, "combinedio", COMBINED_LOG " %I %O"},
    {FORMAT_APACHE, "vhost_common", "%v " COMMON_LOG},
    {FORMAT_APACHE, "vhost_combined", "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\""},
    {FORMAT_NGINX, "combined", NGINX_LOG},
    {FORMAT_NGINX, "main", NGINX_LOG " \"$http_x_forwarded_for\""},
};

static const char *const shipped_names[][6] = {
    [FORMAT_APACHE] = {"common", "combined", "combinedio", "vhost_common", "vhost_combined", NULL},
    [FORMAT_NGINX] = {"combined", "main", NULL},
};

const char *format_server_name(enum format_server server)
{
    return server == FORMAT_APACHE ? "apache" : "nginx";
}

const char *format_shipped(enum format_server server, struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(shipped); i++) {
        if (shipped[i].server == server && slice_is(name, shipped[i].name))
            return shipped[i].format;
    }
    return NULL;
}

/* The text being read. */
struct input {
    const char *start, *p, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_spaces(struct input *in)
{
    while (in->p < in->end && is_space(*in->p))
        in->p++;
}

static struct slice take_word(struct input *in)
{
    const char *from = in->p;
    while (in->p < in->end && !is_space(*in->p) && *in->p != '\'' && *in->p != '"')
        in->p++;
    struct slice word = slice_of(from, (size_t)(in->p - from));
    skip_spaces(in);
    return word;
}

static bool begins_with_word(const struct input *in, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(in->end - in->p) > len && strncasecmp(in->p, word, len) == 0 && is_space(in->p[len]);
}

/* Pre: there is room, since a source is never longer than its text. */
static void add_byte(struct format_source *s, char byte, size_t column)
{
    ASSERT(s->len < sizeof s->bytes);
    s->bytes[s->len] = byte;
    s->columns[s->len++] = (uint16_t)column;
}

/* Adds the byte at *p, or the byte that is escaped there: both servers have \" \' \\ and \t. */
static void add_escaped(struct format_source *s, struct input *in)
{
    size_t column = (size_t)(in->p - in->start) + 1;
    char c = *in->p++;
    if (c == '\\' && in->p < in->end && strchr("\"'\\t", *in->p) != NULL) {
        c = *in->p++;
        c = c == 't' ? '\t' : c;
    }
    add_byte(s, c, column);
}

static bool add_quoted(struct format_source *s, struct input *in, struct err *e)
{
    const char *from = in->p;
    char quote = *in->p++;
    while (in->p < in->end && *in->p != quote)
        add_escaped(s, in);
    if (in->p == in->end)
        return err_set(e, EX_CONFIG, "found %c in column %zu, expected another that closes it", quote,
                       (size_t)(from - in->start) + 1);
    in->p++;
    skip_spaces(in);
    return true;
}

/* Is the rest one text in double quotes, in which all others are escaped? */
static bool is_in_quotes(const struct input *in)
{
    if (in->p == in->end || *in->p != '"')
        return false;
    const char *p = in->p + 1;
    while (p < in->end && *p != '"')
        p += *p == '\\' && in->end - p > 1 ? 2 : 1;
    return p == in->end - 1;
}

static void add_rest(struct format_source *s, struct input *in)
{
    while (in->p < in->end)
        add_escaped(s, in);
}

static bool refuse_rest(const struct input *in, const char *expected, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    return err_set(e, EX_CONFIG, "found %s in column %zu, expected %s",
                   suggest_quote(slice_of(in->p, (size_t)(in->end - in->p)), quote),
                   (size_t)(in->p - in->start) + 1, expected);
}

static bool read_apache(struct format_source *s, struct input *in, struct err *e)
{
    if (!begins_with_word(in, "LogFormat")) {
        if (is_in_quotes(in))
            return add_quoted(s, in, e);
        add_rest(s, in);
        return true;
    }
    take_word(in);
    if (in->p == in->end || (*in->p != '"' && *in->p != '\''))
        return refuse_rest(in, "the format in quotes", e);
    if (!add_quoted(s, in, e))
        return false;
    take_word(in); /* its name */
    return in->p == in->end || refuse_rest(in, "nothing behind the name of the format", e);
}

static bool read_escape(struct format_source *s, struct input *in, struct err *e)
{
    static const char *const names[] = {
        [ESCAPE_LOG] = "escape=default", [ESCAPE_JSON] = "escape=json", [ESCAPE_NONE] = "escape=none", NULL};
    struct input ahead = *in;
    struct slice word = take_word(&ahead);
    if (!slice_begins(word, slice_text("escape=")))
        return true;
    int i = slice_find(word, names);
    if (i < 0)
        return refuse_rest(in, "escape=default, escape=json or escape=none", e);
    s->escape = (enum format_escape)i;
    *in = ahead;
    return true;
}

static bool read_nginx(struct format_source *s, struct input *in, struct err *e)
{
    bool is_directive = begins_with_word(in, "log_format");
    if (is_directive) {
        take_word(in);
        take_word(in); /* its name */
    }
    if (!read_escape(s, in, e))
        return false;
    bool is_quoted =
        in->p < in->end && (*in->p == '\'' || is_in_quotes(in) || (is_directive && *in->p == '"'));
    if (!is_quoted) {
        add_rest(s, in);
        return true;
    }
    while (in->p < in->end && (*in->p == '\'' || *in->p == '"')) {
        if (!add_quoted(s, in, e))
            return false;
    }
    in->p += in->p < in->end && *in->p == ';';
    return in->p == in->end || refuse_rest(in, "nothing behind the last quote", e);
}

/* The format of one name; false: there is no format of that name. */
static bool read_shipped(struct format_source *s, enum format_server server, struct slice name, struct err *e)
{
    const char *format = format_shipped(server, name);
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    for (size_t i = 0; format != NULL && format[i] != '\0'; i++)
        add_byte(s, format[i], i + 1);
    return format != NULL ||
           err_set(e, EX_CONFIG, "found %s, expected a format as %s has it, or its name%s",
                   suggest_quote(name, quote), server == FORMAT_APACHE ? "LogFormat" : "log_format",
                   suggest_hint(name, shipped_names[server], hint));
}

bool format_source_read(struct format_source *s, enum format_server server, struct slice text, struct err *e)
{
    struct input in = {text.ptr, text.ptr, slice_end(text)};
    s->len = 0;
    s->escape = ESCAPE_LOG;
    if (text.len >= FORMAT_TEXT_MAX)
        return err_set(e, EX_CONFIG, "found a format of %zu bytes, expected at most %d", text.len,
                       FORMAT_TEXT_MAX - 1);
    if (memchr(text.len > 0 ? text.ptr : "", '\0', text.len) != NULL)
        return err_set(e, EX_CONFIG, "found a NUL byte, expected a format of one line");
    skip_spaces(&in);
    while (in.end > in.p && is_space(in.end[-1]))
        in.end--;
    struct slice whole = slice_of(in.p, (size_t)(in.end - in.p));
    if (memchr(whole.len > 0 ? whole.ptr : "", server == FORMAT_APACHE ? '%' : '$', whole.len) == NULL)
        return read_shipped(s, server, whole, e);
    return server == FORMAT_APACHE ? read_apache(s, &in, e) : read_nginx(s, &in, e);
}
