/* route.h - the route of a path: the path with what differs from object to object replaced, so that a report
 * by `route` has a series for each kind of page. derived.c calls it.
 *
 *   /user/17/orders/0b0f3b5a-…   →   /user/:id/orders/:id
 *
 * Rules   : `match` is a regular expression of PCRE2, looked for anywhere in the path. The first rule that
 *           matches decides: what it matched is replaced, and the rest of the path stays. In `replace`, $1 to
 *           $9 stand for groups, $0 for what was matched, $$ for a dollar.
 * Default : if no rule matches, each segment that is a number, a UUID, or eight or more hexadecimal digits
 *           with a decimal one among them, becomes ":id".
 * Bounded : all rules together may take ROUTE_STEPS steps, and ROUTE_STEPS_A_BYTE for each byte, at most
 *           ROUTE_STEPS_MAX. A path that takes more has the route ROUTE_LIMIT.
 * Threads : rules are shared; a struct pcre_run is one thread's.
 * Errors  : EX_CONFIG, "found …, expected …".
 */
#pragma once

#include "base/arena.h"
#include "base/pcre.h"
#include "base/text.h"

#define ROUTE_RULES_MAX    64
#define ROUTE_GROUPS       10 /* $0 to $9 */
#define ROUTE_STEPS        4000
#define ROUTE_STEPS_A_BYTE 4
#define ROUTE_STEPS_MAX    20000
#define ROUTE_LIMIT        "(match limit)"

struct route_rule {
    char *match, *replace;
    struct pcre *regex;
};

/* A struct of zeros has no rules. */
struct route_rules {
    size_t count;
    struct route_rule list[ROUTE_RULES_MAX];
};

bool route_add_rule(struct route_rules *rs, struct slice match, struct slice replace,
                    struct err *e) MUST_CHECK;
void route_fini(struct route_rules *rs);
/* Makes the route: a slice of the path, or of the arena. `run` has ROUTE_GROUPS groups; it may be NULL if
 * there are no rules. */
struct slice route_make(const struct route_rules *rs, struct pcre_run *run, struct slice path,
                        struct arena *memory);
