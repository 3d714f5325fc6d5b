/* form.h - the body of a request as parameters: application/x-www-form-urlencoded, as forms post it. */
#pragma once

#include "base/text.h"
#include "web/reply.h"

#define FORM_TYPE "application/x-www-form-urlencoded"

/* Is this Content-Type a form's? NULL: there is none. */
bool form_is(const char *content_type);
/* Decodes in place: what is found points into `body`. Returns how many there are; those from `max` on are
 * counted only. A `%` without two hex digits stands for itself. */
size_t form_decode(struct text *body, struct parameter *list, size_t max);
