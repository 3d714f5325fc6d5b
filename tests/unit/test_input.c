#include "base/mem.h"
#include "base/text.h"
#include "ingest/file/input.h"
#include "ingest/file/input_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PLAIN_BYTES 300000

static char dir[] = "/tmp/tallyd-test-input-XXXXXX";
static char path[256];
static char plain[PLAIN_BYTES];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/log", dir);
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof plain; i++) {
        x = x * 1664525 + 1013904223;
        plain[i] = i % 80 == 79 ? '\n' : (char)('a' + (x >> 24) % 26);
    }
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_file(const char *mode, const char *bytes, size_t len)
{
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* One member, frame or stream of `packing`. */
static void pack(enum packing packing, const char *bytes, size_t len, struct text *out)
{
    static const int filters[PACKING_COUNT] = {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD,
                                               ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ};
    size_t used = 0, cap = len + 10000;
    char *packed = xmalloc(cap);
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_add_filter(a, filters[packing]);
    archive_write_set_format_raw(a);
    archive_write_set_bytes_in_last_block(a, 1);
    assert_int_equal(archive_write_open_memory(a, packed, cap, &used), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes, len), len);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    text_add(out, packed, used);
    archive_entry_free(entry);
    archive_write_free(a);
    free(packed);
}

/* Read to the end or to a failure, in pieces of `cap`. */
static bool read_all(struct input *in, size_t cap, struct text *out, struct err *e)
{
    char *buf = xmalloc(cap);
    size_t got = 1;
    bool ok = true;
    while (ok && got > 0) {
        ok = input_read(in, buf, cap, &got, e);
        text_add(out, buf, got);
    }
    free(buf);
    return ok;
}

static void assert_reads(struct input *in, size_t cap, const char *want, size_t len)
{
    struct err e;
    struct text out = {0};
    if (!read_all(in, cap, &out, &e))
        fail_msg("%s", e.text);
    assert_int_equal(out.len, len);
    assert_memory_equal(out.ptr, want, len);
    text_fini(&out);
}

static struct input *open_ok(void)
{
    struct err e;
    struct input *in = input_open(path, &e);
    if (in == NULL)
        fail_msg("%s", e.text);
    return in;
}

static void test_input_reads_every_packing(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0};
        pack((enum packing)p, plain, sizeof plain, &packed);
        write_file("w", packed.ptr, packed.len);
        static const size_t caps[] = {1000, 1 << 20};
        for (size_t i = 0; i < COUNT_OF(caps); i++) {
            struct input *in = open_ok();
            assert_reads(in, caps[i], plain, sizeof plain);
            assert_int_equal(input_can_grow(in), p == PACKING_NONE);
            assert_int_equal(input_raw_position(in), packed.len);
            assert_int_equal(input_raw_size(in), packed.len);
            assert_true(input_wait(in, 0));
            input_close(in);
        }
        text_fini(&packed);
    }
}

static void test_input_reads_concatenated_members(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0};
        pack((enum packing)p, plain, 100000, &packed);
        pack((enum packing)p, plain + 100000, 1, &packed);
        pack((enum packing)p, "", 0, &packed);
        pack((enum packing)p, plain + 100001, sizeof plain - 100001, &packed);
        write_file("w", packed.ptr, packed.len);
        struct input *in = open_ok();
        assert_reads(in, 65536, plain, sizeof plain);
        input_close(in);
        text_fini(&packed);
    }
}

static void test_input_packed_emptiness_is_empty(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0};
        pack((enum packing)p, "", 0, &packed);
        write_file("w", packed.ptr, packed.len);
        struct input *in = open_ok();
        assert_reads(in, 65536, "", 0);
        assert_reads(in, 65536, "", 0);
        input_close(in);
        text_fini(&packed);
    }
}

