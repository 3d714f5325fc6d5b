/* schema_json.h - JSON as a tree, by libjansson: the texts of schemas and the answers of a registry. They are
 * few, so a tree may be made of them; messages are read without one (ingest/decode/json.h).
 *
 * Owner   : schema_json_free() frees a tree; everything that is taken from it lives as long.
 * Errors  : EX_OSFILE: libjansson is missing; EX_DATAERR: it is no JSON.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <jansson.h>
#include <stdint.h>

bool schema_json_open(struct err *e) MUST_CHECK;
/* NULL: *e says why. Pre: schema_json_open(). */
json_t *schema_json_parse(struct slice text, struct err *e) MUST_CHECK;
void schema_json_free(json_t *tree);
/* The member of an object; NULL: there is none, or `of` is NULL or no object. */
const json_t *schema_json_member(const json_t *of, const char *name);
/* The text of a string; ptr NULL: it is none. */
struct slice schema_json_text(const json_t *value);
/* The whole number; `otherwise`: it is none. */
int64_t schema_json_integer(const json_t *value, int64_t otherwise);
/* The number of elements of an array; 0: it is none. */
size_t schema_json_count(const json_t *array);
const json_t *schema_json_element(const json_t *array, size_t i);
