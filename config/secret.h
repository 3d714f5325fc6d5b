/* secret.h - hides the secrets that stand in a configuration by themselves, where it is printed. References
 * to files and to the environment are printed as they are, and need no hiding.
 */
#pragma once

#include "base/slice.h"
#include "base/text.h"

#define SECRET_HIDDEN "…"

/* Adds "mongodb://bob:…@host/db": the URL without its password. */
void secret_hide_password(struct slice url, struct text *out);
/* Is the value of this property of librdkafka a secret? */
bool secret_is_property(const char *name);
