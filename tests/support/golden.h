/* golden.h - bytes as golden files write them: between two signs a byte in hex, or a hundred of them. With
 * '{' and '}': {0D}, {61*100}. */
#pragma once

#include "base/text.h"

void golden_unfold(struct slice s, char open, char close, struct text *out);
void golden_fold(struct slice s, char open, char close, struct text *out);
