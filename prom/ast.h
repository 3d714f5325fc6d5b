/* ast.h - a PromQL expression as a tree: parse.c builds it, eval.c evaluates it.
 *
 * Subset : docs/PROMETHEUS.md lists the supported features.
 * Owner  : nodes and their texts live in the arena that parse_expression() was given.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define METRIC_LABEL "__name__"

enum value_type { TYPE_SCALAR, TYPE_VECTOR, TYPE_RANGE };

enum node_kind { NODE_NUMBER, NODE_SELECTOR, NODE_CALL, NODE_AGGREGATE, NODE_BINARY, NODE_NEGATE };

/* In the order of function_names in parse.c. FUNCTION_NONE: a selector without a range. */
enum function {
    FUNCTION_NONE,
    FUNCTION_RATE,
    FUNCTION_INCREASE,
    FUNCTION_SUM,
    FUNCTION_AVG,
    FUNCTION_MIN,
    FUNCTION_MAX,
    FUNCTION_COUNT,
    FUNCTION_LAST,
    FUNCTION_VECTOR /* takes a scalar; all others take a range */
};

/* In the order of aggregate_names in parse.c. */
enum aggregate {
    AGGREGATE_SUM,
    AGGREGATE_AVG,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_COUNT,
    AGGREGATE_TOPK,
    AGGREGATE_BOTTOMK
};

static inline bool aggregate_ranks(enum aggregate a)
{
    return a == AGGREGATE_TOPK || a == AGGREGATE_BOTTOMK;
}

enum op {
    OP_OR,
    OP_AND,
    OP_UNLESS,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_POWER
};

static inline bool op_is_set(enum op op)
{
    return op <= OP_UNLESS;
}

static inline bool op_is_comparison(enum op op)
{
    return op >= OP_EQUAL && op <= OP_GREATER_EQUAL;
}

enum matcher_kind { MATCHER_EQUAL, MATCHER_NOT_EQUAL, MATCHER_REGEX, MATCHER_NOT_REGEX };

struct matcher {
    enum matcher_kind kind;
    struct slice name, value;
};

struct selector {
    struct matcher *matchers; /* the metric's name is one of them */
    size_t matcher_count;
    int64_t range_ms; /* 0: none */
    int64_t offset_ms;
};

/* by (a, b), without (a), on (a), ignoring (a) */
struct grouping {
    bool is_given;
    bool excludes; /* without, ignoring */
    struct slice *labels;
    size_t count;
};

struct node {
    enum node_kind kind;
    enum value_type type;
    size_t at; /* byte offset in the expression, for error messages */
    size_t depth;
    double number;
    struct selector selector;
    enum function function;
    enum aggregate aggregate;
    enum op op;
    bool says_bool; /* a comparison that yields 0 or 1 instead of filtering */
    struct grouping grouping;
    struct node *left, *right; /* operands; a function's argument is `left`, the k of topk is `right` */
};
