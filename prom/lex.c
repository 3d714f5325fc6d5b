#include "prom/lex.h"

#include "base/civil.h"
#include "base/suggest.h"
#include "base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_BYTES_MAX  64
#define DURATION_MS_MAX   (CIVIL_END_MS / 2)
#define YEAR_MS           (365LL * DAY_MS)
#define CODE_POINT_BYTES  4
#define UNICODE_MAX       0x10FFFF
#define SURROGATE_FIRST   0xD800
#define SURROGATE_LAST    0xDFFF
#define CONTINUATION_BITS 6

bool lex_fail(struct slice text, size_t at, struct err *e, const char *format, ...)
{
    char words[512];
    size_t line = 1, column = 1;
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (size_t i = 0; i < at && i < text.len; i++) {
        bool ends = text.ptr[i] == '\n';
        line += ends;
        column = ends ? 1 : column + 1;
    }
    return err_set(e, EX_PROTOCOL, "%zu:%zu: parse error: %s", line, column, words);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool starts_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

bool lex_is_label(struct slice text)
{
    bool good = text.len > 0 && !is_digit((unsigned char)text.ptr[0]);
    for (size_t i = 0; good && i < text.len; i++)
        good = text.ptr[i] != ':' && (starts_name(text.ptr[i]) || is_digit(text.ptr[i]));
    return good;
}

static int peek(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->text.len ? (unsigned char)l->text.ptr[l->at + ahead] : -1;
}

bool lex_duration(struct slice text, int64_t *ms)
{
    static const struct unit units[] = {{"ms", 1},     {"s", SECOND_MS}, {"m", MINUTE_MS}, {"h", HOUR_MS},
                                        {"d", DAY_MS}, {"w", WEEK_MS},   {"y", YEAR_MS},   {NULL, 0}};
    *ms = 0;
    bool good = text.len > 0;
    for (int64_t part; good && text.len > 0; *ms += good ? part : 0)
        good = units_take(units, &text, &part) && part <= DURATION_MS_MAX - *ms;
    return good;
}

static bool lex_number(struct lexer *l, struct token *t, struct err *e)
{
    char copy[NUMBER_BYTES_MAX], *end, quoted[SUGGEST_QUOTE_BYTES];
    size_t len = 0;
    for (int c; (c = peek(l, len)) == '.' || is_digit(c) || (c != ':' && starts_name(c)) ||
                ((c == '+' || c == '-') && (peek(l, len - 1) | ' ') == 'e' && peek(l, 1) != 'x');)
        len++;
    t->text = slice_of(l->text.ptr + l->at, len);
    l->at += len;
    if (lex_duration(t->text, &t->ms)) {
        t->kind = TOKEN_DURATION;
        return true;
    }
    t->kind = TOKEN_NUMBER;
    if (len < sizeof copy) {
        memcpy(copy, t->text.ptr, len);
        copy[len] = '\0';
        t->number = strtod(copy, &end);
        if (*end == '\0')
            return true;
    }
    return lex_fail(l->text, t->at, e, "found %s, expected a number or a duration such as 5m or 1h30m",
                    suggest_quote(t->text, quoted));
}

/* Takes `count` digits of `base` at l->at; -1 if they are not there. */
static long take_digits(struct lexer *l, int count, int base)
{
    long value = 0;
    for (int i = 0; i < count; i++) {
        int digit = units_hex_digit(peek(l, (size_t)i));
        if (digit < 0 || digit >= base)
            return -1;
        value = value * base + digit;
    }
    l->at += (size_t)count;
    return value;
}

static size_t put_utf8(char *out, long point)
{
    static const struct {
        long below;
        int lead;
    } sizes[CODE_POINT_BYTES] = {{0x80, 0}, {0x800, 0xC0}, {0x10000, 0xE0}, {UNICODE_MAX + 1, 0xF0}};
    size_t more = 0;
    while (point >= sizes[more].below)
        more++;
    for (size_t i = more; i > 0; i--, point >>= CONTINUATION_BITS)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)(sizes[more].lead | point);
    return more + 1;
}

