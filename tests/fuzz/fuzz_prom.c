#include "base/check.h"
#include "base/mem.h"
#include "prom/eval.h"
#include "prom/list.h"
#include "prom/write.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/batcher.h"

#include <stdlib.h>

#define NOON_MS           1431864000000
#define ARENA_CHUNK_BYTES ((size_t)4 << 10)

/* An expression over a few series: it is refused with a place in it, or answered, at an instant and over a
 * range, and alike. The same holds for match[] of a list. */

/* Gives each cell a histogram of as many numbers as it has hits: some below 0, some 0. */
static void fill_sketches(const struct batch *b, const struct report *r, struct arena *arena)
{
    const struct cells *cells = &b->parts[0]->reports[0].cells;
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *c = cells_at(cells, i);
        struct histogram *h = &report_sketch(r, c, 0)->histogram;
        for (int64_t hit = 0; hit < c->value[0]; hit++)
            histogram_add(h, arena, ((int32_t)(i + (size_t)hit) % 7 - 2) * 60, 1);
    }
}

/* Series i has i hits in each of the minutes before and behind noon. */
static void count(struct store *st, const struct report *r)
{
    static const char *const keys[] = {"/\ta", "/a\ta", "/a\tb", "/\"\\\t-", "\t"};
    struct batcher *b = batcher_new(r, 1, 1);
    struct err e;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        for (int64_t minute = -3; minute < 3; minute++) {
            const int64_t sum = (int64_t)i * minute;
            const int64_t columns[REPORT_COLUMNS_MAX] = {(int64_t)i, sum, sum, (int64_t)i};
            batcher_add(b, 0, 0, keys[i], NOON_MS + minute * MINUTE_MS, columns);
        }
    }
    const struct batch *sealed = batcher_seal(b, "fuzz", 0, 1);
    struct arena arena;
    arena_init(&arena, ARENA_CHUNK_BYTES);
    fill_sketches(sealed, r, &arena);
    ASSERT(store_apply(st, sealed, &e));
    arena_fini(&arena);
    batcher_clear(b);
    batcher_free(b);
}

static struct store *open_store(void)
{
    static struct store *st;
    struct report r;
    struct err e;
    if (st != NULL)
        return st;
    ASSERT(report_init(&r, slice_text("r"), 1, &e));
    ASSERT(report_add_dimension(&r, slice_text("path"), &e));
    ASSERT(report_add_dimension(&r, slice_text("host"), &e));
    ASSERT(report_add_measure(&r, slice_text("hits"), slice_text("count"), &e));
    ASSERT(report_add_measure(&r, slice_text("bytes"), slice_text("sum(bytes)"), &e));
    ASSERT(report_add_measure(&r, slice_text("sizes"), slice_text("histogram(bytes)"), &e));
    ASSERT(report_finish(&r, &e));
    st = store_open("mem:", STORE_WRITE, &r, 1, &e);
    ASSERT(st != NULL);
    count(st, &r);
    report_fini(&r);
    return st;
}

/* Is it about the expression, and not about the store? */
static bool is_of_question(const struct err *e)
{
    return e->code == EX_PROTOCOL || e->code == EX_USAGE || e->code == EX_UNAVAILABLE;
}

/* Memory for some questions of the corpus, and for all that are small; every question gives back all. */
#define MEMORY_BYTES ((uint64_t)1 << 20)

static void lend_memory(struct store *st, struct quota *q, struct share *s)
{
    quota_init(q, MEMORY_BYTES);
    *s = (struct share){.quota = q};
    st->memory = s;
}

static void take_memory_back(struct store *st, struct quota *q)
{
    share_end(st->memory);
    ASSERT(atomic_load(&q->left) == (int64_t)MEMORY_BYTES);
    st->memory = NULL;
}

static bool ask(struct slice text, int64_t step_ms)
{
    struct quota quota;
    struct share memory;
    const struct eval_question q = {
        .text = text,
        .from_ms = NOON_MS,
        .to_ms = NOON_MS + 3 * step_ms,
        .step_ms = step_ms,
        .limits = {.rows_max = 1000, .points_max = 1000, .series_max = 10, .sketches_max = 1 << 16}};
    struct eval_answer a;
    struct text out = {0};
    struct err e = {0};
    lend_memory(open_store(), &quota, &memory);
    bool good = eval_run(open_store(), &q, &a, &e);
    if (good) {
        (void)write_answer(&a, 1000, &out);
        ASSERT(out.len > 0 && out.ptr[out.len - 1] == '}');
        eval_fini(&a);
    } else {
        ASSERT(is_of_question(&e));
        ASSERT(e.text[0] != '\0');
    }
    text_fini(&out);
    take_memory_back(open_store(), &quota);
    return good;
}

static void list(struct slice text)
{
    const struct list_ask question = {.selectors = &text, .selector_count = 1, .max = 3, .rows_max = 1000};
    struct text out = {0};
    struct err e = {0};
    bool is_cut;
    struct quota quota;
    struct share memory;
    lend_memory(open_store(), &quota, &memory);
    if (list_series(open_store(), &question, &out, &is_cut, &e))
        ASSERT(out.len > 1 && out.ptr[out.len - 1] == ']');
    else
        ASSERT(is_of_question(&e) && e.text[0] != '\0');
    text_fini(&out);
    take_memory_back(open_store(), &quota);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of((const char *)data, size);
    ASSERT(ask(text, 0) == ask(text, 0));
    (void)ask(text, MINUTE_MS);
    list(text);
    return 0;
}
