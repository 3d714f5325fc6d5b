/* fuzz.h - what a fuzz target is: libFuzzer calls it with made-up bytes, replay.c with kept ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