/* Decodes the escape behind a backslash into `out`. Returns its length in bytes; 0: it is not an escape. */
static size_t take_escape(struct lexer *l, char quote, char *out)
{
    static const char letters[] = "abfnrtv\\", meanings[] = "\a\b\f\n\r\t\v\\";
    int c = peek(l, 0);
    const char *letter = c > 0 ? strchr(letters, c) : NULL;
    long value = -1;
    if (letter != NULL || c == quote) {
        l->at++;
        *out = letter != NULL ? meanings[letter - letters] : quote;
        return 1;
    }
    if (c >= '0' && c <= '7') {
        value = take_digits(l, 3, 8);
    } else if (c == 'x') {
        l->at++;
        value = take_digits(l, 2, 16);
    } else if (c == 'u' || c == 'U') {
        l->at++;
        value = take_digits(l, c == 'u' ? 4 : 8, 16);
        bool is_valid =
            value >= 0 && value <= UNICODE_MAX && (value < SURROGATE_FIRST || value > SURROGATE_LAST);
        return is_valid ? put_utf8(out, value) : 0;
    }
    *out = (char)value;
    return value >= 0 && value <= 0xFF;
}

static bool lex_string(struct lexer *l, struct token *t, struct err *e)
{
    char quote = l->text.ptr[l->at++], *out = arena_add(l->arena, l->text.len - t->at);
    size_t len = 0;
    t->kind = TOKEN_STRING;
    for (int c; (c = peek(l, 0)) >= 0 && (c != '\n' || quote == '`');) {
        l->at++;
        if (c == quote) {
            t->text = slice_of(out, len);
            return true;
        }
        size_t added = 1;
        if (c == '\\' && quote != '`')
            added = take_escape(l, quote, out + len);
        else
            out[len] = (char)c;
        if (added == 0)
            return lex_fail(l->text, l->at, e, "unknown escape in a string: write \\\\ for a backslash");
        len += added;
    }
    return lex_fail(l->text, t->at, e, "a string without an end");
}

static bool lex_sign(struct lexer *l, struct token *t, struct err *e)
{
    static const char *const signs[] = {"==", "!=", "=~", "!~", "<=", ">=", "(", ")", "{", "}", "[", "]",
                                        ",",  ":",  "@",  "=",  "<",  ">",  "+", "-", "*", "/", "%", "^"};
    char quoted[SUGGEST_QUOTE_BYTES];
    t->kind = TOKEN_SIGN;
    for (size_t i = 0; i < COUNT_OF(signs); i++) {
        size_t len = strlen(signs[i]);
        if (l->text.len - l->at >= len && memcmp(l->text.ptr + l->at, signs[i], len) == 0) {
            t->text = slice_of(l->text.ptr + l->at, len);
            l->at += len;
            return true;
        }
    }
    return lex_fail(l->text, l->at, e, "unexpected %s",
                    suggest_quote(slice_of(l->text.ptr + l->at, 1), quoted));
}

static void skip_blanks(struct lexer *l)
{
    for (int c; (c = peek(l, 0)) == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '#';) {
        l->at++;
        while (c == '#' && peek(l, 0) >= 0 && peek(l, 0) != '\n')
            l->at++;
    }
}

bool lex_next(struct lexer *l, struct token *t, struct err *e)
{
    skip_blanks(l);
    *t = (struct token){.kind = TOKEN_END, .at = l->at};
    int c = peek(l, 0);
    if (c < 0)
        return true;
    if (is_digit(c) || (c == '.' && is_digit(peek(l, 1))))
        return lex_number(l, t, e);
    if (c == '"' || c == '\'' || c == '`')
        return lex_string(l, t, e);
    if (!starts_name(c) || c == ':')
        return lex_sign(l, t, e);
    size_t len = 1;
    while (starts_name(peek(l, len)) || is_digit(peek(l, len)))
        len++;
    t->kind = TOKEN_NAME;
    t->text = slice_of(l->text.ptr + l->at, len);
    l->at += len;
    return true;
}
