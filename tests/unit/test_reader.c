/* However the bytes come: the lines are those of a naive split, and every offset is exact. */
#include "base/text.h"
#include "ingest/file/reader.h"
#include "tests/support/dice.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[128];

static int setup_all(void **state)
{
    (void)scratch_set_up(state);
    snprintf(path, sizeof path, "%s", scratch_path(&scratch_own, "log"));
    return 0;
}

/* read(2) with everything it may do: few bytes, a signal; and an error once, when asked. */
struct tap {
    struct dice dice;
    size_t most;
    int fail_in; /* reads until one fails with EIO; 0: none does */
};

static ssize_t tap_read(void *context, int fd, void *buf, size_t cap)
{
    struct tap *t = context;
    size_t most = 1 + (size_t)dice_roll(&t->dice, (int64_t)t->most);
    if (t->fail_in > 0 && --t->fail_in == 0) {
        errno = EIO;
        return -1;
    }
    if (dice_roll(&t->dice, 10) == 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, buf, cap < most ? cap : most);
}

struct desk {
    struct tap tap;
    struct input *in;
    struct reader *rd;
    struct block block;
    size_t line_max;
};

static void desk_open(struct desk *k, size_t line_max, size_t most, enum last_line last_line)
{
    struct err e;
    k->tap.most = most;
    k->line_max = line_max;
    k->in = input_open_with(path, tap_read, &k->tap, &e);
    assert_non_null(k->in);
    k->rd = reader_new(k->in, line_max, last_line);
    block_init(&k->block, line_max);
}

static void desk_close(struct desk *k)
{
    block_fini(&k->block);
    reader_free(k->rd);
    input_close(k->in);
}

/* Is the block what stands in `all` between its offsets, line by line, but for long lines? */
static void check_block(const struct desk *k, struct slice all)
{
    const struct block *b = &k->block;
    const char *want = all.ptr + b->from;
    assert_true(b->from < b->to && b->to <= (int64_t)all.len && b->len <= b->capacity);
    assert_true(b->from == 0 || all.ptr[b->from - 1] == '\n');
    for (const char *p = b->data, *next; p < b->data + b->len; p = next) {
        const char *feed = memchr(p, '\n', (size_t)(b->data + b->len - p));
        assert_non_null(feed);
        next = feed + 1;
        const char *want_feed = memchr(want, '\n', (size_t)(all.ptr + all.len - want));
        size_t len = (size_t)(feed - p), want_len;
        want_len = (size_t)((want_feed != NULL ? want_feed : all.ptr + all.len) - want);
        if (want_len > k->line_max) {
            assert_in_range(len, k->line_max + 1, want_len);
            assert_true(len == want_len || next == b->data + b->len);
        } else {
            assert_int_equal(len, want_len);
        }
        assert_memory_equal(p, want, len);
        want += want_len + (want_feed != NULL);
    }
    assert_int_equal(want - all.ptr, b->to);
}

static void check_tail(const struct reader *rd, struct slice all)
{
    struct slice tail = reader_tail(rd);
    size_t at = (size_t)reader_offset(rd);
    assert_int_equal(tail.len, at < READER_TAIL_BYTES ? at : READER_TAIL_BYTES);
    if (tail.len > 0)
        assert_memory_equal(tail.ptr, all.ptr + at - tail.len, tail.len);
}

/* Lines of all lengths around `line_max`, some empty, some with CRLF; the last one perhaps unfinished. */
static void make_text(struct dice *d, struct text *t, size_t line_max, int lines)
{
    for (int i = 0; i < lines; i++) {
        int kind = (int)dice_roll(d, 60);
        size_t len = kind == 0   ? line_max - 1 + (size_t)dice_roll(d, 4)
                     : kind == 1 ? (size_t)dice_roll(d, 3 * (int64_t)line_max)
                     : kind == 2 ? 0
                                 : (size_t)dice_roll(d, 200);
        if (kind == 3 && dice_roll(d, 4) == 0)
            len = READER_BLOCK_BYTES + (size_t)dice_roll(d, 100000);
        for (size_t n = 0; n < len; n++)
            text_putc(t, (char)('a' + (i + (int)n) % 26));
        text_puts(t, kind % 7 == 6 ? "\r\n" : "\n");
    }
    int64_t unfinished = dice_roll(d, 3) == 0 ? 0 : dice_roll(d, 2 * (int64_t)line_max);
    for (int64_t n = 0; n < unfinished; n++)
        text_putc(t, 'u');
}

