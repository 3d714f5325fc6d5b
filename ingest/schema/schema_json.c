#include "ingest/schema/schema_json.h"

#include "base/library.h"

#include <sysexits.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(json_loadb) X(json_delete) X(json_object_get) X(json_string_value) X(json_string_length) \
    X(json_integer_value) X(json_array_size) X(json_array_get)
/* clang-format on */

LIBRARY(libjansson, FUNCTIONS, "libjansson.so.4", "libjansson4");

bool schema_json_open(struct err *e)
{
    return library_load(&libjansson, e);
}

json_t *schema_json_parse(struct slice text, struct err *e)
{
    json_error_t why;
    json_t *tree = lib.json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (tree == NULL)
        err_set(e, EX_DATAERR, "line %d, column %d: %s", why.line, why.column, why.text);
    return tree;
}

/* Nobody else has a reference to the tree. */
void schema_json_free(json_t *tree)
{
    if (tree != NULL)
        lib.json_delete(tree);
}

const json_t *schema_json_member(const json_t *of, const char *name)
{
    return json_is_object(of) ? lib.json_object_get(of, name) : NULL;
}

struct slice schema_json_text(const json_t *value)
{
    if (!json_is_string(value))
        return (struct slice){NULL, 0};
    return slice_of(lib.json_string_value(value), lib.json_string_length(value));
}

int64_t schema_json_integer(const json_t *value, int64_t otherwise)
{
    return json_is_integer(value) ? (int64_t)lib.json_integer_value(value) : otherwise;
}

size_t schema_json_count(const json_t *array)
{
    return json_is_array(array) ? lib.json_array_size(array) : 0;
}

const json_t *schema_json_element(const json_t *array, size_t i)
{
    return lib.json_array_get(array, i);
}
