/* hex.h - bytes of binary formats, as tests write them down. */
#pragma once

#include "base/slice.h"

#define HEX_BYTES_MAX 256

/* The bytes of "0A FF", in `buf`. */
struct slice hex_bytes(const char *hex, char buf[HEX_BYTES_MAX]);
