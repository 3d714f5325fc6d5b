#include "prom/regex.h"

#include "base/mem.h"
#include "base/pcre.h"
#include "base/suggest.h"
#include "prom/regex_syntax.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#define GROUPS_MAX       65536 /* more than PCRE2 allows */
/* The shortest item of a class, as `\pN`; a member that is a single byte costs nothing more. */
#define CLASS_ITEM_BYTES 3
/* PCRE2 does not report how many steps it took: a match gets a low limit first, and is retried with more. */
static const uint32_t tries[] = {160, 800, 4000, REGEX_STEPS_MAX};

struct regex {
    struct pcre *code;
    struct pcre_run *run;
    size_t step_cost;                 /* most looks at one character within one step */
    char quoted[SUGGEST_QUOTE_BYTES]; /* the pattern */
};

struct regex *regex_new(struct slice pattern, struct err *e)
{
    struct regex_shape shape;
    if (!regex_syntax_check(pattern, &shape, e))
        return NULL;
    struct regex *r = xcalloc(1, sizeof *r);
    r->step_cost = 1 + shape.class_bytes / CLASS_ITEM_BYTES;
    suggest_quote(pattern, r->quoted);
    r->code = pcre_new(pattern, PCRE_WHOLE | PCRE_UTF, e);
    if (r->code == NULL) {
        if (e->code == EX_CONFIG) {
            e->code = EX_PROTOCOL;
            err_prefix(e, "found %s, expected a regular expression", r->quoted);
        }
        regex_free(r);
        return NULL;
    }
    r->run = pcre_run_new(pcre_groups(r->code));
    return r;
}

void regex_free(struct regex *r)
{
    if (r == NULL)
        return;
    pcre_run_free(r->run);
    pcre_free(r->code);
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
    int found = PCRE_LIMIT;
    for (size_t i = 0; found == PCRE_LIMIT && steps < most; i++) {
        steps = tries[i] < most ? tries[i] : most;
        if (!budget_take(b, BUDGET_REGEX_STEPS, steps, e))
            return false;
        found = pcre_match(r->code, r->run, text, steps);
    }
    *matches = found > 0;
    return found >= 0 || err_set(e, EX_USAGE,
                                 "the regular expression %s takes more than %" PRIu32
                                 " steps or %d MiB for a text of %zu bytes: write a simpler one",
                                 r->quoted, most, PCRE_KIB_MAX / 1024, text.len);
}

/* UINT_MAX: there is no such group. */
static unsigned number_of_group(const struct regex *r, struct slice name)
{
    unsigned number = 0;
    size_t at = 0;
    for (; at < name.len && name.ptr[at] >= '0' && name.ptr[at] <= '9' && number < GROUPS_MAX; at++)
        number = number * 10 + (unsigned)(name.ptr[at] - '0');
    if (at == name.len)
        return number;
    for (unsigned i = 0; i < pcre_names(r->code); i++) {
        if (slice_is(name, pcre_name(r->code, i, &number)))
            return number;
    }
    return UINT_MAX;
}

struct slice regex_group(const struct regex *r, struct slice name)
{
    struct slice group;
    return pcre_group(r->run, number_of_group(r, name), &group) ? group : slice_of("", 0);
}