/* Only gzip says it, in a file's last four bytes. */
static void test_input_packed_file_says_its_size(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0};
        pack((enum packing)p, plain, 100000, &packed);
        write_file("w", packed.ptr, packed.len);
        assert_int_equal(input_unpack_has_size(path, 100000), p == PACKING_GZIP);
        assert_false(input_unpack_has_size(path, 99999));
        write_file("w", packed.ptr, packed.len - 1);
        assert_false(input_unpack_has_size(path, 100000));
        write_file("w", packed.ptr, packed.len);
        write_file("a", packed.ptr, packed.len);
        assert_false(input_unpack_has_size(path, 200000)); /* two members: the size is that of the last one */
        text_fini(&packed);
    }
    write_file("w", "\x1f\x8b\0\0\0\0", 6);
    assert_false(input_unpack_has_size(path, 0));
    unlink(path);
    assert_false(input_unpack_has_size(path, 0));
}

static void test_input_gzip_may_be_padded_with_zeros(void **state)
{
    (void)state;
    struct text packed = {0};
    pack(PACKING_GZIP, plain, 1000, &packed);
    for (int i = 0; i < 1000; i++)
        text_putc(&packed, '\0');
    write_file("w", packed.ptr, packed.len);
    struct input *in = open_ok();
    assert_reads(in, 65536, plain, 1000);
    input_close(in);
    text_fini(&packed);
}

static void test_input_text_like_a_magic_is_plain(void **state)
{
    (void)state;
    static const char *const texts[] = {"B", "BZ", "BZ 1.2.3.4", "\x1F", "\xFD\x37zXZ"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        write_file("w", texts[i], strlen(texts[i]));
        struct input *in = open_ok();
        assert_reads(in, 65536, texts[i], strlen(texts[i]));
        input_close(in);
    }
}

static void test_input_plain_file_goes_on_after_its_end(void **state)
{
    (void)state;
    write_file("w", "", 0);
    struct input *in = open_ok();
    assert_reads(in, 100, "", 0);
    assert_true(input_can_grow(in));
    write_file("a", "ab", 2);
    char buf[16];
    size_t got;
    struct err e;
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 2);
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 0);
    write_file("a", "cde", 3);
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 3);
    assert_memory_equal(buf, "cde", 3);
    input_close(in);
}

/* The file at the path is removed; a file that is held is there all the same. */
static void replace(const char *bytes)
{
    assert_int_equal(unlink(path), 0);
    write_file("w", bytes, strlen(bytes));
}

static void test_input_holds_what_took_its_place_first(void **state)
{
    (void)state;
    char held[32];
    write_file("w", "first", 5);
    struct input *first = open_ok();
    assert_reads(first, 100, "first", 5);
    assert_int_equal(input_fate(first), INPUT_STANDS);
    assert_int_equal(input_held_fd(first), -1);
    replace("");
    assert_int_equal(input_fate(first), INPUT_RENAMED);
    write_file("a", "next", 4);
    assert_int_equal(input_fate(first), INPUT_RENAMED);
    replace("");
    assert_int_equal(input_fate(first), INPUT_RENAMED_AGAIN);
    assert_int_equal(pread(input_held_fd(first), held, sizeof held, 0), 4);
    assert_memory_equal(held, "next", 4);
    input_close(first);
}

static void test_input_of_a_packed_file_grows_and_is_replaced(void **state)
{
    (void)state;
    for (int p = PACKING_GZIP; p < PACKING_COUNT; p++) {
        struct text first = {0}, second = {0};
        pack((enum packing)p, plain, sizeof plain, &first);
        pack((enum packing)p, "second\n", 7, &second);
        write_file("w", first.ptr, first.len);
        struct input *in = open_ok();
        assert_reads(in, 100000, plain, sizeof plain);
        for (int i = 0; i < 2; i++) {
            write_file("a", "\0\0\0\0", 4); /* padding */
            assert_reads(in, 100, "", 0);
            write_file("a", second.ptr, second.len);
            assert_reads(in, 100, "second\n", 7);
        }
        assert_int_equal(input_fate(in), INPUT_STANDS);
        assert_int_equal(truncate(path, 1), 0);
        assert_int_equal(input_fate(in), INPUT_TRUNCATED);
        assert_int_equal(truncate(path, 2 * PLAIN_BYTES), 0);
        replace("");
        assert_int_equal(input_fate(in), INPUT_RENAMED);
        input_close(in);
        text_fini(&first);
        text_fini(&second);
    }
}

