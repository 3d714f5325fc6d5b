/* books.h - the account of every line: it shows that no line is counted twice or dropped unseen.
 *
 *   per source            consumed = rejected (by reason) + parsed
 *   per source and report parsed   = counted + filtered + late
 *
 * Directives of the W3C format (chain.h) are parsed, and each report filters them out.
 *
 * Shape : a flat array of int64, so that adding, storing and comparing are one loop each:
 *         [consumed, parsed, rejected[0] … rejected[REJECT_COUNT-1], then per report
 *         parsed, counted, filtered, late].
 *         A report's own `parsed` starts when the report is first configured, so it may be below the
 *         source's. `late` events have a time that has expired in every resolution of the report (keep.h).
 */
#pragma once

#include "ingest/reject.h"

#include <stdbool.h>
#include <stdint.h>

enum { BOOK_CONSUMED, BOOK_PARSED, BOOK_REJECTED, BOOK_SOURCE_COUNT = BOOK_REJECTED + REJECT_COUNT };
enum { BOOK_REPORT_PARSED, BOOK_COUNTED, BOOK_FILTERED, BOOK_LATE, BOOK_REPORT_COUNT };

#define BOOK_NAME_BYTES 48

struct books {
    size_t report_count;
    int64_t *entries; /* books_count(report_count) of them */
};

static inline size_t books_count(size_t report_count)
{
    return BOOK_SOURCE_COUNT + report_count * BOOK_REPORT_COUNT;
}

void books_init(struct books *b, size_t report_count);
void books_fini(struct books *b);
void books_clear(struct books *b);
void books_add(struct books *to, const struct books *from);
/* Do both equations above hold? */
bool books_balance(const struct books *b);
int64_t books_rejected(const struct books *b);

/* Entry `e` of the source; books_report(): entry `e` of a report. */
static inline int64_t *books_source(struct books *b, int e)
{
    return &b->entries[e];
}

static inline int64_t *books_report(struct books *b, size_t report, int e)
{
    return &b->entries[BOOK_SOURCE_COUNT + report * BOOK_REPORT_COUNT + (size_t)e];
}

/* "consumed", "rejected.time", "counted" …: the names under which entries are stored. */
const char *books_source_name(int e, char buf[BOOK_NAME_BYTES]);
const char *books_report_name(int e);
