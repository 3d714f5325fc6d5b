/* golden.h - the escapes of golden files: a byte in hex between two signs, or a run of equal bytes. With '{'
 * and '}': {0D}, {61*100}. */
#pragma once

#include "base/text.h"

void golden_unfold(struct slice s, char open, char close, struct text *out);
void golden_fold(struct slice s, char open, char close, struct text *out);
