#include "base/check.h"
#include "base/mem.h"
#include "prom/eval.h"
#include "prom/write.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

/* An expression over an empty report: it is refused with a place in it, or answered, at an instant and over a
 * range, and alike. */
static struct store *open_store(void)
{
    static struct store *st;
    struct report r;
    struct err e;
    if (st != NULL)
        return st;
    ASSERT(report_init(&r, slice_text("r"), 1, &e));
    ASSERT(report_add_dimension(&r, slice_text("path"), &e));
    ASSERT(report_finish(&r, &e));
    st = store_open("mem:", STORE_WRITE, &r, 1, &e);
    ASSERT(st != NULL);
    report_fini(&r);
    return st;
}

static bool ask(struct slice text, int64_t step_ms)
{
    const struct eval_question q = {.text = text,
                                    .from_ms = 1431864000000,
                                    .to_ms = 1431864000000 + 3 * step_ms,
                                    .step_ms = step_ms,
                                    .limits = {.rows_max = 1000, .points_max = 1000, .series_max = 10}};
    struct eval_answer a;
    struct text out = {0};
    struct err e = {0};
    bool good = eval_run(open_store(), &q, &a, &e);
    if (good) {
        (void)write_answer(&a, 1000, &out);
        ASSERT(out.len > 0 && out.ptr[out.len - 1] == '}');
        eval_fini(&a);
    } else {
        ASSERT(e.code == EX_USAGE || e.code == EX_UNAVAILABLE);
        ASSERT(e.text[0] != '\0');
    }
    text_fini(&out);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of((const char *)data, size);
    ASSERT(ask(text, 0) == ask(text, 0));
    (void)ask(text, 60000);
    return 0;
}
