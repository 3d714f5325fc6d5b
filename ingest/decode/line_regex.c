#include "ingest/decode/line_regex.h"

#include "base/check.h"
#include "base/library.h"
#include "base/mem.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(pcre2_code_free_8) X(pcre2_compile_8) X(pcre2_get_error_message_8) X(pcre2_get_ovector_pointer_8) \
    X(pcre2_jit_compile_8) X(pcre2_jit_stack_assign_8) X(pcre2_jit_stack_create_8) X(pcre2_jit_stack_free_8) \
    X(pcre2_match_8) X(pcre2_match_context_create_8) X(pcre2_match_context_free_8) \
    X(pcre2_match_data_create_from_pattern_8) X(pcre2_match_data_free_8) X(pcre2_pattern_info_8) \
    X(pcre2_set_match_limit_8)
/* clang-format on */

LIBRARY(libpcre2, FUNCTIONS, "libpcre2-8.so.0", "libpcre2-8-0");

#define OPTIONS (PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF)

#define MESSAGE_BYTES    160
#define STACK_BYTES      (32 * 1024) /* of the code that PCRE2 makes */
#define STACK_BYTES_MAX  (512 * 1024)
#define STEPS_A_LINE     1000
#define STEPS_A_BYTE     4
#define STEPS_SLOW       4 /* times the steps if PCRE2 interprets */
#define NAME_ENTRY_BYTES 2 /* bytes of the group's number, before its name */

struct group {
    unsigned number, slot;
};

struct line_regex {
    pcre2_code_8 *code;
    pcre2_match_context_8 *context;
    pcre2_match_data_8 *data;
    pcre2_jit_stack_8 *stack; /* NULL: PCRE2 interprets */
    struct group groups[PARTS_SLOTS];
    size_t group_count;
};

static pcre2_code_8 *compile(struct slice pattern, struct err *e)
{
    int error;
    size_t at;
    PCRE2_UCHAR8 message[MESSAGE_BYTES] = {0};
    if (!library_load(&libpcre2, e))
        return NULL;
    pcre2_code_8 *code =
        lib.pcre2_compile_8((PCRE2_SPTR8)pattern.ptr, pattern.len, OPTIONS, &error, &at, NULL);
    if (code != NULL)
        return code;
    lib.pcre2_get_error_message_8(error, message, sizeof message);
    err_set(e, EX_CONFIG, "found no regular expression: at byte %zu, %s", at + 1, (const char *)message);
    return NULL;
}

static bool add_names(const pcre2_code_8 *code, struct part_names *names, struct err *e)
{
    uint32_t count = 0, bytes = 0;
    PCRE2_SPTR8 entry = NULL;
    lib.pcre2_pattern_info_8(code, PCRE2_INFO_NAMECOUNT, &count);
    lib.pcre2_pattern_info_8(code, PCRE2_INFO_NAMEENTRYSIZE, &bytes);
    lib.pcre2_pattern_info_8(code, PCRE2_INFO_NAMETABLE, &entry);
    for (; count > 0; count--, entry += bytes) {
        unsigned number = (unsigned)entry[0] << 8 | entry[1];
        if (!part_names_add(names, slice_text((const char *)entry + NAME_ENTRY_BYTES), number, e))
            return err_prefix(e, "group %u", number);
    }
    return names->count > 0 ||
           err_set(e, EX_CONFIG, "found no named group, expected some, as (?<time>\\S+) (?<host>\\S+)");
}

bool line_regex_names(struct slice pattern, struct part_names *names, struct err *e)
{
    pcre2_code_8 *code = compile(pattern, e);
    *names = (struct part_names){0};
    bool good = code != NULL && add_names(code, names, e);
    if (code != NULL)
        lib.pcre2_code_free_8(code);
    return good;
}

struct line_regex *line_regex_new(struct slice pattern)
{
    struct line_regex *lr = xcalloc(1, sizeof *lr);
    struct err e;
    lr->code = compile(pattern, &e);
    ASSERT(lr->code != NULL);
    lr->context = lib.pcre2_match_context_create_8(NULL);
    lr->data = lib.pcre2_match_data_create_from_pattern_8(lr->code, NULL);
    ASSERT(lr->context != NULL && lr->data != NULL);
    if (lib.pcre2_jit_compile_8(lr->code, PCRE2_JIT_COMPLETE) == 0)
        lr->stack = lib.pcre2_jit_stack_create_8(STACK_BYTES, STACK_BYTES_MAX, NULL);
    if (lr->stack != NULL)
        lib.pcre2_jit_stack_assign_8(lr->context, NULL, lr->stack);
    return lr;
}

void line_regex_free(struct line_regex *lr)
{
    if (lr == NULL)
        return;
    if (lr->stack != NULL)
        lib.pcre2_jit_stack_free_8(lr->stack);
    lib.pcre2_match_data_free_8(lr->data);
    lib.pcre2_match_context_free_8(lr->context);
    lib.pcre2_code_free_8(lr->code);
    free(lr);
}

void line_regex_add(struct line_regex *lr, unsigned group, unsigned slot)
{
    ASSERT(lr->group_count < PARTS_SLOTS && slot < PARTS_SLOTS);
    lr->groups[lr->group_count++] = (struct group){group, slot};
}

bool line_regex_read(struct line_regex *lr, struct slice line, struct parts *ps, enum reject_reason *reason,
                     const char **at)
{
    uint32_t steps = line.len < LINE_REGEX_STEPS_MAX / STEPS_A_BYTE
                         ? STEPS_A_LINE + STEPS_A_BYTE * (uint32_t)line.len
                         : LINE_REGEX_STEPS_MAX;
    steps = steps < LINE_REGEX_STEPS_MAX ? steps : LINE_REGEX_STEPS_MAX;
    lib.pcre2_set_match_limit_8(lr->context, lr->stack != NULL ? steps : STEPS_SLOW * steps);
    int found = lib.pcre2_match_8(lr->code, (PCRE2_SPTR8)line.ptr, line.len, 0, 0, lr->data, lr->context);
    if (UNLIKELY(found <= 0)) {
        *reason = found == PCRE2_ERROR_NOMATCH ? REJECT_REGEX : REJECT_MATCH_LIMIT;
        *at = line.ptr;
        return false;
    }
    const size_t *offsets = lib.pcre2_get_ovector_pointer_8(lr->data);
    for (size_t i = 0; i < lr->group_count; i++) {
        const struct group *g = &lr->groups[i];
        size_t from = offsets[2 * g->number], to = offsets[2 * g->number + 1];
        if (g->number < (unsigned)found && from != PCRE2_UNSET)
            parts_put(ps, g->slot, slice_of(line.ptr + from, to - from), false);
    }
    return true;
}