static void read_to_end(struct desk *k, struct slice all, int64_t from)
{
    struct err e;
    enum reader_result result;
    assert_int_equal(reader_offset(k->rd), from);
    while ((result = reader_next(k->rd, &k->block, -1, &e)) != READER_END) {
        if (result == READER_FAILED) {
            assert_int_equal(e.code, EX_IOERR);
            assert_non_null(strstr(e.text, path));
            continue;
        }
        assert_int_equal(result, READER_BLOCK);
        assert_int_equal(k->block.from, from);
        check_block(k, all);
        from = k->block.to;
        assert_int_equal(reader_offset(k->rd), from);
        check_tail(k->rd, all);
    }
    assert_int_equal(reader_offset(k->rd), from);
    check_tail(k->rd, all);
}

/* The start of the last line if it has no line feed; else the end. */
static int64_t whole_lines(struct slice all)
{
    const char *feed = all.len > 0 ? memrchr(all.ptr, '\n', all.len) : NULL;
    return feed != NULL ? feed + 1 - all.ptr : 0;
}

/* Some bytes are looked at beforehand, now and then in several steps. */
static void peek(struct desk *k, struct dice *d, struct slice all)
{
    for (int64_t looks = dice_roll(d, 3), len = 0; looks >= 0; looks--) {
        len += 1 + dice_roll(d, dice_roll(d, 2) == 0 ? 100 : 2 * (int64_t)all.len + 1);
        struct slice bytes = reader_peek(k->rd, (size_t)len);
        assert_true(bytes.len <= all.len);
        assert_true((int64_t)bytes.len >= len || bytes.len == all.len || k->tap.fail_in <= 0);
        if (bytes.len > 0)
            assert_memory_equal(bytes.ptr, all.ptr, bytes.len);
    }
}

/* Perhaps first only to some line's end, as if the file ended there. */
static void read_in_stages(struct desk *k, struct dice *d, struct slice all)
{
    int64_t to = dice_roll(d, 2) == 0 || all.len == 0 ? 0 : dice_roll(d, (int64_t)all.len);
    const char *feed = to > 0 ? memrchr(all.ptr, '\n', (size_t)to) : NULL;
    if (feed != NULL && feed + 1 - all.ptr > 2 * READER_TAIL_BYTES && reader_tail(k->rd).len == 0) {
        reader_end_at(k->rd, feed + 1 - all.ptr);
        read_to_end(k, slice_of(all.ptr, (size_t)(feed + 1 - all.ptr)), 0);
        assert_int_equal(reader_offset(k->rd), feed + 1 - all.ptr);
        reader_end_at(k->rd, INT64_MAX);
    }
    read_to_end(k, all, reader_offset(k->rd));
}

