#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define ITEMS 300

static bool is_less(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b;
}

static int descending(const void *a, const void *b)
{
    return is_less(a, b) - is_less(b, a);
}

static void test_heap_keeps_the_greatest_of_any_order(void **state)
{
    (void)state;
    int items[ITEMS], kept[ITEMS];
    uint32_t dice = 1;
    for (size_t room = 0; room < ITEMS + 5; room += 1 + room / 4) {
        size_t count = 0;
        size_t wanted = room < ITEMS ? room : ITEMS;
        int *heap = malloc((room + 1) * sizeof *heap);
        for (size_t i = 0; i < ITEMS; i++) {
            dice = dice * 1664525u + 1013904223u;
            items[i] = (int)(dice >> 16) % 50;
            heap_offer(heap, &count, room, &items[i], sizeof items[i], is_less);
        }
        assert_int_equal(count, wanted);
        memcpy(kept, heap, count * sizeof *kept);
        qsort(kept, count, sizeof *kept, descending);
        qsort(items, ITEMS, sizeof *items, descending);
        assert_memory_equal(kept, items, count * sizeof *kept);
        if (count > 0)
            assert_int_equal(heap[0], kept[count - 1]);
        free(heap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heap_keeps_the_greatest_of_any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
