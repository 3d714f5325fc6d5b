#include "ingest/schema/proto_lex.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Skips white space and comments. */
static void skip_space(struct proto_lex *l)
{
    while (l->p < l->end) {
        size_t left = (size_t)(l->end - l->p);
        if (memchr(" \t\r\n\v\f", *l->p, 6) != NULL) {
            l->p++;
        } else if (left >= 2 && memcmp(l->p, "//", 2) == 0) {
            const char *feed = memchr(l->p, '\n', left);
            l->p = feed != NULL ? feed : l->end;
        } else if (left >= 2 && memcmp(l->p, "/*", 2) == 0) {
            const char *stop = memmem(l->p + 2, left - 2, "*/", 2);
            l->p = stop != NULL ? stop + 2 : l->end;
        } else {
            return;
        }
    }
}

/* The end of a string; of one without a closing quote, that of the text. */
static const char *string_end(const struct proto_lex *l)
{
    const char *p = l->p + 1;
    for (; p < l->end && *p != *l->p; p++)
        p += *p == '\\' && p + 1 < l->end;
    return p < l->end ? p + 1 : p;
}

void proto_lex_next(struct proto_lex *l)
{
    skip_space(l);
    const char *from = l->p, *p = from;
    if (from == l->end) {
        l->token = (struct proto_token){PROTO_END, slice_of("", 0)};
        return;
    }
    enum proto_token_kind kind = PROTO_SIGN;
    bool is_name = is_letter(*p) || (*p == '.' && p + 1 < l->end && is_letter(p[1]));
    if (is_name || is_digit(*p)) {
        kind = is_name ? PROTO_WORD : PROTO_NUMBER;
        while (p < l->end && (is_letter(*p) || is_digit(*p) || *p == '.'))
            p++;
    } else if (*p == '"' || *p == '\'') {
        kind = PROTO_STRING;
        p = string_end(l);
    } else {
        p++;
    }
    l->p = p;
    l->token = (struct proto_token){kind, slice_of(from, (size_t)(p - from))};
}

void proto_lex_init(struct proto_lex *l, struct slice text)
{
    *l = (struct proto_lex){.p = text.ptr, .end = slice_end(text)};
    proto_lex_next(l);
}
