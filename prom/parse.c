#include "prom/parse.h"
#include "base/suggest.h"

#include "prom/parser.h"
#include "prom/vector.h"

#include <strings.h>

static const struct {
    const char *text;
    enum op op;
    int precedence;
} ops[] = {
    {"or", OP_OR, 1},        {"and", OP_AND, 2},       {"unless", OP_UNLESS, 2}, {"==", OP_EQUAL, 3},
    {"!=", OP_NOT_EQUAL, 3}, {"<=", OP_LESS_EQUAL, 3}, {"<", OP_LESS, 3},        {">=", OP_GREATER_EQUAL, 3},
    {">", OP_GREATER, 3},    {"+", OP_ADD, 4},         {"-", OP_SUBTRACT, 4},    {"*", OP_MULTIPLY, 5},
    {"/", OP_DIVIDE, 5},     {"%", OP_MODULO, 5},      {"^", OP_POWER, 7},       {"atan2", OP_ATAN2, 5}};

#define PRECEDENCE_UNARY 6 /* -a ^ b is -(a ^ b), -a * b is (-a) * b */
#define PRECEDENCE_POWER 7 /* right-associative */

/* ---- words */

bool parser_next(struct parser *p)
{
    return lex_next(&p->lexer, &p->token, p->e);
}

bool parser_is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && slice_is(p->token.text, sign);
}

/* Keywords ignore case. */
bool parser_is_keyword(struct slice text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

bool parser_is_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && parser_is_keyword(p->token.text, word);
}

bool parser_fail(struct parser *p, const char *expected)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    if (p->token.kind == TOKEN_END)
        return FAIL(p, p->token.at, "unexpected end of input, expected %s", expected);
    return FAIL(p, p->token.at, "unexpected %s, expected %s", suggest_quote(p->token.text, quoted), expected);
}

bool parser_goes_on(struct parser *p, const char *close)
{
    if (parser_is_sign(p, ","))
        return parser_next(p);
    return parser_is_sign(p, close) || parser_fail(p, *close == ')' ? "\",\" or \")\"" : "\",\" or \"}\"");
}

bool parser_take_sign(struct parser *p, const char *sign)
{
    char expected[8] = {'"', sign[0], '"'};
    return parser_is_sign(p, sign) ? parser_next(p) : parser_fail(p, expected);
}

/* -1: none of them. */
int parser_find(const char *const names[], struct slice text, bool any_case)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (any_case ? parser_is_keyword(text, names[i]) : slice_is(text, names[i]))
            return i;
    }
    return -1;
}

/* ---- nodes */

struct node *parser_node(struct parser *p, enum node_kind kind, size_t at)
{
    struct node *n = arena_add(p->arena, sizeof *n);
    *n = (struct node){.kind = kind, .type = TYPE_VECTOR, .at = at, .depth = 1};
    return n;
}

bool parser_deepen(struct parser *p, struct node *n, const struct node *below)
{
    if (below != NULL && below->depth >= n->depth)
        n->depth = below->depth + 1;
    return n->depth <= PARSE_DEPTH_MAX ||
           FAIL(p, n->at, "more than %d operations within each other", PARSE_DEPTH_MAX);
}

static bool set_operands(struct parser *p, struct node *n, struct node *left, struct node *right)
{
    n->left = left;
    n->right = right;
    return parser_deepen(p, n, left) && parser_deepen(p, n, right);
}

bool parser_want(struct parser *p, const struct node *n, enum value_type type, const char *whose)
{
    static const char *const names[] = {"a scalar, which is a number", "an instant vector",
                                        "a range vector, which is a selector such as pages:hits[5m]",
                                        "a text in quotes"};
    return n->type == type || FAIL(p, n->at, "%s expects %s, found %s", whose, names[type], names[n->type]);
}

/* ---- operands */

static struct node *parse_number(struct parser *p)
{
    struct node *n = parser_node(p, NODE_NUMBER, p->token.at);
    n->type = TYPE_SCALAR;
    n->number = p->token.number;
    return parser_next(p) ? n : NULL;
}

