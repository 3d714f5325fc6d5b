/* parse.h - the text of a PromQL expression into a tree, with types checked.
 *
 * Subset : docs/PROMETHEUS.md. What PromQL has and this has not (subqueries, group_left, other functions) is
 *          refused by name.
 * Limits : PARSE_BYTES_MAX of text; PARSE_DEPTH_MAX of the tree.
 * Errors : EX_USAGE, "LINE:COLUMN: parse error: …".
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "prom/ast.h"

#define PARSE_BYTES_MAX 8192
#define PARSE_DEPTH_MAX 64

/* NULL on failure. The tree borrows from `text` and lives in `arena`; it is a scalar or a vector. */
struct node *parse_expression(struct slice text, struct arena *arena, struct err *e) MUST_CHECK;
/* A selector alone, as `match[]` gives it. */
struct node *parse_selector(struct slice text, struct arena *arena, struct err *e) MUST_CHECK;

const char *parse_function_name(enum function f);
