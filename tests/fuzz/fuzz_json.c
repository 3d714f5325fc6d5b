/* Any bytes as JSON, read by ours and by jansson: both say the same of what is well-formed, and wherever a
 * pointer leads, both find the same, read a second time as well. */
#define JSON_OBJECT JANSSON_OBJECT /* both have these names */
#define JSON_ARRAY  JANSSON_ARRAY
#define JSON_TRUE   JANSSON_TRUE
#define JSON_FALSE  JANSSON_FALSE
#define JSON_NULL   JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "ingest/decimal.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"
#include "ingest/decode/json_scan.h"
#include "ingest/event.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

#define DEPTH_MAX    64
#define POINTERS_MAX (JSON_PATHS_MAX - 8)
#define POINTER_MAX  (JSON_ESCAPED_NAME_MAX / 6) /* even if each byte is written \u00xx */
#define SCAN_MAX     200

struct pointers {
    struct json_paths *paths;
    const json_t *at[JSON_PATHS_MAX];
    size_t count;
};

static void check_scans(const char *start, const char *end)
{
    for (const char *p = start; p <= end; p++) {
        ASSERT(json_scan_string(start, p, end) == json_scan_string_bytes(p, end));
        ASSERT(json_scan_plain(start, p, end) == json_scan_plain_bytes(p, end));
    }
}

static void add_name(struct text *pointer, const char *name)
{
    text_putc(pointer, '/');
    for (; *name != '\0'; name++) {
        if (*name == '~' || *name == '/')
            text_puts(pointer, *name == '~' ? "~0" : "~1");
        else
            text_putc(pointer, *name);
    }
}

/* A pointer to every value. */
static void add_pointers(struct pointers *ps, struct slice pointer, json_t *value)
{
    void *i = json_object_iter(value);
    if (ps->count == POINTERS_MAX || pointer.len > POINTER_MAX)
        return;
    ASSERT(json_paths_add(ps->paths, pointer) == ps->count);
    ps->at[ps->count++] = value;
    for (; i != NULL; i = json_object_iter_next(value, i)) {
        struct text below = {0};
        text_add(&below, pointer.ptr, pointer.len);
        add_name(&below, json_object_iter_key(i));
        add_pointers(ps, text_slice(&below), json_object_iter_value(i));
        text_fini(&below);
    }
    for (size_t k = 0; k < json_array_size(value); k++) {
        struct text below = {0};
        text_add(&below, pointer.ptr, pointer.len);
        text_printf(&below, "/%zu", k);
        add_pointers(ps, text_slice(&below), json_array_get(value, k));
        text_fini(&below);
    }
}

static void check_number(struct slice text, double want)
{
    int64_t scaled = 0;
    enum decimal_result result = decimal_parse(text, &scaled);
    ASSERT(result != DECIMAL_NONE);
    if (result == DECIMAL_OK)
        ASSERT(fabs((double)scaled / EVENT_SCALE - want) <= 5.1e-7 + fabs(want) * 1e-12);
    else
        ASSERT(fabs(want) > 1e12 * (1 - 1e-12));
}

static void check_string(const struct json_value *v, const json_t *want)
{
    char *out = xmalloc(v->text.len + 1);
    size_t len = json_unescape(v->text, out);
    ASSERT(len <= v->text.len);
    ASSERT(slice_equal(slice_of(out, len), slice_of(json_string_value(want), json_string_length(want))));
    free(out);
    bool is_plain = json_scan_plain_bytes(v->text.ptr, slice_end(v->text)) == slice_end(v->text);
    bool has_escapes = v->text.len > 0 && memchr(v->text.ptr, '\\', v->text.len) != NULL;
    ASSERT(is_plain == (v->type == JSON_PLAIN_STRING));
    ASSERT(has_escapes == (v->type == JSON_ESCAPED_STRING));
}

