#include "base/mem.h"

#include "base/check.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE ((size_t)64)

static void *must(void *ptr, size_t bytes)
{
    if (UNLIKELY(ptr == NULL)) {
        fprintf(stderr, "level=crit event=out_of_memory asked_bytes=%zu\n", bytes);
        abort();
    }
    return ptr;
}

void *xmalloc(size_t bytes)
{
    return must(malloc(bytes ? bytes : 1), bytes);
}

void *xcalloc(size_t count, size_t bytes)
{
    ASSERT(bytes == 0 || count <= SIZE_MAX / bytes);
    return must(calloc(count ? count : 1, bytes ? bytes : 1), count * bytes);
}

void *xtable(size_t count, size_t bytes)
{
    ASSERT(count <= (SIZE_MAX - CACHE_LINE) / bytes);
    size_t total = count * bytes;
    void *table = must(aligned_alloc(CACHE_LINE, (total + CACHE_LINE - 1) & ~(CACHE_LINE - 1)), total);
    memset(table, 0, total);
    return table;
}

void *xrealloc(void *ptr, size_t bytes)
{
    return must(realloc(ptr, bytes ? bytes : 1), bytes);
}

char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t len)
{
    char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void mem_keep_freed(void)
{
    /* Another malloc, such as a sanitizer's, may refuse; that only costs speed. */
    (void)mallopt(M_MMAP_THRESHOLD, MEM_LARGE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, MEM_KEPT_BYTES);
}

void mem_trim(void)
{
    (void)malloc_trim(0);
}

void *xgrow_more(void *ptr, size_t *capacity, size_t need, size_t element_bytes)
{
    ASSERT(need <= SIZE_MAX / 2 / element_bytes);
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < need)
        wanted *= 2;
    *capacity = wanted;
    return xrealloc(ptr, wanted * element_bytes);
}
