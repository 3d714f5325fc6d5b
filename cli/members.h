/* members.h - members of JSON whose names are not tallyd's, but known: nginx and others write `remote_addr`
 * for the host. `tallyd detect` proposes the source's `fields` by them.
 *
 * Taken : a member with a text, unless events have its field already.
 */
#pragma once

#include "base/text.h"

#include <stdint.h>

struct members;

struct members *members_new(void);
void members_free(struct members *m);
/* Looks for members of the object in the line. */
void members_look(struct members *m, struct slice line);
/* Adds "{host: /remote_addr, target: /uri}"; nothing: no line has a member of a field that is missing.
 * `present`: bits of enum field that events have. */
void members_print(const struct members *m, uint64_t present, struct text *out);
