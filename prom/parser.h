/* parser.h - the state of parsing, and the steps that parse.c, parse_select.c and parse_call.c share.
 *
 * Each step takes its tokens and returns false, or NULL, once it has set the parser's error.
 */
#pragma once

#include "prom/lex.h"

#define PRECEDENCE_MIN 1

struct parser {
    struct lexer lexer;
    struct token token; /* the next one */
    struct arena *arena;
    size_t depth;
    struct err *e;
};

#define FAIL(p, at, ...) lex_fail((p)->lexer.text, at, (p)->e, __VA_ARGS__)

/* parse.c */
bool parser_next(struct parser *p);
bool parser_is_sign(const struct parser *p, const char *sign);
bool parser_is_keyword(struct slice text, const char *word); /* keywords ignore case */
bool parser_is_word(const struct parser *p, const char *word);
bool parser_fail(struct parser *p, const char *expected);
bool parser_take_sign(struct parser *p, const char *sign);
/* Behind an element of a list: takes the comma; or sees that `close`, ")" or "}", comes next. */
bool parser_goes_on(struct parser *p, const char *close);
/* The index of `text` in `names`, which end with NULL; -1: it is none of them. */
int parser_find(const char *const names[], struct slice text, bool any_case);
struct node *parser_node(struct parser *p, enum node_kind kind, size_t at);
/* The depth of `n` is one more than that of the deepest of its operands; `below` may be NULL. */
bool parser_deepen(struct parser *p, struct node *n, const struct node *below);
bool parser_want(struct parser *p, const struct node *n, enum value_type type, const char *whose);
/* An expression whose operators bind at least as tightly as `precedence`. */
struct node *parser_expression(struct parser *p, int precedence);

/* parse_select.c */
/* `name` empty: there is none before the braces. */
struct node *parser_selector(struct parser *p, struct slice name, size_t at);
/* What may follow an expression: [range:step], offset, @. Returns `n`, or the subquery around it. */
struct node *parser_modifiers(struct parser *p, struct node *n);
/* by (a, b): takes the labels if the next word is `includes` or `excludes`. */
bool parser_grouping(struct parser *p, const char *includes, const char *excludes, struct grouping *g);
/* (a, b) */
bool parser_labels(struct parser *p, struct grouping *g);

/* parse_call.c */
/* A call, an aggregation, a number by name, or a selector. */
struct node *parser_name(struct parser *p);
