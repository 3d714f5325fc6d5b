/* literal.h - a text that every match of a regular expression has, if one can be seen. agents.c asks, so that
 * it need not try expressions that cannot match.
 *
 * Sure    : only texts outside of alternatives and optional parts count, so a match always has them.
 *           Expressions of another syntax than uap-core's may have none.
 */
#pragma once

#include "base/slice.h"

#define LITERAL_BYTES 64

/* Writes the longest one to `out`, up to its size; returns its length. 0: there is none. */
size_t literal_find(struct slice pattern, char out[LITERAL_BYTES]);
