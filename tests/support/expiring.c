#include "tests/support/expiring.h"

#include "aggregate/keep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void expiring_keep(struct report *r, const char *text)
{
    struct err e;
    char copy[128], *rest = copy;
    memset(r->keep_ms, 0, sizeof r->keep_ms);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        assert_true(keep_set(r, slice_text(word), slice_text(value), &e));
    }
    if (report_cell(r) == SPAN_SECOND && r->keep_ms[SPAN_MINUTE] > 0)
        r->keep_ms[SPAN_SECOND] = r->keep_ms[SPAN_MINUTE];
    assert_true(keep_check(r, &e));
}

void expiring_open(struct world *w, const char *keep)
{
    expiring_keep(&w->reports[FIXTURE_PAGES], keep);
    world_reopen(w);
}

uint64_t expiring_run(struct world *w, int64_t now_ms)
{
    struct err e;
    struct expired expired = {.more = true};
    uint64_t rows = 0;
    for (int calls = 0; expired.more; calls++) {
        if (!store_expire(w->store, now_ms, true, &expired, &e))
            fail_msg("%s", e.text);
        assert_true(calls < 10000);
        assert_true(world_is_in_server() || (expired.rows == 0) == (expired.bytes == 0));
        rows += expired.rows;
        if (expired.more && expired.rows == 0) /* others must know first */
            world_pass(w, 100);
    }
    return rows;
}

struct watermarks expiring_watermarks(struct store *st)
{
    struct err e;
    struct watermarks watermarks;
    assert_true(store_watermarks(st, (size_t)store_find_report(st, slice_text("pages")), &watermarks, &e));
    return watermarks;
}

/* A store in MongoDB may have a whole day in one document. */
int64_t expiring_minutes_from(const struct world *w, const char *now)
{
    int64_t from_ms = keep_from(&w->reports[FIXTURE_PAGES], SPAN_MINUTE, fixture_ms(now));
    return world_is_in_server() && world_kind->layout == LAYOUT_DAY ? span_floor(SPAN_DAY, from_ms) : from_ms;
}
