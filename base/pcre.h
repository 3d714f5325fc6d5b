/* pcre.h - regular expressions of PCRE2 over bytes or UTF-8, each match within a limit of steps. Decoders,
 * derived fields and prom/regex.c call it.
 *
 * Bounded : a match that takes more steps than it may is none. PCRE2 counts steps; one takes some ns. In the
 *           worst case it looks at the rest of the text, as a lookahead can.
 *           A match that needs more than PCRE_KIB_MAX of memory is none, either.
 * Cost    : no allocation for a match. PCRE_FAST makes machine code of the expression. If the system forbids
 *           code that is made at run time, PCRE2 interprets, and a match may take PCRE_SLOW times the steps,
 *           since it has more of them.
 * Owner   : the expression's text is not kept.
 * Threads : an expression is shared; a struct pcre_run is one thread's.
 * Errors  : EX_CONFIG: the expression is wrong; EX_OSFILE: PCRE2 is not installed.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

#define PCRE_SLOW    4
#define PCRE_KIB_MAX 16384

/* Options of an expression. */
#define PCRE_WHOLE    1u /* it must match the whole text */
#define PCRE_CASELESS 2u
#define PCRE_FAST     4u /* make machine code */
#define PCRE_UTF      8u /* characters are of UTF-8, and an invalid byte matches nothing */

enum { PCRE_NONE = 0, PCRE_LIMIT = -1, PCRE_MEMORY = -2 }; /* results of pcre_match() */

struct pcre;
struct pcre_run;

struct pcre *pcre_new(struct slice pattern, unsigned options, struct err *e) MUST_CHECK;
void pcre_free(struct pcre *r);
/* The number of its groups, group 0 included. */
unsigned pcre_groups(const struct pcre *r);
/* The numbers and names of its named groups. Returns how many there are. */
unsigned pcre_names(const struct pcre *r);
const char *pcre_name(const struct pcre *r, unsigned i, unsigned *number);

/* For matches of which the first `groups` groups are asked for, group 0 included. Pre: there is an
 * expression. */
struct pcre_run *pcre_run_new(uint32_t groups);
void pcre_run_free(struct pcre_run *run);
/* Above 0: it matches. Below 0: it needs more steps (PCRE_LIMIT), or more memory than PCRE_KIB_MAX. */
int pcre_match(const struct pcre *r, struct pcre_run *run, struct slice text, uint32_t steps);
/* Writes a text in which $0 to $9 stand for groups of the last match, $$ for a dollar. Returns its length. It
 * only counts if `out` is NULL. */
size_t pcre_expand(const struct pcre_run *run, const char *text, char *out);
/* The text of a group in the last match. False: the group took no part in it. */
bool pcre_group(const struct pcre_run *run, unsigned group, struct slice *found);
