#include "prom/parse.h"

#include "base/suggest.h"
#include "prom/lex.h"

#include <math.h>
#include <strings.h>

/* Each list ends with NULL, as suggestions need it. */
static const char *const function_names[] = {
    "rate",          "increase",        "sum_over_time",  "avg_over_time", "min_over_time",
    "max_over_time", "count_over_time", "last_over_time", "vector",        NULL};
static const char *const aggregate_names[] = {"sum", "avg", "min", "max", "count", "topk", "bottomk", NULL};
/* PromQL's other aggregations. */
static const char *const other_aggregates[] = {"group", "stddev", "stdvar", "quantile", "count_values", NULL};

static const struct {
    const char *text;
    enum op op;
    int precedence;
} ops[] = {{"or", OP_OR, 1},    {"and", OP_AND, 2},          {"unless", OP_UNLESS, 2},
           {"==", OP_EQUAL, 3}, {"!=", OP_NOT_EQUAL, 3},     {"<=", OP_LESS_EQUAL, 3},
           {"<", OP_LESS, 3},   {">=", OP_GREATER_EQUAL, 3}, {">", OP_GREATER, 3},
           {"+", OP_ADD, 4},    {"-", OP_SUBTRACT, 4},       {"*", OP_MULTIPLY, 5},
           {"/", OP_DIVIDE, 5}, {"%", OP_MODULO, 5},         {"^", OP_POWER, 7}};

#define PRECEDENCE_MIN   1
#define PRECEDENCE_UNARY 6 /* -a ^ b is -(a ^ b), -a * b is (-a) * b */
#define PRECEDENCE_POWER 7 /* right-associative */

struct parser {
    struct lexer lexer;
    struct token token; /* the next one */
    struct arena *arena;
    size_t depth;
    struct err *e;
};

static struct node *parse_binary(struct parser *p, int precedence);

const char *parse_function_name(enum function f)
{
    ASSERT(f != FUNCTION_NONE);
    return function_names[f - 1];
}

/* ---- words */

#define FAIL(p, at, ...) lex_fail((p)->lexer.text, at, (p)->e, __VA_ARGS__)

static bool next(struct parser *p)
{
    return lex_next(&p->lexer, &p->token, p->e);
}

static bool is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && slice_is(p->token.text, sign);
}

/* Keywords ignore case. */
static bool is_keyword(struct slice text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

static bool is_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && is_keyword(p->token.text, word);
}

static bool fail_unexpected(struct parser *p, const char *expected)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    if (p->token.kind == TOKEN_END)
        return FAIL(p, p->token.at, "unexpected end of input, expected %s", expected);
    return FAIL(p, p->token.at, "unexpected %s, expected %s", suggest_quote(p->token.text, quoted), expected);
}

static bool take_sign(struct parser *p, const char *sign)
{
    char expected[8] = {'"', sign[0], '"'};
    return is_sign(p, sign) ? next(p) : fail_unexpected(p, expected);
}

/* As slice_find(), for names that are written in any case. */
static int find_keyword(struct slice text, const char *const names[])
{
    for (int i = 0; names[i] != NULL; i++) {
        if (is_keyword(text, names[i]))
            return i;
    }
    return -1;
}

/* ---- nodes */

static struct node *new_node(struct parser *p, enum node_kind kind, size_t at)
{
    struct node *n = arena_add(p->arena, sizeof *n);
    *n = (struct node){.kind = kind, .type = TYPE_VECTOR, .at = at, .depth = 1};
    return n;
}

static bool set_operands(struct parser *p, struct node *n, struct node *left, struct node *right)
{
    size_t below = right != NULL && right->depth > left->depth ? right->depth : left->depth;
    n->left = left;
    n->right = right;
    n->depth = below + 1;
    return n->depth <= PARSE_DEPTH_MAX ||
           FAIL(p, n->at, "more than %d operations within each other", PARSE_DEPTH_MAX);
}

static bool want_type(struct parser *p, const struct node *n, enum value_type type, const char *whose)
{
    static const char *const names[] = {"a scalar, which is a number", "an instant vector",
                                        "a range vector, which is a selector such as pages:hits[5m]"};
    return n->type == type || FAIL(p, n->at, "%s expects %s, found %s", whose, names[type], names[n->type]);
}

/* ---- selectors */

static bool is_label_name(struct slice name)
{
    return memchr(name.ptr, ':', name.len) == NULL;
}

