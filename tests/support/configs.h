/* configs.h - checks of what the configuration reads, says and prints. */
#pragma once

#include "config/config.h"

#include <stddef.h>

/* A file, and all that it is told. */
struct bad_config {
    const char *yaml, *problems;
};

/* It is refused, with the wanted problems. It is read as "f.yaml". */
void expect_problems(const char *yaml, const char *wanted);
void expect_all_problems(const struct bad_config *list, size_t count);
/* As `check --print` shows it; to be freed. */
char *config_printed(const struct config *c);
/* The decodings are the same, though each borrows the settings of its own configuration. */
void expect_same_decode(const struct decode *a, const struct decode *b);
/* Reads back what is printed: it prints to the same. The caller frees it. */
struct config *config_again(const struct config *c);