static void test_input_that_was_truncated_is_told(void **state)
{
    (void)state;
    write_file("w", "one\ntwo\n", 8);
    struct input *in = open_ok();
    assert_reads(in, 100, "one\ntwo\n", 8);
    assert_reads(in, 100, "", 0);
    write_file("a", "three\n", 6);
    assert_reads(in, 100, "three\n", 6);
    assert_reads(in, 100, "", 0);
    assert_int_equal(input_fate(in), INPUT_STANDS);
    write_file("w", "new", 3);
    assert_int_equal(input_fate(in), INPUT_TRUNCATED);
    input_close(in);
}

/* It is longer again than what was read of it, so that its length tells nothing. */
static void test_input_that_was_truncated_and_has_grown_is_told(void **state)
{
    (void)state;
    write_file("w", "one\ntwo\n", 8);
    struct input *in = open_ok();
    assert_reads(in, 100, "one\ntwo\n", 8);
    assert_reads(in, 100, "", 0);
    write_file("w", "six\nten\nmore\n", 13);
    assert_reads(in, 100, "", 0);
    assert_int_equal(input_fate(in), INPUT_TRUNCATED);
    assert_reads(in, 100, "", 0);
    input_close(in);
}

static void test_input_cut_off_data_is_told_after_what_came_before(void **state)
{
    (void)state;
    for (int p = PACKING_GZIP; p < PACKING_COUNT; p++) {
        struct text packed = {0}, out = {0};
        struct err e = {0};
        pack((enum packing)p, plain, 100000, &packed);
        size_t first = packed.len;
        pack((enum packing)p, plain + 100000, sizeof plain - 100000, &packed);
        write_file("w", packed.ptr, first + (packed.len - first) / 2);
        struct input *in = open_ok();
        assert_false(read_all(in, 4096, &out, &e));
        assert_int_equal(e.code, EX_DATAERR);
        assert_non_null(strstr(e.text, path));
        char position[32];
        snprintf(position, sizeof position, "byte %zu", out.len);
        assert_non_null(strstr(e.text, position));
        assert_true(out.len < sizeof plain);
        assert_memory_equal(out.ptr == NULL ? "" : out.ptr, plain, out.len);
        if (p == PACKING_GZIP)
            assert_true(out.len > 150000);
        size_t got;
        assert_false(input_read(in, position, sizeof position, &got, &e));
        input_close(in);
        text_fini(&out);
        text_fini(&packed);
    }
}

