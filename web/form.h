/* form.h - decodes a posted form (application/x-www-form-urlencoded) into parameters. Called by server.c. */
#pragma once

#include "base/text.h"
#include "web/reply.h"

#define FORM_TYPE "application/x-www-form-urlencoded"

/* Is this Content-Type a form's? NULL: there is none. */
bool form_is(const char *content_type);
/* Decodes in place: the parameters point into `body`. Returns how many there are; only the first `max` are
 * stored. A `%` without two hex digits stands for itself. */
size_t form_decode(struct text *body, struct parameter *list, size_t max);