static struct node *parse_parentheses(struct parser *p)
{
    if (!parser_next(p))
        return NULL;
    struct node *n = parser_expression(p, PRECEDENCE_MIN);
    return n != NULL && parser_take_sign(p, ")") ? n : NULL;
}

/* Parses a sign before its operand: "-a". */
static struct node *parse_signed(struct parser *p)
{
    size_t at = p->token.at;
    bool negates = parser_is_sign(p, "-");
    if (!parser_next(p))
        return NULL;
    struct node *n = parser_expression(p, PRECEDENCE_UNARY);
    if (n == NULL)
        return NULL;
    if (n->type == TYPE_RANGE || n->type == TYPE_TEXT) {
        FAIL(p, at, "%s has no sign", n->type == TYPE_RANGE ? "a range vector" : "a text");
        return NULL;
    }
    if (!negates)
        return n;
    struct node *negation = parser_node(p, NODE_NEGATE, at);
    negation->type = n->type;
    return set_operands(p, negation, n, NULL) ? negation : NULL;
}

static struct node *parse_text(struct parser *p)
{
    struct node *n = parser_node(p, NODE_TEXT, p->token.at);
    n->type = TYPE_TEXT;
    n->text = p->token.text;
    return parser_next(p) ? n : NULL;
}

static struct node *parse_unsigned(struct parser *p)
{
    if (parser_is_sign(p, "("))
        return parse_parentheses(p);
    if (parser_is_sign(p, "{"))
        return parser_selector(p, slice_of("", 0), p->token.at);
    if (p->token.kind == TOKEN_NUMBER)
        return parse_number(p);
    if (p->token.kind == TOKEN_NAME)
        return parser_name(p);
    if (p->token.kind == TOKEN_STRING)
        return parse_text(p);
    parser_fail(p, "a number, a selector, a function or \"(\"");
    return NULL;
}

static struct node *parse_primary(struct parser *p)
{
    if (parser_is_sign(p, "-") || parser_is_sign(p, "+"))
        return parse_signed(p);
    struct node *n = parse_unsigned(p);
    return n != NULL ? parser_modifiers(p, n) : NULL;
}

/* ---- operators */

/* -1: none. */
static int find_op(const struct parser *p)
{
    if (p->token.kind != TOKEN_SIGN && p->token.kind != TOKEN_NAME)
        return -1;
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        if (parser_is_keyword(p->token.text, ops[i].text))
            return (int)i;
    }
    return -1;
}

/* group_left (a): the right side has one series for many of the left one, and gives them its label `a`. */
static bool take_include(struct parser *p, struct node *n)
{
    bool is_left = parser_is_word(p, "group_left");
    if (parser_is_word(p, "fill") || parser_is_word(p, "fill_left") || parser_is_word(p, "fill_right"))
        return FAIL(p, p->token.at, "fill is not answered here: it is experimental in Prometheus");
    if (!is_left && !parser_is_word(p, "group_right"))
        return true;
    if (op_is_set(n->op) || !n->grouping.is_given)
        return FAIL(p, p->token.at, "%s follows on or ignoring, and not with and, or and unless",
                    is_left ? "group_left" : "group_right");
    size_t at = p->token.at;
    n->match = is_left ? MATCH_MANY_LEFT : MATCH_MANY_RIGHT;
    if (!parser_next(p) || (parser_is_sign(p, "(") && !parser_labels(p, &n->include)))
        return false;
    for (size_t i = 0; i < n->include.count; i++) {
        if (!n->grouping.excludes && grouping_keeps(&n->grouping, n->include.labels[i]))
            return FAIL(p, at, "%.*s is in on() and in the group modifier", SLICE_ARGS(n->include.labels[i]));
    }
    return true;
}

static bool take_modifiers(struct parser *p, struct node *n)
{
    if (parser_is_word(p, "bool")) {
        if (!op_is_comparison(n->op))
            return FAIL(p, p->token.at, "bool belongs to comparisons");
        n->says_bool = true;
        if (!parser_next(p))
            return false;
    }
    if (!parser_grouping(p, "on", "ignoring", &n->grouping))
        return false;
    return take_include(p, n);
}

