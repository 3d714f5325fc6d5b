/* The partitions that a writer of MongoDB keeps in memory. */
#include "store/mongo/writer/partition.h"

#include "base/mem.h"
#include "store/mongo/writer/position.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FILES 10000

static struct range range_of(size_t n)
{
    struct range r = {0};
    snprintf(r.source, sizeof r.source, "file:4096:%016zx", n);
    return r;
}

/* Note a partition as a claim does. */
static void add(struct mongo_store *m, size_t n)
{
    struct mongo_writer *w = &m->writer;
    const struct range r = range_of(n);
    char name[RANGE_SOURCE_BYTES + RANGE_PARTITION_BYTES];
    struct mongo_partition p = {.key = mongo_partition_key(&r), .is_claimed = true, .next = (int64_t)n};
    memcpy(p.source, r.source, sizeof p.source);
    w->partitions =
        xgrow(w->partitions, &w->partition_capacity, w->partition_count + 1, sizeof *w->partitions);
    w->partitions[w->partition_count++] = p;
    size_t len = (size_t)snprintf(name, sizeof name, "%s", r.source) + 1; /* with its zero byte */
    assert_int_equal(mongo_names_add(&w->partition_names, slice_of(name, len)), w->partition_count);
}

static void test_files_whose_position_left_take_no_memory(void **state)
{
    (void)state;
    struct mongo_store *m = xcalloc(1, sizeof *m);
    struct range *gone = xcalloc(FILES, sizeof *gone);
    mongo_names_init(&m->writer.partition_names);
    for (size_t n = 0; n < FILES; n++) {
        add(m, n);
        gone[n] = range_of(n);
    }
    /* Every third is claimed anew, and stays. */
    for (size_t n = 0; n < FILES; n++)
        mongo_known_partition(m, &gone[n])->is_claimed = n % 3 == 0;
    for (size_t n = 0; n < FILES; n += 500)
        mongo_drop_partitions(m, &gone[n], 500);
    assert_int_equal(m->writer.partition_count, (FILES + 2) / 3);
    assert_int_equal(m->writer.partition_names.count, (FILES + 2) / 3);
    for (size_t n = 0; n < FILES; n++) {
        const struct mongo_partition *p = mongo_known_partition(m, &gone[n]);
        assert_int_equal(p != NULL, n % 3 == 0);
        assert_true(p == NULL || (p->next == (int64_t)n && strcmp(p->source, gone[n].source) == 0));
    }
    add(m, FILES);
    mongo_forget_partitions(m);
    mongo_drop_partitions(m, gone, FILES);
    assert_int_equal(m->writer.partition_count, 1);
    const struct range last = range_of(FILES);
    assert_int_equal(mongo_known_partition(m, &last)->next, FILES);
    mongo_partition_fini(mongo_known_partition(m, &last));
    mongo_names_fini(&m->writer.partition_names);
    free(m->writer.partitions);
    free(gone);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_whose_position_left_take_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
