/* mem.h - allocation that succeeds or ends the process: out of memory aborts and logs the size asked for.
 *
 * All code allocates here; the hot path allocates nothing for a known series. No test could show that a
 * graceful way out of memory works, so there is none.
 */
#pragma once

#include <stddef.h>

#define MEM_KEPT_BYTES  (8 << 20)
#define MEM_LARGE_BYTES (4 << 20)

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
/* Zeros in whole cache lines, for a table that is looked up at random. They are written at once: a page that
 * is read before it is written is mapped twice, and all threads wait for the second mapping. */
void *xtable(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
/* Lets each arena of malloc keep MEM_KEPT_BYTES of freed memory (mallopt(3)). Otherwise each query gets its
 * pages anew from the system, which costs as much as its answer. Blocks of MEM_LARGE_BYTES are not kept: they
 * would leave holes. Call it before any thread starts. */
void mem_keep_freed(void);
/* Gives freed memory back to the system, also what lies between other memory. */
void mem_trim(void);
/* Room for `need` elements in a growing array: doubles, never shrinks. xgrow_more() is for xgrow() alone. */
void *xgrow_more(void *ptr, size_t *capacity, size_t need, size_t element_bytes)
    __attribute__((returns_nonnull));
static inline void *xgrow(void *ptr, size_t *capacity, size_t need, size_t element_bytes)
{
    return need <= *capacity && ptr != NULL ? ptr : xgrow_more(ptr, capacity, need, element_bytes);
}
