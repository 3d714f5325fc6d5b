/* config_read.h - a configuration from a file, or the built-in one.
 *
 * Errors : all of a file at once, each "FILE:LINE:COLUMN: KEY: found …, expected …", with a "did you
 *          mean" for what is misspelt. Exit status EX_CONFIG (78).
 */
#pragma once

#include "config/config.h"

/* The built-in configuration: source `access` (auto), reports `site` and `pages`, store tallyd.db in
 * the working directory. */
struct config *config_default(void);
/* NULL with every problem of the file in `problems`, a line each; *code is the exit status: EX_CONFIG, or
 * EX_NOINPUT or EX_NOPERM where the file cannot be read. What a file leaves out is as in config_default(). */
struct config *config_load(const char *path, struct text *problems, int *code);
/* The same of a file's bytes; every failure is EX_CONFIG. */
struct config *config_parse(struct slice bytes, const char *path, struct text *problems);
/* Another store than the file says (--store URL), with the same checks. */
bool config_set_store(struct config *c, const char *url, struct err *e) MUST_CHECK;
