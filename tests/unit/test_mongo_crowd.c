/* Which documents of distinct counts a writer of MongoDB checks, however many series it writes at once. */
#include "store/mongo/writer/crowd.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SERIES      13000 /* with a document of each kind more than a writer remembers */
#define BUSY        50    /* series that are judged */
#define FLUSHES     400
#define HOSTS       15 /* new ones of a busy series in a flush: a step is 16 */
#define ENTRIES_MAX 5000

static const struct mongo_kind kinds[] = {{SPAN_MINUTE, SPAN_MINUTE, true},
                                          {SPAN_HOUR, SPAN_HOUR, true},
                                          {SPAN_DAY, SPAN_DAY, true},
                                          {SPAN_MONTH, SPAN_MONTH, true}};

/* The entries of the documents of busy series, since each was last read. */
struct entries {
    size_t since[COUNT_OF(kinds)][BUSY];
    size_t all, reads;
};

static struct mongo_counted document(size_t kind, uint32_t series)
{
    return (struct mongo_counted){.kind = &kinds[kind], .series = series};
}

static struct mongo_store *begin(void)
{
    return xcalloc(1, sizeof(struct mongo_store));
}

static void end(struct mongo_store *m)
{
    free(m->crowd.slots);
    free(m->crowd.steps.list);
    free(m->crowd.drawn.list);
    arena_fini(&m->crowd.memory);
    free(m);
}

/* Hosts `from` up to `to`, which no other flush has. */
static bool note(struct mongo_store *m, const struct mongo_counted *where, uint64_t from, uint64_t to)
{
    struct distinct d = {0};
    struct arena arena;
    arena_init(&arena, 1024);
    for (uint64_t host = from; host < to; host++)
        distinct_add(&d, &arena, host * UINT64_C(0x9e3779b97f4a7c15));
    bool many = mongo_crowd_note(m, where, &d);
    arena_fini(&arena);
    return many;
}

/* Reads what was drawn, as mongo_condense() does. */
static void read_drawn(struct mongo_store *m, struct entries *n)
{
    for (size_t i = 0; i < m->crowd.drawn.count; i++) {
        const struct mongo_counted *c = &m->crowd.drawn.list[i];
        if (c->series < BUSY)
            n->since[c->kind - kinds][c->series] = 0;
    }
    n->reads += m->crowd.drawn.count;
    m->crowd.drawn.count = 0;
}

static void test_entries_are_bounded_though_the_writer_forgets(void **state)
{
    (void)state;
    struct mongo_store *m = begin();
    struct entries n = {0};
    for (uint64_t flush = 0; flush < FLUSHES; flush++) {
        m->writer.number++;
        for (uint32_t s = 0; s < SERIES; s++) {
            for (size_t k = 0; k < COUNT_OF(kinds); k++) {
                const struct mongo_counted where = document(k, s);
                const uint64_t hosts = s < BUSY ? HOSTS : 1;
                if (!note(m, &where, flush * HOSTS, flush * HOSTS + hosts) && s < BUSY)
                    n.since[k][s] += hosts;
                n.all += hosts;
            }
        }
        for (size_t i = 0; i < COUNT_OF(kinds) * BUSY; i++)
            assert_in_range(n.since[i / BUSY][i % BUSY], 0, ENTRIES_MAX);
        read_drawn(m, &n);
    }
    assert_in_range(n.reads, n.all / MONGO_CROWD_DRAWN / 2, n.all / MONGO_CROWD_DRAWN * 2);
    end(m);
}

static void test_texts_that_are_remembered_are_drawn_once(void **state)
{
    (void)state;
    struct mongo_store *m = begin();
    const struct mongo_counted where = document(2, 7);
    for (int i = 0; i < 1000; i++) {
        m->writer.number++;
        assert_false(note(m, &where, 0, DISTINCT_ENTRIES_MAX / 2));
    }
    assert_in_range(m->crowd.drawn.count, 0, 1);
    end(m);
}

static void test_a_document_with_registers_stays_known(void **state)
{
    (void)state;
    struct mongo_store *m = begin();
    const struct mongo_counted where = document(3, 0);
    assert_true(note(m, &where, 0, DISTINCT_ENTRIES_MAX * 2));
    for (uint32_t s = 1; s < 10 * SERIES; s++) {
        const struct mongo_counted other = document(0, s);
        (void)note(m, &other, s, s + 1);
    }
    assert_true(note(m, &where, 0, 1));
    mongo_crowd_forget(m); /* the batch was dropped */
    assert_false(note(m, &where, 0, 1));
    end(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_are_bounded_though_the_writer_forgets),
        cmocka_unit_test(test_texts_that_are_remembered_are_drawn_once),
        cmocka_unit_test(test_a_document_with_registers_stays_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
