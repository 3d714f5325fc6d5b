/* A bit of a store's file, or of the log that a crash left, flips: the store answers rightly or refuses.
 * TALLYD_ROUNDS says how many bits (300 by default); tests/system/test_flips.py does it with the program. */
#include "tests/support/dice.h"
#include "tests/support/disk.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A sum of hashes: rows may come in any order. */
struct digest {
    struct store *st;
    size_t report;
    uint64_t sum;
    bool good;
};

static void add(struct digest *d, const void *bytes, size_t len, uint64_t seed)
{
    d->sum += XXH3_64bits_withSeed(bytes, len, seed);
}

static void add_slot(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct digest *d = context;
    uint64_t where = (uint64_t)bucket_ms << 8 ^ series;
    add(d, values, d->st->reports[d->report].column_count * sizeof *values, where);
}

static bool add_series(void *context, uint32_t series, struct slice key)
{
    add(context, key.ptr, key.len, series);
    return true;
}

static bool add_position(void *context, const struct position *p)
{
    add(context, &p->range.to, sizeof p->range.to, p->range.tail_hash);
    return true;
}

static bool add_book(void *context, const char *source, const char *partition, const char *report,
                     const char *entry, int64_t value)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s %s %s", source, partition, report, entry);
    add(context, line, (size_t)n, (uint64_t)value);
    return true;
}

static void check_refusal(bool good, const struct err *e)
{
    if (!good && (e->code != EX_DATAERR || strstr(e->text, disk_path) == NULL))
        fail_msg("found %d \"%s\", expected EX_DATAERR and the path", e->code, e->text);
}

static bool ask_report(struct digest *d, struct err *e)
{
    for (enum span slot = SPAN_MINUTE; slot < SPAN_COUNT; slot++) {
        struct scan scan = {
            .report = d->report, .resolution = slot, .to_ms = CIVIL_END_MS, .rows_max = UINT64_MAX};
        struct scan_stats stats = {0};
        for (uint32_t series = 0; series < 6; series++) {
            scan.series = (struct series_set){.kind = series == 0 ? SERIES_ALL : SERIES_ONE, .one = series};
            if (!store_scan(d->st, &scan, add_slot, d, &stats, e))
                return false;
        }
    }
    uint32_t number;
    bool found;
    if (!store_series_each(d->st, d->report, add_series, d, e) ||
        !store_series_find(d->st, d->report, slice_text("/page/7"), &number, &found, e))
        return false;
    add(d, &found, sizeof found, 1);
    return true;
}

/* False: refused. */
static bool ask(uint64_t *answer)
{
    struct err e = {0};
    struct digest d = {.st = store_open(disk_url, STORE_READ, NULL, 0, &e)};
    bool good = d.st != NULL;
    for (d.report = 0; good && d.report < d.st->report_count; d.report++)
        good = ask_report(&d, &e);
    good = good && store_positions(d.st, add_position, &d, &e) && store_books(d.st, add_book, &d, &e);
    check_refusal(good, &e);
    store_close(d.st);
    *answer = d.sum;
    return good;
}

static void make_store(struct text *file, struct text *log)
{
    struct store *st = disk_open(disk_url);
    disk_fill(st);
    if (log != NULL) {
        scratch_read(disk_path, file);
        scratch_read(disk_beside("-wal"), log);
    }
    store_close(st);
    if (log == NULL)
        scratch_read(disk_path, file);
}

static void put_down(const struct text *file, const struct text *log)
{
    disk_clean(NULL);
    scratch_write(disk_path, text_slice(file));
    if (log->len > 0)
        scratch_write(disk_beside("-wal"), text_slice(log));
}

/* Every bit has the same chance. */
static void flip_bits(const char *what, struct text *file, struct text *log)
{
    const char *wanted = getenv("TALLYD_ROUNDS");
    int rounds = wanted != NULL ? atoi(wanted) : 300, refused = 0;
    struct dice d = dice_new(what);
    uint64_t right, answer;
    put_down(file, log);
    assert_true(ask(&right));
    for (int round = 0; round < rounds; round++) {
        size_t at = (size_t)dice_roll(&d, (int64_t)(file->len + log->len));
        char bit = (char)(1 << dice_roll(&d, 8)),
             *byte = at < file->len ? &file->ptr[at] : &log->ptr[at - file->len];
        *byte = (char)(*byte ^ bit);
        put_down(file, log);
        bool good = ask(&answer);
        refused += !good;
        if (good && answer != right)
            fail_msg("another answer after byte %zu ^ %#x", at, bit);
        *byte = (char)(*byte ^ bit);
    }
    printf("%s: %d bits of %zu KiB flipped, %d refused, %d harmless\n", what, rounds,
           (file->len + log->len) / 1024, refused, rounds - refused);
    assert_in_range(refused, rounds / 4, rounds);
    text_fini(file);
    text_fini(log);
}

static void test_no_bit_of_the_file_gives_another_answer(void **state)
{
    struct text file = {0}, log = {0};
    (void)state;
    make_store(&file, NULL);
    flip_bits("file", &file, &log);
}

static void test_no_bit_of_a_log_gives_another_answer(void **state)
{
    struct text file = {0}, log = {0};
    (void)state;
    make_store(&file, &log);
    flip_bits("log", &file, &log);
}

#define TEST(name) cmocka_unit_test_setup(name, disk_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_bit_of_the_file_gives_another_answer),
        TEST(test_no_bit_of_a_log_gives_another_answer),
    };
    return cmocka_run_group_tests(tests, disk_setup, disk_teardown);
}