static void check_value(const struct json_value *v, const json_t *want)
{
    if (json_type_is_string(v->type)) {
        ASSERT(json_typeof(want) == JSON_STRING);
        check_string(v, want);
        return;
    }
    switch (v->type) {
    case JSON_NUMBER:
        ASSERT(json_is_number(want));
        check_number(v->text, json_number_value(want));
        break;
    case JSON_OBJECT:
        ASSERT(json_typeof(want) == JANSSON_OBJECT && v->text.ptr[v->text.len - 1] == '}');
        break;
    case JSON_ARRAY:
        ASSERT(json_typeof(want) == JANSSON_ARRAY && v->text.ptr[v->text.len - 1] == ']');
        break;
    default:
        ASSERT(json_typeof(want) == (v->type == JSON_TRUE    ? JANSSON_TRUE
                                     : v->type == JSON_FALSE ? JANSSON_FALSE
                                                             : JANSSON_NULL));
        ASSERT(slice_is(v->text, v->type == JSON_TRUE ? "true" : v->type == JSON_FALSE ? "false" : "null"));
        break;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A whole text, as jansson reads it: one value and space around it. */
static enum json_result read_whole(const struct json_paths *paths, struct slice text,
                                   struct json_found *found)
{
    const char *at = text.ptr;
    while (text.len > 0 && is_space(*text.ptr))
        text = slice_of(text.ptr + 1, text.len - 1);
    enum json_result result = json_read(paths, text, found, &at);
    ASSERT(at >= text.ptr && at <= slice_end(text));
    while (result == JSON_OK && at < slice_end(text) && is_space(*at))
        at++;
    return result == JSON_OK && at < slice_end(text) ? JSON_BAD : result;
}

static void check_found(struct pointers *ps, struct slice text)
{
    struct json_found found = {0};
    for (int round = 0; round < 2; round++) { /* the second time knowing the names */
        ASSERT(read_whole(ps->paths, text, &found) == JSON_OK);
        for (size_t i = 0; i < ps->count; i++) {
            const struct json_value *v = json_found_get(&found, i);
            ASSERT(v != NULL);
            check_value(v, ps->at[i]);
        }
    }
}

/* Texts that jansson refuses although they are JSON, or that exceed limits of its own. */
static bool is_its_own(const json_error_t *e)
{
    enum json_error_code code = json_error_code(e);
    return code == json_error_invalid_utf8 || code == json_error_numeric_overflow ||
           code == json_error_null_byte_in_key || code == json_error_stack_overflow ||
           strstr(e->text, "invalid Unicode") != NULL;
}

/* The text before the first 0x01 is read first: it makes the names of the rest known. */
static struct slice read_first(const struct json_paths *paths, struct slice text, struct json_found *found)
{
    const char *mark = text.len > 0 ? memchr(text.ptr, 1, text.len) : NULL;
    if (mark == NULL)
        return text;
    (void)read_whole(paths, slice_of(text.ptr, (size_t)(mark - text.ptr)), found);
    return slice_of(mark + 1, (size_t)(slice_end(text) - mark - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t e;
    struct json_found found = {0};
    struct pointers ps = {.paths = json_paths_new(DEPTH_MAX)};
    struct slice text = read_first(ps.paths, slice_of((const char *)data, size), &found);
    if (text.len <= SCAN_MAX)
        check_scans(text.ptr, slice_end(text));
    enum json_result result = read_whole(ps.paths, text, &found);
    json_t *value =
        json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    if (value == NULL)
        ASSERT(result != JSON_OK || is_its_own(&e));
    else /* jansson overlooks a NUL behind a number */
        ASSERT(result != JSON_BAD || memchr(text.ptr, '\0', text.len) != NULL);
    if (value != NULL && result == JSON_OK) {
        add_pointers(&ps, slice_of("", 0), value);
        check_found(&ps, text);
    }
    json_decref(value);
    json_paths_free(ps.paths);
    return 0;
}