static bool check_operands(struct parser *p, const struct node *n, const struct node *left,
                           const struct node *right)
{
    bool both = left->type == TYPE_VECTOR && right->type == TYPE_VECTOR;
    if (left->type == TYPE_RANGE || right->type == TYPE_RANGE)
        return FAIL(p, n->at, "a range vector is no operand: put it into rate() or another function");
    if (left->type == TYPE_TEXT || right->type == TYPE_TEXT)
        return FAIL(p, n->at, "a text is no operand");
    if (op_is_set(n->op) && !both)
        return FAIL(p, n->at, "and, or and unless are between vectors: vector(0) makes one of a scalar");
    if (n->grouping.is_given && !both)
        return FAIL(p, n->at, "on and ignoring are between vectors");
    if (op_is_comparison(n->op) && !n->says_bool && left->type == TYPE_SCALAR && right->type == TYPE_SCALAR)
        return FAIL(p, n->at, "a comparison of scalars needs the modifier bool");
    return true;
}

static struct node *parse_operation(struct parser *p, struct node *left, int op)
{
    struct node *n = parser_node(p, NODE_BINARY, p->token.at);
    n->op = ops[op].op;
    if (!parser_next(p) || !take_modifiers(p, n))
        return NULL;
    bool goes_right = ops[op].precedence == PRECEDENCE_POWER;
    struct node *right = parser_expression(p, goes_right ? PRECEDENCE_UNARY : ops[op].precedence + 1);
    if (right == NULL || !check_operands(p, n, left, right))
        return NULL;
    if (left->type == TYPE_SCALAR && right->type == TYPE_SCALAR)
        n->type = TYPE_SCALAR;
    return set_operands(p, n, left, right) ? n : NULL;
}

struct node *parser_expression(struct parser *p, int precedence)
{
    if (p->depth == PARSE_DEPTH_MAX) {
        FAIL(p, p->token.at, "more than %d operations within each other", PARSE_DEPTH_MAX);
        return NULL;
    }
    p->depth++;
    struct node *left = parse_primary(p);
    for (int op; left != NULL && (op = find_op(p)) >= 0 && ops[op].precedence >= precedence;)
        left = parse_operation(p, left, op);
    p->depth--;
    return left;
}

static bool start(struct parser *p, struct slice text, struct arena *arena, struct err *e)
{
    *p = (struct parser){.lexer = {.text = text, .arena = arena}, .arena = arena, .e = e};
    if (text.len > PARSE_BYTES_MAX)
        return err_set(e, EX_PROTOCOL, "the expression has %zu bytes, more than %d", text.len,
                       PARSE_BYTES_MAX);
    return parser_next(p);
}

static struct node *end(struct parser *p, struct node *n)
{
    if (n == NULL)
        return NULL;
    if (p->token.kind != TOKEN_END) {
        parser_fail(p, "an operator or the end");
        return NULL;
    }
    return n;
}

struct node *parse_expression(struct slice text, struct arena *arena, struct err *e)
{
    struct parser p;
    if (!start(&p, text, arena, e))
        return NULL;
    struct node *n = end(&p, parser_expression(&p, PRECEDENCE_MIN));
    if (n != NULL && n->type == TYPE_TEXT) {
        FAIL(&p, n->at, "a text alone is not answered here");
        return NULL;
    }
    if (n != NULL && n->type == TYPE_RANGE) {
        FAIL(&p, n->at, "a range vector is no answer: put it into rate(), increase() or another function");
        return NULL;
    }
    return n;
}

struct node *parse_selector(struct slice text, struct arena *arena, struct err *e)
{
    struct parser p;
    if (!start(&p, text, arena, e))
        return NULL;
    struct node *n = end(&p, parse_primary(&p));
    if (n != NULL && (n->kind != NODE_SELECTOR || n->type == TYPE_RANGE || n->selector.offset_ms != 0 ||
                      n->selector.base != BASE_STEP)) {
        FAIL(&p, n->at, "expected a selector such as pages:hits{path=\"/\"}");
        return NULL;
    }
    return n;
}