static bool take_matcher(struct parser *p, struct matcher *m)
{
    static const char *const signs[] = {"=", "!=", "=~", "!~", NULL};
    char quoted[SUGGEST_QUOTE_BYTES];
    if (p->token.kind != TOKEN_NAME)
        return fail_unexpected(p, "the name of a label");
    m->name = p->token.text;
    if (!is_label_name(m->name))
        return FAIL(p, p->token.at, "%s is no name of a label: it has a colon",
                    suggest_quote(m->name, quoted));
    if (!next(p))
        return false;
    int kind = p->token.kind == TOKEN_SIGN ? slice_find(p->token.text, signs) : -1;
    if (kind < 0)
        return fail_unexpected(p, "=, !=, =~ or !~");
    m->kind = (enum matcher_kind)kind;
    if (!next(p))
        return false;
    if (p->token.kind != TOKEN_STRING)
        return fail_unexpected(p, "a text in quotes");
    m->value = p->token.text;
    return next(p);
}

static struct matcher *add_matcher(struct parser *p, struct selector *s, size_t *capacity)
{
    if (s->matcher_count == *capacity) {
        *capacity = *capacity == 0 ? 4 : 2 * *capacity;
        struct matcher *more = arena_add(p->arena, *capacity * sizeof *more);
        if (s->matcher_count > 0)
            memcpy(more, s->matchers, s->matcher_count * sizeof *more);
        s->matchers = more;
    }
    return &s->matchers[s->matcher_count++];
}

static bool take_matchers(struct parser *p, struct selector *s, size_t *capacity)
{
    if (!take_sign(p, "{"))
        return false;
    while (!is_sign(p, "}")) {
        if (!take_matcher(p, add_matcher(p, s, capacity)))
            return false;
        if (is_sign(p, ",")) {
            if (!next(p))
                return false;
        } else if (!is_sign(p, "}")) {
            return fail_unexpected(p, "\",\" or \"}\"");
        }
    }
    return next(p);
}

static bool take_duration(struct parser *p, int64_t *ms)
{
    if (p->token.kind != TOKEN_DURATION)
        return fail_unexpected(p, "a duration such as 5m or 1h30m");
    *ms = p->token.ms;
    return next(p);
}

static bool take_range(struct parser *p, struct node *n)
{
    if (!is_sign(p, "["))
        return true;
    size_t at = p->token.at;
    if (!next(p) || !take_duration(p, &n->selector.range_ms))
        return false;
    if (n->selector.range_ms == 0)
        return FAIL(p, at, "a range must be longer than nothing");
    if (is_sign(p, ":"))
        return FAIL(p, at, "subqueries are not answered here");
    n->type = TYPE_RANGE;
    return take_sign(p, "]");
}

static bool take_offset(struct parser *p, struct node *n)
{
    if (is_sign(p, "@"))
        return FAIL(p, p->token.at, "the modifier @ is not answered here");
    if (!is_word(p, "offset"))
        return true;
    if (!next(p))
        return false;
    bool is_negative = is_sign(p, "-");
    if ((is_negative && !next(p)) || !take_duration(p, &n->selector.offset_ms))
        return false;
    n->selector.offset_ms *= is_negative ? -1 : 1;
    return !is_sign(p, "@") || FAIL(p, p->token.at, "the modifier @ is not answered here");
}

/* `name` empty: there is none before the braces. */
static struct node *take_selector(struct parser *p, struct slice name, size_t at)
{
    struct node *n = new_node(p, NODE_SELECTOR, at);
    size_t capacity = 0;
    if (name.len > 0)
        *add_matcher(p, &n->selector, &capacity) =
            (struct matcher){MATCHER_EQUAL, slice_text(METRIC_LABEL), name};
    if ((name.len == 0 || is_sign(p, "{")) && !take_matchers(p, &n->selector, &capacity))
        return NULL;
    return take_range(p, n) && take_offset(p, n) ? n : NULL;
}

/* ---- groupings */

static bool take_labels(struct parser *p, struct grouping *g)
{
    size_t capacity = 0;
    if (!take_sign(p, "("))
        return false;
    while (!is_sign(p, ")")) {
        if (p->token.kind != TOKEN_NAME || !is_label_name(p->token.text))
            return fail_unexpected(p, "the name of a label");
        if (g->count == capacity) {
            capacity = capacity == 0 ? 4 : 2 * capacity;
            struct slice *more = arena_add(p->arena, capacity * sizeof *more);
            if (g->count > 0)
                memcpy(more, g->labels, g->count * sizeof *more);
            g->labels = more;
        }
        g->labels[g->count++] = p->token.text;
        if (!next(p))
            return false;
        if (is_sign(p, ",")) {
            if (!next(p))
                return false;
        } else if (!is_sign(p, ")")) {
            return fail_unexpected(p, "\",\" or \")\"");
        }
    }
    return next(p);
}

