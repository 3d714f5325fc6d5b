/* mem.h - memory that is there or the process ends.
 *
 * The hot path allocates nothing for a known series; everything else asks here, and out of memory
 * aborts with the size asked (no graceful way exists that a test could show to work).
 */
#pragma once

#include <stddef.h>

#define MEM_KEPT_BYTES (16 << 20)

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
/* Zeros, for a table that is looked up at random: written now, since a page that is read before it is written
 * is mapped twice, and the second time all threads wait; and whole cache lines. */
void *xtable(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
/* What is freed stays with the process, MEM_KEPT_BYTES of it for each arena of malloc (mallopt(3)): else each
 * large question takes its pages anew from the system, which costs as much as its answer. Before threads. */
void mem_keep_freed(void);
/* Room for `need` elements in a growing array: doubles, never shrinks. */
void *xgrow(void *ptr, size_t *capacity, size_t need, size_t element_bytes) __attribute__((returns_nonnull));