static void test_input_gzip_checksum_and_garbage_are_errors(void **state)
{
    (void)state;
    struct text packed = {0}, out = {0};
    struct err e;
    pack(PACKING_GZIP, plain, 1000, &packed);
    packed.ptr[packed.len - 6] ^= 1;
    write_file("w", packed.ptr, packed.len);
    struct input *in = open_ok();
    assert_false(read_all(in, 4096, &out, &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_int_equal(out.len, 1000);
    input_close(in);

    packed.ptr[packed.len - 6] ^= 1;
    text_puts(&packed, "garbage");
    write_file("w", packed.ptr, packed.len);
    in = open_ok();
    text_clear(&out);
    assert_false(read_all(in, 4096, &out, &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_int_equal(out.len, 1000);
    input_close(in);
    text_fini(&out);
    text_fini(&packed);
}

static void test_input_skip_goes_on_at_the_position(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0}, out = {0};
        struct err e;
        char head[10];
        size_t got;
        pack((enum packing)p, plain, sizeof plain, &packed);
        write_file("w", packed.ptr, packed.len);
        struct input *in = open_ok();
        assert_true(input_read(in, head, sizeof head, &got, &e));
        assert_true(input_skip(in, 123456, &e));
        assert_true(read_all(in, 65536, &out, &e));
        assert_int_equal(out.len, sizeof plain - 123456);
        assert_memory_equal(out.ptr, plain + 123456, out.len);
        if (p == PACKING_NONE) {
            assert_true(input_skip(in, 5, &e));
            assert_true(input_read(in, head, sizeof head, &got, &e));
            assert_memory_equal(head, plain + 5, got);
        }
        assert_false(input_skip(in, sizeof plain + 1, &e));
        assert_int_equal(e.code, EX_DATAERR);
        input_close(in);
        text_fini(&out);
        text_fini(&packed);
    }
}

static void test_input_open_says_what_is_wrong(void **state)
{
    (void)state;
    struct err e;
    unlink(path);
    assert_null(input_open(path, &e));
    assert_int_equal(e.code, EX_NOINPUT);
    assert_non_null(strstr(e.text, path));
    assert_null(input_open(dir, &e));
    assert_int_equal(e.code, EX_NOINPUT);
    assert_non_null(strstr(e.text, "directory"));
    write_file("w", "a", 1);
    chmod(path, 0);
    if (geteuid() != 0) { /* root may read it all the same */
        assert_null(input_open(path, &e));
        assert_int_equal(e.code, EX_NOPERM);
    }
    chmod(path, 0600);
}

/* Reads one to three bytes at a time, interrupted before each; fails once `left` are delivered. */
struct faulty {
    size_t left;
    int calls;
};

static ssize_t read_faulty(void *context, int fd, void *buf, size_t cap)
{
    struct faulty *f = context;
    if (f->calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (f->left == 0) {
        errno = EIO;
        return -1;
    }
    size_t n = 1 + (size_t)f->calls % 3;
    n = n < cap ? n : cap;
    n = n < f->left ? n : f->left;
    ssize_t got = read(fd, buf, n);
    f->left -= got > 0 ? (size_t)got : 0;
    return got;
}

static void test_input_survives_short_and_interrupted_reads(void **state)
{
    (void)state;
    for (int p = PACKING_NONE; p < PACKING_COUNT; p++) {
        struct text packed = {0}, out = {0};
        struct err e;
        pack((enum packing)p, plain, 20000, &packed);
        write_file("w", packed.ptr, packed.len);
        struct faulty faulty = {.left = packed.len + 1};
        struct input *in = input_open_with(path, read_faulty, &faulty, &e);
        assert_reads(in, 4096, plain, 20000);
        input_close(in);

        faulty = (struct faulty){.left = packed.len / 2};
        in = input_open_with(path, read_faulty, &faulty, &e);
        assert_false(read_all(in, 4096, &out, &e));
        assert_int_equal(e.code, EX_IOERR);
        assert_non_null(strstr(e.text, path));
        if (p <= PACKING_GZIP)
            assert_true(out.len > 5000);
        assert_memory_equal(out.ptr == NULL ? "" : out.ptr, plain, out.len);
        input_close(in);
        text_fini(&out);
        text_fini(&packed);
    }
}

static void test_input_pipe_waits_until_a_deadline(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    struct err e;
    struct input *in = input_open("-", &e);
    assert_non_null(in);
    assert_false(input_can_grow(in));
    assert_int_equal(input_raw_size(in), 0);
    assert_false(input_wait(in, 1));
    assert_int_equal(write(ends[1], "hello", 5), 5);
    char buf[3];
    size_t got;
    assert_true(input_wait(in, 1000));
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 3);
    assert_true(input_wait(in, 0)); /* "lo" was read already */
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 2);
    assert_false(input_wait(in, 1));
    close(ends[1]);
    assert_true(input_wait(in, 1000));
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 0);
    input_close(in);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(ends[0]);
}