static bool take_grouping(struct parser *p, const char *includes, const char *excludes, struct grouping *g)
{
    if (!is_word(p, includes) && !is_word(p, excludes))
        return true;
    if (g->is_given)
        return fail_unexpected(p, "only one by or without");
    g->is_given = true;
    g->excludes = is_word(p, excludes);
    return next(p) && take_labels(p, g);
}

/* ---- calls */

static bool take_aggregate(struct parser *p, struct node *n)
{
    struct node *first, *second = NULL;
    bool ranks = aggregate_ranks(n->aggregate);
    const char *name = aggregate_names[n->aggregate];
    if (!take_grouping(p, "by", "without", &n->grouping) || !take_sign(p, "(") ||
        (first = parse_binary(p, PRECEDENCE_MIN)) == NULL)
        return false;
    if (ranks && (!take_sign(p, ",") || (second = parse_binary(p, PRECEDENCE_MIN)) == NULL))
        return false;
    if (!take_sign(p, ")") || !take_grouping(p, "by", "without", &n->grouping))
        return false;
    if (ranks)
        return want_type(p, first, TYPE_SCALAR, name) && want_type(p, second, TYPE_VECTOR, name) &&
               set_operands(p, n, second, first);
    return want_type(p, first, TYPE_VECTOR, name) && set_operands(p, n, first, NULL);
}

static bool take_call(struct parser *p, struct node *n)
{
    bool is_vector = n->function == FUNCTION_VECTOR;
    if (!take_sign(p, "("))
        return false;
    struct node *argument = parse_binary(p, PRECEDENCE_MIN);
    return argument != NULL && take_sign(p, ")") &&
           want_type(p, argument, is_vector ? TYPE_SCALAR : TYPE_RANGE, parse_function_name(n->function)) &&
           set_operands(p, n, argument, NULL);
}

static bool fail_function(struct parser *p, const struct token *name)
{
    char hint[SUGGEST_HINT_BYTES], quoted[SUGGEST_QUOTE_BYTES];
    return FAIL(p, name->at,
                "the function %s is not answered here%s: there are rate, increase, vector and sum, avg, min, "
                "max, count and last _over_time",
                suggest_quote(name->text, quoted), suggest_hint(name->text, function_names, hint));
}

/* A call, an aggregation, a number by name, or a selector. */
static struct node *parse_name(struct parser *p)
{
    const struct token name = p->token;
    if (!next(p))
        return NULL;
    bool calls = is_sign(p, "(");
    int found = find_keyword(name.text, aggregate_names);
    if (found >= 0 && (calls || is_word(p, "by") || is_word(p, "without"))) {
        struct node *n = new_node(p, NODE_AGGREGATE, name.at);
        n->aggregate = (enum aggregate)found;
        return take_aggregate(p, n) ? n : NULL;
    }
    if (calls && find_keyword(name.text, other_aggregates) >= 0) {
        FAIL(p, name.at,
             "the aggregation %.*s is not answered here: there are sum, avg, min, max, count, topk and "
             "bottomk",
             SLICE_ARGS(name.text));
        return NULL;
    }
    if (is_keyword(name.text, "inf") || is_keyword(name.text, "nan")) {
        struct node *n = new_node(p, NODE_NUMBER, name.at);
        n->type = TYPE_SCALAR;
        n->number = is_keyword(name.text, "inf") ? INFINITY : NAN;
        return n;
    }
    if (!calls)
        return take_selector(p, name.text, name.at);
    found = slice_find(name.text, function_names);
    if (found < 0) {
        fail_function(p, &name);
        return NULL;
    }
    struct node *n = new_node(p, NODE_CALL, name.at);
    n->function = (enum function)(found + 1);
    return take_call(p, n) ? n : NULL;
}

static struct node *parse_number(struct parser *p)
{
    struct node *n = new_node(p, NODE_NUMBER, p->token.at);
    n->type = TYPE_SCALAR;
    n->number = p->token.number;
    return next(p) ? n : NULL;
}

