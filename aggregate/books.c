#include "aggregate/books.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const report_names[BOOK_REPORT_COUNT] = {"parsed", "counted", "filtered", "late"};

void books_init(struct books *b, size_t report_count)
{
    *b = (struct books){report_count, xcalloc(books_count(report_count), sizeof *b->entries)};
}

void books_fini(struct books *b)
{
    free(b->entries);
    *b = (struct books){0};
}

void books_clear(struct books *b)
{
    memset(b->entries, 0, books_count(b->report_count) * sizeof *b->entries);
}

void books_add(struct books *to, const struct books *from)
{
    ASSERT(to->report_count == from->report_count);
    for (size_t i = 0; i < books_count(to->report_count); i++)
        to->entries[i] += from->entries[i];
}

int64_t books_rejected(const struct books *b)
{
    int64_t sum = 0;
    for (size_t i = 0; i < REJECT_COUNT; i++)
        sum += b->entries[BOOK_REJECTED + i];
    return sum;
}

bool books_balance(const struct books *b)
{
    if (b->entries[BOOK_CONSUMED] != b->entries[BOOK_PARSED] + books_rejected(b))
        return false;
    for (size_t r = 0; r < b->report_count; r++) {
        const int64_t *e = &b->entries[BOOK_SOURCE_COUNT + r * BOOK_REPORT_COUNT];
        if (e[BOOK_REPORT_PARSED] != e[BOOK_COUNTED] + e[BOOK_FILTERED] + e[BOOK_LATE])
            return false;
    }
    return true;
}

const char *books_source_name(int e, char buf[BOOK_NAME_BYTES])
{
    ASSERT(e >= 0 && e < BOOK_SOURCE_COUNT);
    if (e == BOOK_CONSUMED)
        return "consumed";
    if (e == BOOK_PARSED)
        return "parsed";
    snprintf(buf, BOOK_NAME_BYTES, "rejected.%s", reject_name((enum reject_reason)(e - BOOK_REJECTED)));
    return buf;
}

const char *books_report_name(int e)
{
    ASSERT(e >= 0 && e < BOOK_REPORT_COUNT);
    return report_names[e];
}
