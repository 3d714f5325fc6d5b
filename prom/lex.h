/* lex.h - the words of a PromQL expression.
 *
 * Errors : EX_USAGE, "LINE:COLUMN: parse error: …", as Prometheus puts it; columns count bytes from 1.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "prom/ast.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_DURATION,
    TOKEN_STRING,
    TOKEN_NAME, /* of a metric, a label, a function; a keyword */
    TOKEN_SIGN  /* ( ) { } [ ] , : @ = == != =~ !~ < > <= >= + - * / % ^ */
};

struct token {
    enum token_kind kind;
    size_t at;         /* of the text */
    struct slice text; /* as written; of a string what it says */
    double number;
    int64_t ms; /* of a duration, > 0 unless it says 0 */
};

struct lexer {
    struct slice text;
    size_t at;
    struct arena *arena; /* for strings */
};

bool lex_next(struct lexer *l, struct token *t, struct err *e) MUST_CHECK;
/* Puts the place of byte `at` before a complaint. Returns false. */
bool lex_fail(struct slice text, size_t at, struct err *e, const char *format, ...) PRINTF_LIKE(4, 5);
/* The whole of `text` as a duration: 5m, 1h30m, 90s, 100ms. */
bool lex_duration(struct slice text, int64_t *ms);
