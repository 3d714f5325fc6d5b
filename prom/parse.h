/* parse.h - parses the text of a PromQL expression into a tree and checks its types. Called by eval.c and
 * list.c.
 *
 * Subset : docs/PROMETHEUS.md. Other features of PromQL are refused by name, with the reason.
 * Limits : PARSE_BYTES_MAX of text; PARSE_DEPTH_MAX of the tree.
 * Errors : EX_PROTOCOL, "LINE:COLUMN: parse error: …".
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "prom/ast.h"

#define PARSE_BYTES_MAX 8192
#define PARSE_DEPTH_MAX 64

/* NULL on failure. The tree borrows from `text` and lives in `arena`; its type is scalar or vector. */
struct node *parse_expression(struct slice text, struct arena *arena, struct err *e) MUST_CHECK;
/* Parses a selector alone, as in `match[]`. NULL on failure. */
struct node *parse_selector(struct slice text, struct arena *arena, struct err *e) MUST_CHECK;
