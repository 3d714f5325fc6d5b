/* scratch.h - a directory of its own for a test program, and files in it. */
#pragma once

#include "base/slice.h"
#include "base/text.h"

#include <stdbool.h>

struct scratch {
    char dir[64];
};

void scratch_make(struct scratch *s);
/* Removes the directory and all in it. */
void scratch_remove(struct scratch *s);
/* A directory for each test of a program, or for all: cmocka's set-up and tear-down. They ignore *state. */
extern struct scratch scratch_own;
int scratch_set_up(void **state);
int scratch_tear_down(void **state);
/* The path of a file in it; a static buffer, good for the next four calls. */
const char *scratch_path(const struct scratch *s, const char *name);

void scratch_write(const char *path, struct slice bytes);
void scratch_append(const char *path, struct slice bytes);
/* Adds the file's content to `bytes`. */
void scratch_read(const char *path, struct text *bytes);
/* Writes a gzip file of one member. */
void scratch_write_gzip(const char *path, struct slice bytes);
