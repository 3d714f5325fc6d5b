#include "ingest/derive/literal.h"

/* The text being read, and the longest one so far. */
struct found {
    char run[LITERAL_BYTES], *best;
    size_t run_len, best_len;
};

static void end_run(struct found *f)
{
    if (f->run_len > f->best_len) {
        memcpy(f->best, f->run, f->run_len);
        f->best_len = f->run_len;
    }
    f->run_len = 0;
}

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Behind the class that begins at `p`. */
static const char *skip_class(const char *p, const char *end)
{
    p++;
    p += p < end && *p == '^';
    p += p < end && *p == ']';
    for (; p < end && *p != ']'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end;
}

/* The end of the alternatives that begin at `p`: a ')' or the end. *has_several: there are several. */
static const char *skip_group(const char *p, const char *end, bool *has_several)
{
    int depth = 0;
    *has_several = false;
    while (p < end) {
        if (*p == '[') {
            p = skip_class(p, end);
            continue;
        }
        if (*p == ')' && depth-- == 0)
            return p;
        depth += *p == '(';
        *has_several |= *p == '|' && depth == 0;
        p += *p == '\\' ? 2 : 1;
    }
    return end;
}

static bool is_quantifier(const char *p, const char *end)
{
    return p < end && (*p == '?' || *p == '*' || *p == '{');
}

static void read_part(struct found *f, const char *p, const char *end);

/* Reads the group that begins behind the '(' at `p`; returns its ')'. */
static const char *read_group(struct found *f, const char *p, const char *end)
{
    bool has_several, is_special = p < end && *p == '?', is_plain = end - p >= 2 && memcmp(p, "?:", 2) == 0;
    const char *from = is_plain ? p + 2 : p, *close = skip_group(from, end, &has_several);
    end_run(f);
    if (!has_several && (!is_special || is_plain) && close < end && !is_quantifier(close + 1, end))
        read_part(f, from, close);
    end_run(f);
    return close;
}

/* Reads a part without alternatives. */
static void read_part(struct found *f, const char *p, const char *end)
{
    while (p < end) {
        char c = *p++;
        bool is_literal = strchr("^$.|?*+{}()[", c) == NULL;
        if (c == '(') {
            p = read_group(f, p, end);
            p += p < end;
        } else if (c == '[') {
            p = skip_class(p - 1, end);
        } else if (c == '{') {
            const char *close = memchr(p, '}', (size_t)(end - p));
            p = close != NULL ? close + 1 : end;
        } else if (c == '\\' && p < end) {
            c = *p++;
            is_literal = !is_letter_or_digit(c);
        }
        if (!is_literal || is_quantifier(p, end)) {
            end_run(f);
            continue;
        }
        if (f->run_len == LITERAL_BYTES)
            end_run(f);
        f->run[f->run_len++] = c;
        if (p < end && *p == '+')
            end_run(f);
    }
}

size_t literal_find(struct slice pattern, char out[LITERAL_BYTES])
{
    struct found f = {.best = out};
    bool has_several;
    const char *end = slice_end(pattern);
    if (skip_group(pattern.ptr, end, &has_several) < end || has_several)
        return 0;
    read_part(&f, pattern.ptr, end);
    end_run(&f);
    return f.best_len;
}
