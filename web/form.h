/* form.h - decodes a posted form (application/x-www-form-urlencoded) into parameters. Called by server.c and
 * admit.c. */
#pragma once

#include "base/text.h"
#include "web/reply.h"

#define FORM_TYPE "application/x-www-form-urlencoded"

/* Is this Content-Type, which may have parameters, `type`? NULL: there is none. */
bool form_type_is(const char *content_type, const char *type);
/* Decodes in place: the parameters point into `body`. Returns how many there are; only the first `max` are
 * stored. A `%` without two hex digits stands for itself. */
size_t form_decode(struct text *body, struct parameter *list, size_t max);
