#include "ingest/decode/line_regex.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/pcre.h"

#include <stdlib.h>

#define STEPS_A_LINE 1000
#define STEPS_A_BYTE 4
#define GROUPS_MAX   256 /* of which some may have no name */

struct group {
    unsigned number, slot;
};

struct line_regex {
    struct pcre *regex;
    struct pcre_run *run;
    struct group groups[PARTS_SLOTS];
    size_t group_count;
};

static bool add_names(const struct pcre *r, struct part_names *names, struct err *e)
{
    for (unsigned i = 0, number; i < pcre_names(r); i++) {
        struct slice name = slice_text(pcre_name(r, i, &number));
        if (number >= GROUPS_MAX)
            return err_set(e, EX_CONFIG, "found group %u, expected at most %d groups", number,
                           GROUPS_MAX - 1);
        if (!part_names_add(names, name, number, e))
            return err_prefix(e, "group %u", number);
    }
    return names->count > 0 ||
           err_set(e, EX_CONFIG, "found no named group, expected some, as (?<time>\\S+) (?<host>\\S+)");
}

bool line_regex_names(struct slice pattern, struct part_names *names, struct err *e)
{
    struct pcre *r = pcre_new(pattern, PCRE_WHOLE, e);
    *names = (struct part_names){0};
    bool good = r != NULL && add_names(r, names, e);
    pcre_free(r);
    return good;
}

struct line_regex *line_regex_new(struct slice pattern)
{
    struct line_regex *lr = xcalloc(1, sizeof *lr);
    struct err e;
    lr->regex = pcre_new(pattern, PCRE_WHOLE | PCRE_FAST, &e);
    ASSERT(lr->regex != NULL);
    lr->run = pcre_run_new(GROUPS_MAX);
    return lr;
}

void line_regex_free(struct line_regex *lr)
{
    if (lr == NULL)
        return;
    pcre_run_free(lr->run);
    pcre_free(lr->regex);
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
    int found = pcre_match(lr->regex, lr->run, line, steps);
    if (UNLIKELY(found <= 0)) {
        *reason = found == PCRE_NONE ? REJECT_REGEX : REJECT_MATCH_LIMIT;
        *at = line.ptr;
        return false;
    }
    struct slice part;
    for (size_t i = 0; i < lr->group_count; i++) {
        if (pcre_group(lr->run, lr->groups[i].number, &part))
            parts_put(ps, lr->groups[i].slot, part, false);
    }
    return true;
}