/* Appends what comes within the file's size, as IIS does, and returns what is read then. */
static size_t write_and_read(struct input *in, long at, const char *text, char *buf, size_t cap)
{
    struct err e;
    size_t got;
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    assert_true(input_read(in, buf, cap, &got, &e));
    return got;
}

static void test_input_ends_before_space_that_nobody_wrote_to(void **state)
{
    (void)state;
    static char space[65536];
    char buf[100000], head[8];
    size_t got;
    struct err e;
    write_file("w", space, sizeof space);
    struct input *in = input_open(path, &e);
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 0);
    assert_int_equal(write_and_read(in, 0, "a b\nc", buf, sizeof buf), 5);
    assert_memory_equal(buf, "a b\nc", 5);
    assert_true(input_can_grow(in));
    assert_int_equal(input_head(in, head, sizeof head), 5);
    assert_int_equal(write_and_read(in, 5, " d\n", buf, sizeof buf), 3);
    assert_memory_equal(buf, " d\n", 3);
    assert_true(input_read(in, buf, sizeof buf, &got, &e));
    assert_int_equal(got, 0);
    assert_int_equal(input_fate(in), INPUT_STANDS);
    input_close(in);
}

/* NULs with text behind them are bytes, as of a disk that lost some; so are more than any writer prepares. */
static void test_input_reads_other_nuls(void **state)
{
    (void)state;
    static char space[(1 << 20) + 8192];
    static char buf[sizeof space];
    size_t got;
    struct err e;
    write_file("w", "a\n\0\0\0b\n\0\0", 9);
    struct input *in = input_open(path, &e);
    assert_true(input_read(in, buf, 4, &got, &e)); /* ends within NULs */
    assert_int_equal(got, 4);
    assert_true(input_read(in, buf + 4, 100, &got, &e));
    assert_int_equal(got, 3);
    assert_memory_equal(buf, "a\n\0\0\0b\n", 7);
    input_close(in);
    write_file("w", "a\n", 2);
    write_file("a", space, sizeof space);
    in = input_open(path, &e);
    size_t total = 0;
    do {
        assert_true(input_read(in, buf, sizeof buf, &got, &e));
        total += got;
    } while (got > 0);
    assert_int_equal(total, sizeof space + 2);
    input_close(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_reads_every_packing),
        cmocka_unit_test(test_input_reads_concatenated_members),
        cmocka_unit_test(test_input_packed_emptiness_is_empty),
        cmocka_unit_test(test_input_packed_file_says_its_size),
        cmocka_unit_test(test_input_gzip_may_be_padded_with_zeros),
        cmocka_unit_test(test_input_text_like_a_magic_is_plain),
        cmocka_unit_test(test_input_plain_file_goes_on_after_its_end),
        cmocka_unit_test(test_input_holds_what_took_its_place_first),
        cmocka_unit_test(test_input_of_a_packed_file_grows_and_is_replaced),
        cmocka_unit_test(test_input_that_was_truncated_is_told),
        cmocka_unit_test(test_input_that_was_truncated_and_has_grown_is_told),
        cmocka_unit_test(test_input_cut_off_data_is_told_after_what_came_before),
        cmocka_unit_test(test_input_gzip_checksum_and_garbage_are_errors),
        cmocka_unit_test(test_input_skip_goes_on_at_the_position),
        cmocka_unit_test(test_input_open_says_what_is_wrong),
        cmocka_unit_test(test_input_survives_short_and_interrupted_reads),
        cmocka_unit_test(test_input_pipe_waits_until_a_deadline),
        cmocka_unit_test(test_input_ends_before_space_that_nobody_wrote_to),
        cmocka_unit_test(test_input_reads_other_nuls),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
