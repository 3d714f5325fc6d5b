#include "prom/regex.h"

#include "base/library.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "prom/regex_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <inttypes.h>
#include <pcre2.h>
#include <stdlib.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(pcre2_code_free_8) X(pcre2_compile_8) X(pcre2_get_error_message_8) X(pcre2_match_8) \
    X(pcre2_match_context_create_8) X(pcre2_match_context_free_8) X(pcre2_match_data_create_from_pattern_8) \
    X(pcre2_match_data_free_8) X(pcre2_set_heap_limit_8) X(pcre2_set_match_limit_8) \
    X(pcre2_get_ovector_pointer_8) X(pcre2_get_ovector_count_8) X(pcre2_substring_number_from_name_8)
/* clang-format on */

LIBRARY(libpcre2, FUNCTIONS, "libpcre2-8.so.0", "libpcre2-8-0");

#define OPTIONS                                                                             \
    (PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_UTF | \
     PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C)
#define MESSAGE_BYTES    160
#define GROUP_BYTES      64
/* The shortest item of a class, as `\pN`; a member that is a single byte costs nothing more. */
#define CLASS_ITEM_BYTES 3
/* PCRE2 does not report how many steps it took: a match gets a low limit first, and is retried with more. */
static const uint32_t tries[] = {160, 800, 4000, REGEX_STEPS_MAX};

struct regex {
    pcre2_code_8 *code;
    pcre2_match_context_8 *context;
    pcre2_match_data_8 *data;
    size_t step_cost;                 /* most looks at one character within one step */
    char quoted[SUGGEST_QUOTE_BYTES]; /* the pattern */
};

struct regex *regex_new(struct slice pattern, struct err *e)
{
    int error;
    size_t at;
    PCRE2_UCHAR8 message[MESSAGE_BYTES] = {0};
    struct regex_shape shape;
    if (!regex_syntax_check(pattern, &shape, e) || !library_load(&libpcre2, e))
        return NULL;
    struct regex *r = xcalloc(1, sizeof *r);
    r->step_cost = 1 + shape.class_bytes / CLASS_ITEM_BYTES;
    suggest_quote(pattern, r->quoted);
    r->code = lib.pcre2_compile_8((PCRE2_SPTR8)(pattern.len > 0 ? pattern.ptr : ""), pattern.len, OPTIONS,
                                  &error, &at, NULL);
    if (r->code == NULL) {
        lib.pcre2_get_error_message_8(error, message, sizeof message);
        err_set(e, EX_PROTOCOL, "found %s, expected a regular expression: at byte %zu, %s", r->quoted, at + 1,
                (const char *)message);
        regex_free(r);
        return NULL;
    }
    r->context = lib.pcre2_match_context_create_8(NULL);
    r->data = lib.pcre2_match_data_create_from_pattern_8(r->code, NULL);
    if (r->context == NULL || r->data == NULL) {
        err_set(e, EX_OSERR, "out of memory for the regular expression %s", r->quoted);
        regex_free(r);
        return NULL;
    }
    lib.pcre2_set_heap_limit_8(r->context, REGEX_KIB_MAX);
    return r;
}

void regex_free(struct regex *r)
{
    if (r == NULL)
        return;
    lib.pcre2_match_data_free_8(r->data);
    lib.pcre2_match_context_free_8(r->context);
    lib.pcre2_code_free_8(r->code);
    free(r);
}

/* One step may look at each character of the text, as `[…]*` does. */
static uint32_t steps_max(const struct regex *r, size_t text_len)
{
    size_t most = REGEX_LOOKS_MAX / ((text_len + 1) * r->step_cost) + 1;
    return most < REGEX_STEPS_MAX ? (uint32_t)most : REGEX_STEPS_MAX;
}

bool regex_matches(const struct regex *r, struct slice text, struct budget *b, bool *matches, struct err *e)
{
    const uint32_t most = steps_max(r, text.len);
    uint32_t steps = 0;
    int found = PCRE2_ERROR_MATCHLIMIT;
    for (size_t i = 0; found == PCRE2_ERROR_MATCHLIMIT && steps < most; i++) {
        steps = tries[i] < most ? tries[i] : most;
        if (!budget_take(b, BUDGET_REGEX_STEPS, steps, e))
            return false;
        lib.pcre2_set_match_limit_8(r->context, steps);
        found = lib.pcre2_match_8(r->code, (PCRE2_SPTR8)(text.len > 0 ? text.ptr : ""), text.len, 0, 0,
                                  r->data, r->context);
    }
    *matches = found >= 0;
    return found >= 0 || found == PCRE2_ERROR_NOMATCH ||
           err_set(e, EX_USAGE,
                   "the regular expression %s takes more than %" PRIu32
                   " steps or %d MiB for a text of %zu bytes: write a simpler one",
                   r->quoted, most, REGEX_KIB_MAX / 1024, text.len);
}

/* -1: there is no such group. */
static int number_of_group(const struct regex *r, struct slice name)
{
    char copy[GROUP_BYTES], *end;
    if (name.len >= sizeof copy)
        return -1;
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    long number = strtol(copy, &end, 10);
    if (*end != '\0')
        number = lib.pcre2_substring_number_from_name_8(r->code, (PCRE2_SPTR8)copy);
    return number >= 0 && number < (long)lib.pcre2_get_ovector_count_8(r->data) ? (int)number : -1;
}

struct slice regex_group(const struct regex *r, struct slice name, struct slice text)
{
    int number = number_of_group(r, name);
    const PCRE2_SIZE *ends = lib.pcre2_get_ovector_pointer_8(r->data);
    if (number < 0 || ends[2 * number] == PCRE2_UNSET)
        return slice_of("", 0);
    return slice_of(text.ptr + ends[2 * number], ends[2 * number + 1] - ends[2 * number]);
}
