/* lex.h - splits a PromQL expression into tokens, for parse.c.
 *
 * Errors : EX_PROTOCOL, "LINE:COLUMN: parse error: …", in Prometheus' form; columns count bytes from 1.
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
    TOKEN_NAME, /* the name of a metric, label or function; a keyword */
    TOKEN_SIGN  /* ( ) { } [ ] , : @ = == != =~ !~ < > <= >= + - * / % ^ */
};

struct token {
    enum token_kind kind;
    size_t at;         /* byte offset in the text */
    struct slice text; /* as written; a string is decoded, without its quotes */
    double number;
    int64_t ms; /* length of a duration; 0 only if it is written as 0 */
};

struct lexer {
    struct slice text;
    size_t at;           /* byte offset of the next token */
    struct arena *arena; /* memory of decoded strings */
};

bool lex_next(struct lexer *l, struct token *t, struct err *e) MUST_CHECK;
/* Sets an error that begins with the line and column of byte `at`. Returns false. */
bool lex_fail(struct slice text, size_t at, struct err *e, const char *format, ...) PRINTF_LIKE(4, 5);
/* Parses the whole of `text` as a duration: 5m, 1h30m, 90s, 100ms. */
bool lex_duration(struct slice text, int64_t *ms);
/* Is it the name of a label: letters, digits and _, not beginning with a digit? */
bool lex_is_label(struct slice text);
