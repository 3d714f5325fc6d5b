/* config_read.h - reads a configuration from a file, or makes the built-in one.
 *
 * Errors : the problems of a file at once, each "FILE:LINE:COLUMN: KEY: found …, expected …", with a "did
 *          you mean" for misspelt words. The first CONFIG_PROBLEMS_MAX are listed, the rest counted.
 */
#pragma once

#include "config/config.h"

/* The built-in configuration: source `access` (auto), reports `site` and `pages`, store tallyd.db in
 * the working directory. */
struct config *config_default(void);
/* Keys that the file leaves out are as in config_default(). NULL: `problems` has a line for each problem of
 * the file. *code is then the exit status: EX_CONFIG; EX_NOINPUT or EX_NOPERM if the file cannot be read. */
struct config *config_load(const char *path, struct text *problems, int *code);
/* As config_load(), from the bytes of a file; every failure is EX_CONFIG. */
struct config *config_parse(struct slice bytes, const char *path, struct text *problems);
/* Replaces the file's store (--store URL), with the same checks. */
bool config_set_store(struct config *c, const char *url, struct err *e) MUST_CHECK;
