/* secret.h - knows which values of a configuration are secrets, for where it is printed. References to files
 * and to the environment are printed as they are, and need no hiding.
 */
#pragma once

#include <stdbool.h>

/* Is the value of this property of librdkafka a secret? */
bool secret_is_property(const char *name);