static struct node *parse_parentheses(struct parser *p)
{
    size_t at = p->token.at;
    if (!next(p))
        return NULL;
    struct node *n = parse_binary(p, PRECEDENCE_MIN);
    if (n == NULL || !take_sign(p, ")"))
        return NULL;
    if (is_sign(p, "[")) {
        FAIL(p, at, "subqueries are not answered here: a range follows a selector only");
        return NULL;
    }
    return n;
}

/* Parses a sign before its operand: "-a". */
static struct node *parse_signed(struct parser *p)
{
    size_t at = p->token.at;
    bool negates = is_sign(p, "-");
    if (!next(p))
        return NULL;
    struct node *n = parse_binary(p, PRECEDENCE_UNARY);
    if (n == NULL)
        return NULL;
    if (n->type == TYPE_RANGE) {
        FAIL(p, at, "a range vector has no sign");
        return NULL;
    }
    if (!negates)
        return n;
    struct node *negation = new_node(p, NODE_NEGATE, at);
    negation->type = n->type;
    return set_operands(p, negation, n, NULL) ? negation : NULL;
}

static struct node *parse_primary(struct parser *p)
{
    if (is_sign(p, "-") || is_sign(p, "+"))
        return parse_signed(p);
    if (is_sign(p, "("))
        return parse_parentheses(p);
    if (is_sign(p, "{"))
        return take_selector(p, slice_of("", 0), p->token.at);
    if (p->token.kind == TOKEN_NUMBER)
        return parse_number(p);
    if (p->token.kind == TOKEN_NAME)
        return parse_name(p);
    if (p->token.kind == TOKEN_STRING)
        FAIL(p, p->token.at, "a text alone is not answered here");
    else
        fail_unexpected(p, "a number, a selector, a function or \"(\"");
    return NULL;
}

/* ---- operators */

/* -1: none. */
static int find_op(const struct parser *p)
{
    if (p->token.kind != TOKEN_SIGN && p->token.kind != TOKEN_NAME)
        return -1;
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        if (is_keyword(p->token.text, ops[i].text))
            return (int)i;
    }
    return -1;
}

static bool take_modifiers(struct parser *p, struct node *n)
{
    if (is_word(p, "bool")) {
        if (!op_is_comparison(n->op))
            return FAIL(p, p->token.at, "bool belongs to comparisons");
        n->says_bool = true;
        if (!next(p))
            return false;
    }
    if (!take_grouping(p, "on", "ignoring", &n->grouping))
        return false;
    if (is_word(p, "group_left") || is_word(p, "group_right"))
        return FAIL(p, p->token.at, "%.*s is not answered here: vectors are matched one to one",
                    SLICE_ARGS(p->token.text));
    return true;
}

static bool check_operands(struct parser *p, const struct node *n, const struct node *left,
                           const struct node *right)
{
    bool both = left->type == TYPE_VECTOR && right->type == TYPE_VECTOR;
    if (left->type == TYPE_RANGE || right->type == TYPE_RANGE)
        return FAIL(p, n->at, "a range vector is no operand: put it into rate() or another function");
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
    struct node *n = new_node(p, NODE_BINARY, p->token.at);
    n->op = ops[op].op;
    if (!next(p) || !take_modifiers(p, n))
        return NULL;
    bool goes_right = ops[op].precedence == PRECEDENCE_POWER;
    struct node *right = parse_binary(p, goes_right ? PRECEDENCE_UNARY : ops[op].precedence + 1);
    if (right == NULL || !check_operands(p, n, left, right))
        return NULL;
    if (left->type == TYPE_SCALAR && right->type == TYPE_SCALAR)
        n->type = TYPE_SCALAR;
    return set_operands(p, n, left, right) ? n : NULL;
}

/* Parses operators that bind at least as tightly as `precedence`. */
static struct node *parse_binary(struct parser *p, int precedence)
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
    return next(p);
}

static struct node *end(struct parser *p, struct node *n)
{
    if (n == NULL)
        return NULL;
    if (p->token.kind != TOKEN_END) {
        fail_unexpected(p, "an operator or the end");
        return NULL;
    }
    return n;
}

struct node *parse_expression(struct slice text, struct arena *arena, struct err *e)
{
    struct parser p;
    if (!start(&p, text, arena, e))
        return NULL;
    struct node *n = end(&p, parse_binary(&p, PRECEDENCE_MIN));
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
    if (n != NULL && (n->kind != NODE_SELECTOR || n->type == TYPE_RANGE)) {
        FAIL(&p, n->at, "expected a selector such as pages:hits{path=\"/\"}");
        return NULL;
    }
    return n;
}