static void test_lines_are_those_of_a_naive_split(void **state)
{
    (void)state;
    struct dice d = dice_new("reader");
    for (int round = 0; round < 150; round++) {
        struct desk k = {.tap.dice = d};
        struct text t = {0};
        struct err e;
        size_t line_max = 50 + (size_t)dice_roll(&d, round % 3 == 0 ? 10000 : 200);
        enum last_line last_line = dice_roll(&d, 2) == 0 ? LAST_LINE_LEAVE : LAST_LINE_TAKE;
        make_text(&d, &t, line_max, (int)dice_roll(&d, 1000));
        struct slice all = text_slice(&t);
        scratch_write(path, all);
        desk_open(&k, line_max, (size_t)(dice_roll(&d, 2) == 0 ? 300 : 1 << 20), last_line);
        k.tap.fail_in = (int)dice_roll(&d, 50);
        if (dice_roll(&d, 2) == 0) {
            struct slice head = {0};
            while (!reader_head(k.rd, &head, &e))
                assert_int_equal(e.code, EX_IOERR);
            assert_int_equal(head.len, all.len < READER_TAIL_BYTES ? all.len : READER_TAIL_BYTES);
            assert_memory_equal(head.ptr, all.ptr, head.len);
        }
        if (dice_roll(&d, 2) == 0)
            peek(&k, &d, all);
        read_in_stages(&k, &d, all);
        int64_t end = last_line == LAST_LINE_TAKE ? (int64_t)all.len : whole_lines(all);
        assert_int_equal(reader_offset(k.rd), end);
        assert_int_equal(reader_left(k.rd), (int64_t)all.len - end);
        desk_close(&k);
        text_fini(&t);
    }
}

static void test_skip_goes_on_anywhere_with_the_tail_before(void **state)
{
    (void)state;
    struct dice d = dice_new("skip");
    struct text t = {0};
    make_text(&d, &t, 1000, 3000);
    struct slice all = slice_of(t.ptr, (size_t)whole_lines(text_slice(&t)));
    scratch_write(path, all);
    for (int round = 0; round < 150; round++) {
        struct desk k = {.tap.dice = d};
        struct err e;
        struct slice head;
        int64_t to = dice_roll(&d, 3) == 0 ? dice_roll(&d, 9000) : dice_roll(&d, (int64_t)all.len);
        const char *feed = memchr(all.ptr + to, '\n', all.len - (size_t)to);
        to = feed + 1 - all.ptr;
        desk_open(&k, 1000, 100000, LAST_LINE_LEAVE);
        if (dice_roll(&d, 2) == 0)
            assert_true(reader_head(k.rd, &head, &e));
        if (dice_roll(&d, 2) == 0)
            assert_true(reader_skip(k.rd, dice_roll(&d, to + 1), &e));
        assert_true(reader_skip(k.rd, to, &e));
        check_tail(k.rd, all);
        if (to < (int64_t)all.len)
            assert_int_equal(reader_next(k.rd, &k.block, -1, &e), READER_BLOCK);
        if (to < (int64_t)all.len)
            check_block(&k, all);
        desk_close(&k);
        (void)dice_roll(&d, 2);
    }
    text_fini(&t);
}

static void test_skip_past_the_end_is_refused(void **state)
{
    (void)state;
    static const int64_t ends[] = {7, 5000, 100000};
    scratch_write(path, slice_text("a\nb\nc\n"));
    for (int gzip = 0; gzip < 2; gzip++) {
        if (gzip)
            scratch_write_gzip(path, slice_text("a\nb\nc\n"));
        for (size_t i = 0; i < COUNT_OF(ends); i++) {
            struct desk k = {.tap.dice = {1}};
            struct slice head;
            struct err e = {0};
            desk_open(&k, 100, 100, LAST_LINE_LEAVE);
            assert_true(reader_head(k.rd, &head, &e));
            assert_false(reader_skip(k.rd, ends[i], &e));
            assert_int_equal(e.code, EX_DATAERR);
            desk_close(&k);
        }
    }
}

/* The lines that a text of one or two lines brings, each in its brackets. */
static void check_last_line(const char *text, bool gzip, enum last_line last_line, const char *want)
{
    struct desk k = {.tap.dice = {1}};
    struct text got = {0};
    struct err e;
    if (gzip)
        scratch_write_gzip(path, slice_text(text));
    else
        scratch_write(path, slice_text(text));
    desk_open(&k, 200, 1000, last_line);
    text_puts(&got, "");
    while (reader_next(k.rd, &k.block, -1, &e) == READER_BLOCK) {
        for (const char *p = k.block.data, *end; p < k.block.data + k.block.len; p = end + 1) {
            end = memchr(p, '\n', k.block.len);
            text_printf(&got, "[%.*s]", (int)(end - p), p);
        }
    }
    assert_string_equal(got.ptr, want);
    desk_close(&k);
    text_fini(&got);
}

