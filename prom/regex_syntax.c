#include "prom/regex_syntax.h"

#include "base/suggest.h"

#include <ctype.h>

/* Letters and digits that may follow a backslash: RE2's, outside of a class. */
#define ESCAPES "0aAbBdDfnpPrsStvwWxzC"
#define FLAGS   "imsU-"

/* Reading a pattern from left to right. */
struct walk {
    struct slice pattern;
    size_t at;
    struct regex_shape *shape;
    struct err *e;
};

/* The byte `ahead` of the present one; 0 behind the end. */
static char peek(const struct walk *w, size_t ahead)
{
    return w->pattern.len - w->at > ahead ? w->pattern.ptr[w->at + ahead] : '\0';
}

static bool refuse(const struct walk *w, const char *what)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    return err_set(w->e, EX_PROTOCOL,
                   "found %s, expected a regular expression of RE2, as Prometheus has it: at byte %zu, %s",
                   suggest_quote(w->pattern, quoted), w->at + 1, what);
}

static bool skip_escape(struct walk *w)
{
    char c = peek(w, 1);
    if (c == 'Q') { /* literal text up to \E or the end */
        const char *from = w->pattern.ptr + w->at;
        const char *end = memmem(from, w->pattern.len - w->at, "\\E", 2);
        w->at = end != NULL ? (size_t)(end - w->pattern.ptr) + 2 : w->pattern.len;
        return true;
    }
    if (isdigit((unsigned char)c) && c != '0')
        return refuse(w, "a backreference");
    if (isalnum((unsigned char)c) && strchr(ESCAPES, c) == NULL)
        return refuse(w, "an escape that RE2 lacks");
    const char *brace = NULL;
    if (c != '\0' && strchr("xpP", c) != NULL && peek(w, 2) == '{')
        brace = memchr(w->pattern.ptr + w->at, '}', w->pattern.len - w->at);
    if (brace != NULL)
        w->at = (size_t)(brace - w->pattern.ptr) + 1;
    else
        w->at += w->pattern.len - w->at > 1 ? 2 : 1;
    return true;
}

static bool skip_class(struct walk *w)
{
    size_t from = w->at++;
    if (peek(w, 0) == '^')
        w->at++;
    if (peek(w, 0) == ']') /* the first one is a member */
        w->at++;
    while (w->at < w->pattern.len && peek(w, 0) != ']') {
        const char *rest = w->pattern.ptr + w->at + 2, *end = NULL;
        if (peek(w, 0) == '[' && peek(w, 1) == ':')
            end = memmem(rest, w->pattern.len - w->at - 2, ":]", 2);
        if (end != NULL)
            w->at = (size_t)(end - w->pattern.ptr) + 2;
        else if (peek(w, 0) != '\\')
            w->at++;
        else if (!skip_escape(w))
            return false;
    }
    w->at += w->at < w->pattern.len;
    if (w->at - from > w->shape->class_bytes)
        w->shape->class_bytes = w->at - from;
    return true;
}

/* Takes `(`, and what says its kind. */
static bool take_group(struct walk *w)
{
    size_t len = 2;
    if (peek(w, 1) == '*')
        return refuse(w, "a verb");
    if (peek(w, 1) != '?') {
        w->at++;
        return true;
    }
    bool is_named = (peek(w, 2) == 'P' && peek(w, 3) == '<') ||
                    (peek(w, 2) == '<' && peek(w, 3) != '=' && peek(w, 3) != '!');
    while (!is_named && peek(w, len) != '\0' && strchr(FLAGS, peek(w, len)) != NULL)
        len++;
    if (!is_named && peek(w, len) != ':' && peek(w, len) != ')')
        return refuse(w, "a group that RE2 lacks (look-around, atomic, a condition or recursion)");
    w->at += len;
    return true;
}

/* Reads digits from `ahead` on. A number that is too great is one above REGEX_REPEAT_MAX. */
static size_t read_number(const struct walk *w, size_t ahead, unsigned *number)
{
    *number = 0;
    for (; isdigit((unsigned char)peek(w, ahead)); ahead++) {
        *number = *number * 10 + (unsigned)(peek(w, ahead) - '0');
        *number = *number > REGEX_REPEAT_MAX ? REGEX_REPEAT_MAX + 1 : *number;
    }
    return ahead;
}

/* Length of the quantifier at the present byte, without the `?` or `+` that may follow; 0: there is none. */
static size_t quantifier_length(const struct walk *w, bool *is_too_many)
{
    unsigned least, most;
    *is_too_many = false;
    if (peek(w, 0) != '\0' && strchr("*+?", peek(w, 0)) != NULL)
        return 1;
    if (peek(w, 0) != '{')
        return 0;
    size_t end = read_number(w, 1, &least);
    if (end == 1)
        return 0;
    most = least;
    if (peek(w, end) == ',')
        end = read_number(w, end + 1, &most);
    *is_too_many = least > REGEX_REPEAT_MAX || most > REGEX_REPEAT_MAX;
    return peek(w, end) == '}' ? end + 1 : 0;
}

/* Takes one element, or one quantifier. */
static bool take(struct walk *w)
{
    bool is_too_many;
    size_t len = quantifier_length(w, &is_too_many);
    if (len > 0 && is_too_many)
        return refuse(w, "more than 1000 repeats");
    if (len > 0 && peek(w, len) == '+')
        return refuse(w, "a possessive quantifier");
    if (len > 0) {
        w->at += len + (peek(w, len) == '?');
        return true;
    }
    switch (peek(w, 0)) {
    case '\\':
        return skip_escape(w);
    case '[':
        return skip_class(w);
    case '(':
        return take_group(w);
    default:
        w->at++;
        return true;
    }
}

bool regex_syntax_check(struct slice pattern, struct regex_shape *shape, struct err *e)
{
    struct walk w = {pattern, 0, shape, e};
    *shape = (struct regex_shape){0};
    while (w.at < pattern.len) {
        if (!take(&w))
            return false;
    }
    return true;
}
