/* options.h - what every command has in common: its configuration, and what it says when that is wrong. */
#pragma once

#include "config/config.h"

/* The configuration of `-c file` (NULL: the built-in one) with the store of `--store url` (NULL: its own).
 * NULL: what is wrong was printed on standard error, and *code is the exit status. */
struct config *options_load(const char *file, const char *store_url, int *code);
