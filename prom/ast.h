/* ast.h - a PromQL expression as a tree: parse.c builds it, eval.c evaluates it.
 *
 * Subset : docs/PROMETHEUS.md lists the supported features.
 * Owner  : nodes and their texts live in the arena that parse_expression() was given.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define METRIC_LABEL "__name__"

enum value_type { TYPE_SCALAR, TYPE_VECTOR, TYPE_RANGE, TYPE_TEXT };

enum node_kind {
    NODE_NUMBER,
    NODE_TEXT,
    NODE_SELECTOR,
    NODE_SUBQUERY,
    NODE_CALL,
    NODE_AGGREGATE,
    NODE_BINARY,
    NODE_NEGATE
};

/* In the order of `functions` in functions.c. FUNCTION_NONE: a selector without a range. */
enum function {
    FUNCTION_NONE,
    /* of ranges */
    FUNCTION_RATE,
    FUNCTION_INCREASE,
    FUNCTION_SUM,
    FUNCTION_AVG,
    FUNCTION_MIN,
    FUNCTION_MAX,
    FUNCTION_COUNT,
    FUNCTION_LAST,
    FUNCTION_PRESENT,
    FUNCTION_STDDEV,
    FUNCTION_STDVAR,
    FUNCTION_QUANTILE,
    FUNCTION_CHANGES,
    FUNCTION_RESETS,
    FUNCTION_IDELTA,
    FUNCTION_DERIV,
    FUNCTION_PREDICT,
    FUNCTION_ABSENT_RANGE,
    /* of vectors and scalars; TIMESTAMP of a selector is read like a function of ranges */
    FUNCTION_TIMESTAMP,
    FUNCTION_ABSENT,
    FUNCTION_SCALAR,
    FUNCTION_VECTOR,
    FUNCTION_TIME,
    FUNCTION_PI,
    FUNCTION_SORT,
    FUNCTION_SORT_DESC,
    FUNCTION_LABEL_REPLACE,
    FUNCTION_LABEL_JOIN,
    FUNCTION_HISTOGRAM_QUANTILE,
    FUNCTION_HISTOGRAM_FRACTION,
    FUNCTION_HISTOGRAM_COUNT,
    FUNCTION_HISTOGRAM_SUM,
    FUNCTION_HISTOGRAM_AVG,
    FUNCTION_HISTOGRAM_STDDEV,
    FUNCTION_HISTOGRAM_STDVAR,
    FUNCTION_ROUND,
    FUNCTION_CLAMP,
    FUNCTION_CLAMP_MIN,
    FUNCTION_CLAMP_MAX,
    /* of the time in a value, or of now */
    FUNCTION_MINUTE,
    FUNCTION_HOUR,
    FUNCTION_DAY_OF_WEEK,
    FUNCTION_DAY_OF_MONTH,
    FUNCTION_DAY_OF_YEAR,
    FUNCTION_DAYS_IN_MONTH,
    FUNCTION_MONTH,
    FUNCTION_YEAR,
    /* of one number, in the order of `maths` in math.c */
    FUNCTION_MATH
};

/* In the order of aggregate_names in parse_call.c. */
enum aggregate {
    AGGREGATE_SUM,
    AGGREGATE_AVG,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_COUNT,
    AGGREGATE_GROUP,
    AGGREGATE_STDDEV,
    AGGREGATE_STDVAR,
    AGGREGATE_TOPK, /* this and the following take a parameter */
    AGGREGATE_BOTTOMK,
    AGGREGATE_QUANTILE,
    AGGREGATE_COUNT_VALUES
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
    OP_POWER,
    OP_ATAN2
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

/* Which time is meant: that of the step, or the same for all steps by the modifier @. */
enum base { BASE_STEP, BASE_START, BASE_END, BASE_TIME };

struct selector {
    struct matcher *matchers; /* the metric's name is one of them; a subquery has none */
    size_t matcher_count;
    int64_t range_ms; /* 0: none */
    int64_t step_ms;  /* of a subquery */
    int64_t offset_ms;
    enum base base;
    int64_t base_ms; /* of BASE_TIME */
};

/* by (a, b), without (a), on (a), ignoring (a) */
struct grouping {
    bool is_given;
    bool excludes; /* without, ignoring */
    struct slice *labels;
    size_t count;
};

/* The sides of a match of vectors: which one may have many series for one of the other. */
enum match_kind { MATCH_ONE_TO_ONE, MATCH_MANY_LEFT, MATCH_MANY_RIGHT };

struct node {
    enum node_kind kind;
    enum value_type type;
    size_t at; /* byte offset in the expression, for error messages */
    size_t depth;
    double number;
    struct slice text; /* of a NODE_TEXT */
    struct selector selector;
    enum function function;
    size_t math; /* of FUNCTION_MATH: which one */
    struct node **arguments;
    size_t argument_count;
    enum aggregate aggregate;
    enum op op;
    bool says_bool; /* a comparison that yields 0 or 1 instead of filtering */
    struct grouping grouping;
    enum match_kind match;
    struct grouping include;   /* the labels in group_left() or group_right() */
    struct node *left, *right; /* operands; an aggregation's or subquery's vector, and its parameter */
};