#define WHOLE "h - - [t] \"GET / HTTP/1.0\" 200 1 \"-\" \"agent\""

static void test_last_line_without_line_feed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *leave, *complete, *take;
    } cases[] = {
        {"a\nb", "[a]", "[a]", "[a][b]"},
        {"a\nb\r", "[a]", "[a]", "[a][b\r]"},
        {"a\n", "[a]", "[a]", "[a]"},
        {"a", "", "", "[a]"},
        {"\n\n", "[][]", "[][]", "[][]"},
        {"", "", "", ""},
        {WHOLE, "", "[" WHOLE "]", "[" WHOLE "]"},
        {WHOLE "\r", "", "[" WHOLE "\r]", "[" WHOLE "\r]"},
        {"a\n" WHOLE, "[a]", "[a][" WHOLE "]", "[a][" WHOLE "]"},
        {WHOLE " ", "", "", "[" WHOLE " ]"},
        {"h \"r\" \"-\" \"agent\\\"", "", "", "[h \"r\" \"-\" \"agent\\\"]"},
        {"h \"r\" \"-\" \"\\\\\"", "", "[h \"r\" \"-\" \"\\\\\"]", "[h \"r\" \"-\" \"\\\\\"]"},
        {"h \"r\" \"-\" \"", "", "", "[h \"r\" \"-\" \"]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int gzip = 0; gzip < (cases[i].text[0] != '\0' ? 2 : 1); gzip++) {
            check_last_line(cases[i].text, gzip, LAST_LINE_LEAVE, cases[i].leave);
            check_last_line(cases[i].text, gzip, LAST_LINE_COMPLETE, cases[i].complete);
            check_last_line(cases[i].text, gzip, LAST_LINE_TAKE, cases[i].take);
        }
    }
}

/* A file that grows in pieces cut anywhere; the reader comes to its end between them. */
static void test_growing_file_brings_every_line_once(void **state)
{
    (void)state;
    struct dice d = dice_new("growing");
    for (int round = 0; round < 60; round++) {
        struct desk k = {.tap.dice = d};
        struct text t = {0};
        int64_t from = 0;
        make_text(&d, &t, 200, 300);
        t.len = (size_t)whole_lines(text_slice(&t));
        scratch_write(path, slice_of("", 0));
        desk_open(&k, 200, 100000, LAST_LINE_LEAVE);
        for (size_t at = 0; at < t.len;) {
            size_t n = 1 + (size_t)dice_roll(&d, dice_roll(&d, 2) == 0 ? 20 : 20000);
            n = n < t.len - at ? n : t.len - at;
            scratch_append(path, slice_of(t.ptr + at, n));
            at += n;
            struct slice so_far = slice_of(t.ptr, at);
            read_to_end(&k, so_far, from);
            from = reader_offset(k.rd);
            assert_int_equal(from, whole_lines(so_far));
        }
        assert_int_equal(from, t.len);
        desk_close(&k);
        text_fini(&t);
    }
}

/* What was appended to "a" is followed by: which lines? With the reader that delivered it, and by another. */
static void check_torn(const char *const *pieces, const char *want)
{
    for (int anew = 0; anew < 2; anew++) {
        struct desk k = {.tap.dice = {1}};
        struct text got = {0};
        struct err e;
        scratch_write(path, slice_text("a"));
        desk_open(&k, 200, 1000, LAST_LINE_TAKE);
        assert_int_equal(reader_next(k.rd, &k.block, -1, &e), READER_BLOCK);
        assert_int_equal(reader_offset(k.rd), 1);
        text_puts(&got, "");
        for (const char *const *piece = pieces; *piece != NULL; piece++) {
            scratch_append(path, slice_text(*piece));
            if (anew) {
                int64_t offset = reader_offset(k.rd);
                desk_close(&k);
                desk_open(&k, 200, 1000, LAST_LINE_TAKE);
                assert_true(reader_skip(k.rd, offset, &e));
            }
            while (reader_next(k.rd, &k.block, -1, &e) == READER_BLOCK)
                text_printf(&got, "[%.*s]", (int)k.block.len, k.block.data);
        }
        assert_string_equal(got.ptr, want);
        desk_close(&k);
        text_fini(&got);
    }
}

