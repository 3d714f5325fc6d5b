#include "tests/support/disk.h"

#include "tests/support/dice.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/model.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define KEYS 400

struct scratch disk_scratch;
struct report disk_reports[FIXTURE_COUNT];
static char keys[KEYS][16];
char disk_path[128], disk_url[160];

int disk_setup(void **state)
{
    (void)state;
    scratch_make(&disk_scratch);
    fixture_reports(disk_reports);
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "/page/%d", i);
    snprintf(disk_path, sizeof disk_path, "%s", scratch_path(&disk_scratch, "store.db"));
    snprintf(disk_url, sizeof disk_url, "sqlite:%s", disk_path);
    fault_vfs_register();
    return 0;
}

int disk_teardown(void **state)
{
    (void)state;
    fixture_free(disk_reports);
    scratch_remove(&disk_scratch);
    return 0;
}

const char *disk_beside(const char *suffix)
{
    static char buf[192];
    snprintf(buf, sizeof buf, "%s%s", disk_path, suffix);
    return buf;
}

int disk_clean(void **state)
{
    (void)state;
    fault_vfs_reset();
    remove(disk_path);
    unlink(disk_beside("-wal"));
    unlink(disk_beside("-shm"));
    unlink(disk_beside("-lock"));
    return 0;
}

struct store *disk_open(const char *at)
{
    struct err e;
    struct store *st = store_open(at, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e);
    if (st == NULL)
        fail_msg("%s", e.text);
    return st;
}

void disk_add_batch(struct batcher *b, struct model *m, int i)
{
    struct dice d = {(uint64_t)i + 1};
    int64_t now_ms = fixture_ms("2015-05-17T10:58") + i * 3LL * MINUTE_MS;
    int64_t spread_ms = i == 3 ? 3LL * DAY_MS : 2LL * MINUTE_MS;
    for (int n = 0; n < 200; n++) {
        const char *key = keys[dice_roll(&d, KEYS)];
        int64_t at_ms = now_ms - dice_roll(&d, spread_ms), values[] = {1, dice_roll(&d, 5000)};
        uint32_t shard = (uint32_t)dice_roll(&d, 2);
        if (b != NULL)
            batcher_add(b, shard, FIXTURE_PAGES, key, at_ms, values);
        if (m != NULL)
            model_add(m, FIXTURE_PAGES, key, at_ms, values);
    }
    if (b != NULL)
        *books_source(batcher_books(b, 0), BOOK_CONSUMED) = *books_source(batcher_books(b, 0), BOOK_PARSED) =
            200;
}

void disk_apply(struct store *st, struct batcher *b, int i)
{
    struct err e;
    disk_add_batch(b, NULL, i);
    assert_true(store_apply(st, batcher_seal(b, "access", i * 100, (i + 1) * 100), &e));
    batcher_clear(b);
}

void disk_fill(struct store *st)
{
    struct err e;
    struct batcher *b = batcher_new(disk_reports, FIXTURE_COUNT, 2);
    for (int i = 0; i < DISK_BATCHES; i++) {
        disk_apply(st, b, i);
        if (i == 2)
            assert_true(store_housekeep(st, true, &e));
    }
    batcher_free(b);
}

/* Is the key known if it was counted, and only then, and is its hour right? */
static void check_key(struct store *st, const struct model *m, char *key)
{
    int64_t hour_ms = fixture_ms("2015-05-17T11:00");
    struct series_set one = {.kind = SERIES_ONE};
    struct text known = {0};
    bool found;
    struct err e;
    assert_true(store_series_find(st, FIXTURE_PAGES, slice_text(key), &one.one, &found, &e));
    assert_int_equal(found, model_sum(m, FIXTURE_PAGES, model_is, key, 0, CIVIL_END_MS, 0) > 0);
    if (!found)
        return;
    assert_true(store_series_key(st, FIXTURE_PAGES, one.one, &known, &e));
    assert_string_equal(known.ptr, key);
    text_fini(&known);
    assert_int_equal(world_sum(st, FIXTURE_PAGES, SPAN_MINUTE, one, hour_ms, hour_ms + HOUR_MS, 1),
                     model_sum(m, FIXTURE_PAGES, model_is, key, hour_ms, hour_ms + HOUR_MS, 1));
}

void disk_check_counts(struct store *st, int count)
{
    struct model m = {0};
    for (int i = 0; i < count; i++)
        disk_add_batch(NULL, &m, i);
    for (enum span slot = SPAN_MINUTE; slot < SPAN_COUNT; slot++) {
        for (size_t measure = 0; measure < MODEL_MEASURES; measure++)
            assert_int_equal(world_sum(st, FIXTURE_PAGES, slot, world_every_series, 0, CIVIL_END_MS, measure),
                             model_sum(&m, FIXTURE_PAGES, NULL, NULL, 0, CIVIL_END_MS, measure));
    }
    for (int k = 0; k < KEYS; k += 7)
        check_key(st, &m, keys[k]);
    assert_int_equal(world_book(st, "access", "", "consumed"), 200 * count);
    model_free(&m);
}
