#include "base/suggest.h"
#include "prom/functions.h"
#include "prom/parser.h"

#include <math.h>

#define ARGUMENTS_MAX 32

static const char *const aggregate_names[] = {"sum",      "avg",          "min",    "max",  "count",
                                              "group",    "stddev",       "stdvar", "topk", "bottomk",
                                              "quantile", "count_values", NULL};

static bool take_aggregate(struct parser *p, struct node *n)
{
    struct node *first, *second = NULL;
    bool has_parameter = n->aggregate >= AGGREGATE_TOPK;
    const char *name = aggregate_names[n->aggregate];
    if (!parser_grouping(p, "by", "without", &n->grouping) || !parser_take_sign(p, "(") ||
        (first = parser_expression(p, PRECEDENCE_MIN)) == NULL)
        return false;
    if (has_parameter &&
        (!parser_take_sign(p, ",") || (second = parser_expression(p, PRECEDENCE_MIN)) == NULL))
        return false;
    if (!parser_take_sign(p, ")") || !parser_grouping(p, "by", "without", &n->grouping))
        return false;
    n->left = has_parameter ? second : first;
    n->right = has_parameter ? first : NULL;
    enum value_type parameter = n->aggregate == AGGREGATE_COUNT_VALUES ? TYPE_TEXT : TYPE_SCALAR;
    if (has_parameter && !parser_want(p, first, parameter, name))
        return false;
    if (parameter == TYPE_TEXT && has_parameter && !lex_is_label(first->text))
        return FAIL(p, first->at, "count_values expects the name of a label");
    return parser_want(p, n->left, TYPE_VECTOR, name) && parser_deepen(p, n, n->left) &&
           parser_deepen(p, n, n->right);
}

/* The letter of argument `i`, as in functions.h; '\0': there is no such argument. */
static char letter_of(const struct function_entry *f, size_t i, bool *is_optional)
{
    char last = '\0';
    *is_optional = false;
    for (const char *at = f->arguments; *at != '\0'; at++) {
        if (*at == '?') {
            *is_optional = true;
        } else if (*at == '*') {
            return last;
        } else {
            last = *at;
            if (i-- == 0)
                return last;
        }
    }
    return '\0';
}

static bool take_argument(struct parser *p, struct node *n, const struct function_entry *f)
{
    bool is_optional;
    char letter = letter_of(f, n->argument_count, &is_optional);
    if (letter == '\0' || n->argument_count == ARGUMENTS_MAX)
        return FAIL(p, p->token.at, "%s takes no more arguments", f->name);
    enum value_type type = letter == 'r'   ? TYPE_RANGE
                           : letter == 'v' ? TYPE_VECTOR
                           : letter == 's' ? TYPE_SCALAR
                                           : TYPE_TEXT;
    struct node *argument = parser_expression(p, PRECEDENCE_MIN);
    if (argument == NULL || !parser_want(p, argument, type, f->name) || !parser_deepen(p, n, argument))
        return false;
    n->arguments[n->argument_count++] = argument;
    return true;
}

static bool take_arguments(struct parser *p, struct node *n, const struct function_entry *f)
{
    bool is_optional;
    n->arguments = arena_add(p->arena, ARGUMENTS_MAX * sizeof *n->arguments);
    if (!parser_take_sign(p, "("))
        return false;
    while (!parser_is_sign(p, ")")) {
        if (!take_argument(p, n, f))
            return false;
        if (!parser_goes_on(p, ")"))
            return false;
    }
    if (letter_of(f, n->argument_count, &is_optional) != '\0' && !is_optional)
        return FAIL(p, p->token.at, "%s expects more arguments", f->name);
    return parser_next(p);
}

/* What is not answered of functions that are. */
static bool check_call(struct parser *p, const struct node *n)
{
    for (size_t i = 0; i < n->argument_count; i++) {
        const struct node *argument = n->arguments[i];
        bool counts = n->function == FUNCTION_RATE || n->function == FUNCTION_INCREASE;
        if (counts && argument->kind == NODE_SUBQUERY)
            return FAIL(p, n->at, "%s of a subquery is not answered here: its values are no counts",
                        functions_name(n->function));
        if (n->function == FUNCTION_LABEL_JOIN && i != 0 && i != 2 && !lex_is_label(argument->text))
            return FAIL(p, argument->at, "label_join expects the name of a label");
    }
    if (n->function == FUNCTION_LABEL_REPLACE && !lex_is_label(n->arguments[1]->text))
        return FAIL(p, n->arguments[1]->at, "label_replace expects the name of a label");
    return true;
}

static bool fail_function(struct parser *p, const struct token *name)
{
    char hint[SUGGEST_HINT_BYTES], quoted[SUGGEST_QUOTE_BYTES];
    const char *reason = functions_refusal(name->text);
    suggest_quote(name->text, quoted);
    if (reason != NULL)
        return FAIL(p, name->at, "the function %s is not answered here: %s", quoted, reason);
    return FAIL(p, name->at, "there is no function %s%s", quoted, functions_hint(name->text, hint));
}

static struct node *take_call(struct parser *p, const struct token *name)
{
    const struct function_entry *f = functions_find(name->text);
    if (f == NULL) {
        fail_function(p, name);
        return NULL;
    }
    struct node *n = parser_node(p, NODE_CALL, name->at);
    n->function = f->id;
    n->math = f->math;
    n->type = f->type;
    return take_arguments(p, n, f) && check_call(p, n) ? n : NULL;
}

struct node *parser_name(struct parser *p)
{
    const struct token name = p->token;
    if (!parser_next(p))
        return NULL;
    bool calls = parser_is_sign(p, "(");
    int found = parser_find(aggregate_names, name.text, true);
    if (found >= 0 && (calls || parser_is_word(p, "by") || parser_is_word(p, "without"))) {
        struct node *n = parser_node(p, NODE_AGGREGATE, name.at);
        n->aggregate = (enum aggregate)found;
        return take_aggregate(p, n) ? n : NULL;
    }
    if (parser_is_keyword(name.text, "inf") || parser_is_keyword(name.text, "nan")) {
        struct node *n = parser_node(p, NODE_NUMBER, name.at);
        n->type = TYPE_SCALAR;
        n->number = parser_is_keyword(name.text, "inf") ? INFINITY : NAN;
        return n;
    }
    return calls ? take_call(p, &name) : parser_selector(p, name.text, name.at);
}