static void test_line_feed_that_follows_a_delivered_line_is_its_own(void **state)
{
    (void)state;
    check_torn((const char *const[]){"\n", "b\n", NULL}, "[b\n]");
    check_torn((const char *const[]){"\nb\n", NULL}, "[b\n]");
    check_torn((const char *const[]){"\r\nb\n", NULL}, "[b\n]");
    check_torn((const char *const[]){"\r", "\n", "b\n", NULL}, "[b\n]");
    check_torn((const char *const[]){"\n", "\n", NULL}, "[\n]");
    check_torn((const char *const[]){"\n\n", NULL}, "[\n]");
    check_torn((const char *const[]){"bc\n", NULL}, "[bc\n]");
    check_torn((const char *const[]){"\rb\n", NULL}, "[\rb\n]");
    check_torn((const char *const[]){"b", "\nc\n", NULL}, "[b\n][c\n]");
}

/* Counting that is broken off anywhere and goes on there sees each line as one, however long. */
static void test_no_block_ends_within_a_long_line(void **state)
{
    (void)state;
    struct dice d = dice_new("long");
    struct text t = {0};
    make_text(&d, &t, 300, 600);
    struct slice all = slice_of(t.ptr, (size_t)whole_lines(text_slice(&t)));
    scratch_write(path, all);
    int64_t at = 0;
    while (at < (int64_t)all.len) {
        struct desk k = {.tap.dice = {(uint64_t)at}};
        struct err e;
        desk_open(&k, 300, 250, LAST_LINE_LEAVE);
        assert_true(reader_skip(k.rd, at, &e));
        for (int64_t n = dice_roll(&d, 20); n >= 0 && at < (int64_t)all.len; n--) {
            assert_int_equal(reader_next(k.rd, &k.block, -1, &e), READER_BLOCK);
            assert_int_equal(k.block.from, at);
            check_block(&k, all);
            at = k.block.to;
        }
        desk_close(&k);
    }
    text_fini(&t);
}

/* Lines that came through a pipe together are not held back until more come. */
static void test_lines_of_a_pipe_do_not_wait_for_more(void **state)
{
    (void)state;
    struct err e;
    struct slice head;
    struct text lines = {0};
    const char *fifo = scratch_path(&scratch_own, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    FILE *keep = fopen(fifo, "r+");
    for (int i = 0; i < 1000; i++)
        text_puts(&lines, "a line\n");
    fwrite(lines.ptr, 1, lines.len, keep);
    fflush(keep);
    struct input *in = input_open(fifo, &e);
    struct reader *rd = reader_new(in, 5000, LAST_LINE_LEAVE);
    struct block b;
    block_init(&b, 5000);
    assert_true(reader_head(rd, &head, &e));
    while (reader_offset(rd) < (int64_t)lines.len)
        assert_int_equal(reader_next(rd, &b, 0, &e), READER_BLOCK);
    assert_int_equal(reader_next(rd, &b, 0, &e), READER_WAIT);
    block_fini(&b);
    reader_free(rd);
    input_close(in);
    fclose(keep);
    text_fini(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_those_of_a_naive_split),
        cmocka_unit_test(test_skip_goes_on_anywhere_with_the_tail_before),
        cmocka_unit_test(test_skip_past_the_end_is_refused),
        cmocka_unit_test(test_last_line_without_line_feed),
        cmocka_unit_test(test_growing_file_brings_every_line_once),
        cmocka_unit_test(test_line_feed_that_follows_a_delivered_line_is_its_own),
        cmocka_unit_test(test_no_block_ends_within_a_long_line),
        cmocka_unit_test(test_lines_of_a_pipe_do_not_wait_for_more),
    };
    return cmocka_run_group_tests(tests, setup_all, scratch_tear_down);
}
