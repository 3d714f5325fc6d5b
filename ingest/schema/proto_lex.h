/* proto_lex.h - splits the text of a .proto file into words, numbers, strings and signs. proto_parse.c calls
 * it.
 *
 * Comments: are left out.
 * Owner   : a token is a slice of the text; a string's has its quotes.
 * Source  : protobuf.dev, "Language Specification", "Lexical Elements".
 */
#pragma once

#include "base/slice.h"

enum proto_token_kind {
    PROTO_WORD, /* a name, with its points: ".a.b.C" */
    PROTO_NUMBER,
    PROTO_STRING,
    PROTO_SIGN, /* one byte */
    PROTO_END
};

struct proto_token {
    enum proto_token_kind kind;
    struct slice text;
};

struct proto_lex {
    const char *p, *end;
    struct proto_token token; /* the present one */
};

/* Begins with the first token. */
void proto_lex_init(struct proto_lex *l, struct slice text);
/* Goes on to the next token. */
void proto_lex_next(struct proto_lex *l);

static inline bool proto_lex_is(const struct proto_lex *l, const char *text)
{
    return l->token.kind != PROTO_STRING && slice_is(l->token.text, text);
}
