#include "base/pcre.h"

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
    X(pcre2_match_data_create_8) X(pcre2_match_data_free_8) X(pcre2_pattern_info_8) \
    X(pcre2_set_heap_limit_8) X(pcre2_set_match_limit_8)
/* clang-format on */

LIBRARY(libpcre2, FUNCTIONS, "libpcre2-8.so.0", "libpcre2-8-0");

#define ALWAYS (PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY)
#define UTF    (PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C)
#define WHOLE  (PCRE2_ANCHORED | PCRE2_ENDANCHORED)

#define MESSAGE_BYTES    160
#define STACK_BYTES      (32 * 1024) /* of the code that PCRE2 makes */
#define STACK_BYTES_MAX  (512 * 1024)
#define NAME_ENTRY_BYTES 2 /* bytes of the group's number, before its name */

struct pcre {
    pcre2_code_8 *code;
    uint32_t steps_factor; /* PCRE_SLOW if it should be machine code, and is not; else 1 */
};

struct pcre_run {
    pcre2_match_context_8 *context;
    pcre2_match_data_8 *data;
    pcre2_jit_stack_8 *stack;
    uint32_t groups;   /* that are asked for */
    struct slice text; /* that the last match was looked for in */
    unsigned found;    /* groups of the last match */
};

struct pcre *pcre_new(struct slice pattern, unsigned options, struct err *e)
{
    int error;
    size_t at;
    PCRE2_UCHAR8 message[MESSAGE_BYTES] = {0};
    uint32_t all = ALWAYS | ((options & PCRE_WHOLE) != 0 ? WHOLE : 0) |
                   ((options & PCRE_CASELESS) != 0 ? PCRE2_CASELESS : 0) |
                   ((options & PCRE_UTF) != 0 ? UTF : PCRE2_NEVER_UTF);
    if (!library_load(&libpcre2, e))
        return NULL;
    pcre2_code_8 *code = lib.pcre2_compile_8((PCRE2_SPTR8)pattern.ptr, pattern.len, all, &error, &at, NULL);
    if (code == NULL) {
        lib.pcre2_get_error_message_8(error, message, sizeof message);
        err_set(e, EX_CONFIG, "found no regular expression: at byte %zu, %s", at + 1, (const char *)message);
        return NULL;
    }
    struct pcre *r = xcalloc(1, sizeof *r);
    r->code = code;
    bool is_slow = (options & PCRE_FAST) != 0 && lib.pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE) != 0;
    r->steps_factor = is_slow ? PCRE_SLOW : 1;
    return r;
}

void pcre_free(struct pcre *r)
{
    if (r == NULL)
        return;
    lib.pcre2_code_free_8(r->code);
    free(r);
}

unsigned pcre_groups(const struct pcre *r)
{
    uint32_t count = 0;
    lib.pcre2_pattern_info_8(r->code, PCRE2_INFO_CAPTURECOUNT, &count);
    return count + 1;
}

unsigned pcre_names(const struct pcre *r)
{
    uint32_t count = 0;
    lib.pcre2_pattern_info_8(r->code, PCRE2_INFO_NAMECOUNT, &count);
    return count;
}

const char *pcre_name(const struct pcre *r, unsigned i, unsigned *number)
{
    uint32_t bytes = 0;
    PCRE2_SPTR8 entry = NULL;
    lib.pcre2_pattern_info_8(r->code, PCRE2_INFO_NAMEENTRYSIZE, &bytes);
    lib.pcre2_pattern_info_8(r->code, PCRE2_INFO_NAMETABLE, &entry);
    entry += (size_t)i * bytes;
    *number = (unsigned)entry[0] << 8 | entry[1];
    return (const char *)entry + NAME_ENTRY_BYTES;
}

struct pcre_run *pcre_run_new(uint32_t groups)
{
    struct pcre_run *run = xcalloc(1, sizeof *run);
    ASSERT(libpcre2.loaded);
    run->groups = groups;
    run->context = lib.pcre2_match_context_create_8(NULL);
    run->data = lib.pcre2_match_data_create_8(groups, NULL);
    run->stack = lib.pcre2_jit_stack_create_8(STACK_BYTES, STACK_BYTES_MAX, NULL);
    ASSERT(run->context != NULL && run->data != NULL);
    lib.pcre2_set_heap_limit_8(run->context, PCRE_KIB_MAX);
    if (run->stack != NULL)
        lib.pcre2_jit_stack_assign_8(run->context, NULL, run->stack);
    return run;
}

void pcre_run_free(struct pcre_run *run)
{
    if (run == NULL)
        return;
    if (run->stack != NULL)
        lib.pcre2_jit_stack_free_8(run->stack);
    lib.pcre2_match_data_free_8(run->data);
    lib.pcre2_match_context_free_8(run->context);
    free(run);
}

int pcre_match(const struct pcre *r, struct pcre_run *run, struct slice text, uint32_t steps)
{
    lib.pcre2_set_match_limit_8(run->context, r->steps_factor * steps);
    int found = lib.pcre2_match_8(r->code, (PCRE2_SPTR8)text.ptr, text.len, 0, 0, run->data, run->context);
    run->text = text;
    found = found == 0 ? (int)run->groups : found; /* 0: it has more groups, and all that are asked for */
    run->found = found > 0 ? (unsigned)found : 0;
    if (found == PCRE2_ERROR_HEAPLIMIT || found == PCRE2_ERROR_NOMEMORY)
        return PCRE_MEMORY;
    return found > 0 ? found : found == PCRE2_ERROR_NOMATCH ? PCRE_NONE : PCRE_LIMIT;
}

bool pcre_group(const struct pcre_run *run, unsigned group, struct slice *found)
{
    const size_t *offsets = lib.pcre2_get_ovector_pointer_8(run->data);
    if (group >= run->found || offsets[2 * (size_t)group] == PCRE2_UNSET)
        return false;
    size_t from = offsets[2 * (size_t)group], to = offsets[2 * (size_t)group + 1];
    *found = slice_of(run->text.ptr + from, to > from ? to - from : 0);
    return true;
}

size_t pcre_expand(const struct pcre_run *run, const char *text, char *out)
{
    size_t len = 0;
    for (const char *p = text, *dollar = text; *p != '\0'; p = dollar) {
        struct slice group = {"", 0};
        dollar = strchrnul(p, '$');
        slice_write(slice_of(p, (size_t)(dollar - p)), out, &len);
        bool is_group = dollar[0] == '$' && dollar[1] >= '0' && dollar[1] <= '9';
        if (is_group && pcre_group(run, (unsigned)(dollar[1] - '0'), &group))
            slice_write(group, out, &len);
        else if (dollar[0] == '$' && !is_group)
            slice_write(slice_of("$", 1), out, &len);
        dollar += dollar[0] != '$' ? 0 : is_group || dollar[1] == '$' ? 2 : 1;
    }
    return len;
}
