/* The smallest parts: arena, errors, varints, UTF-8, slices, growing arrays, quoted log values, clocks. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_arena_keeps_what_it_handed_out(void **state)
{
    (void)state;
    struct dice d = dice_new("arena");
    struct arena a;
    struct slice copies[500];
    arena_init(&a, 1024);
    assert_int_equal(arena_bytes(&a), 0);
    for (int round = 0; round < 5; round++) {
        size_t sum = 0;
        for (size_t i = 0; i < COUNT_OF(copies); i++) {
            char text[3000];
            size_t len = (size_t)dice_roll(&d, dice_roll(&d, 20) == 0 ? 3000 : 50);
            memset(text, (int)(i % 251), len);
            copies[i] = arena_copy(&a, slice_of(text, len));
            assert_int_equal((uintptr_t)copies[i].ptr % 8, 0);
            sum += len;
        }
        assert_true(arena_bytes(&a) >= sum);
        for (size_t i = 0; i < COUNT_OF(copies); i++) {
            for (size_t k = 0; k < copies[i].len; k++)
                assert_int_equal((unsigned char)copies[i].ptr[k], i % 251);
        }
        arena_reset(&a);
        assert_true(arena_bytes(&a) <= 3008);
    }
    arena_fini(&a);
    assert_int_equal(arena_bytes(&a), 0);
}

static void test_errors_say_what_they_are(void **state)
{
    (void)state;
    struct err e;
    assert_false(err_set(&e, EX_IOERR, "cannot read %s", "x"));
    assert_true(e.code == EX_IOERR && !e.retryable);
    assert_string_equal(e.text, "cannot read x");
    assert_false(err_prefix(&e, "line %d", 7));
    assert_string_equal(e.text, "line 7: cannot read x");
    assert_true(e.code == EX_IOERR && !e.retryable);
    assert_false(err_set_retryable(&e, EX_TEMPFAIL, "locked"));
    assert_false(err_prefix(&e, "%s", "db"));
    assert_true(e.code == EX_TEMPFAIL && e.retryable);
    assert_string_equal(e.text, "db: locked");
}

static void test_errors_do_nothing_to_a_terminal(void **state)
{
    (void)state;
    struct err e;
    err_set(&e, EX_IOERR, "%s: \xc3\xa9", "a\x1b[31m\nb\xc2\x9b\xe2\x80\x8e\xff");
    assert_string_equal(e.text, "a\\x1b[31m b\\xc2\\x9b\\xe2\\x80\\x8e\\xff: \xc3\xa9");
    err_prefix(&e, "%s", "\x1b");
    assert_string_equal(e.text, "\\x1b: a\\x1b[31m b\\xc2\\x9b\\xe2\\x80\\x8e\\xff: \xc3\xa9");
}

/* However long the pieces are: as much as fits, the beginning first, and terminated. */
static void test_errors_are_cut_at_their_room(void **state)
{
    (void)state;
    struct err e;
    char longer[2 * sizeof e.text];
    for (size_t len = 0; len < sizeof longer; len += 7) {
        memset(longer, 'p', sizeof longer);
        longer[len] = '\0';
        err_set(&e, EX_IOERR, "%s", longer);
        assert_int_equal(strlen(e.text), len < sizeof e.text ? len : sizeof e.text - 1);
        err_set(&e, EX_IOERR, "tail");
        err_prefix(&e, "%s", longer);
        size_t want = len + 6 < sizeof e.text ? len + 6 : sizeof e.text - 1;
        assert_int_equal(strlen(e.text), want);
        assert_memory_equal(e.text, longer, len < want ? len : want);
        if (len + 6 < sizeof e.text)
            assert_string_equal(e.text + len, ": tail");
    }
}

static void test_varints_read_back(void **state)
{
    (void)state;
    struct dice d = dice_new("varint");
    for (int i = 0; i < 100000; i++) {
        uint8_t buf[VARINT_BYTES_MAX];
        uint64_t v = i == 0 ? UINT64_MAX : (uint64_t)dice_roll(&d, INT64_MAX) >> dice_roll(&d, 63), read = 0;
        if (i % 2 == 1)
            v = ~v;
        uint8_t *end = varint_put(buf, v);
        assert_in_range(end - buf, 1, VARINT_BYTES_MAX);
        assert_ptr_equal(varint_get(buf, end, &read), end);
        assert_true(read == v);
        for (uint8_t *cut = buf; cut < end; cut++)
            assert_null(varint_get(buf, cut, &read));
        assert_true(varint_unzigzag(varint_zigzag((int64_t)v)) == (int64_t)v);
    }
    assert_true(varint_zigzag(0) == 0 && varint_zigzag(-1) == 1 && varint_zigzag(1) == 2);
    assert_true(varint_zigzag(INT64_MIN) == UINT64_MAX && varint_zigzag(INT64_MAX) == UINT64_MAX - 1);
}

static void test_malformed_varints_are_refused(void **state)
{
    (void)state;
    uint64_t v;
    uint8_t buf[20];
    memset(buf, 0xFF, sizeof buf);
    for (size_t len = 0; len <= sizeof buf; len++)
        assert_null(varint_get(buf, buf + len, &v));
    buf[9] = 1; /* 64 bits, all set */
    assert_ptr_equal(varint_get(buf, buf + sizeof buf, &v), buf + 10);
    assert_true(v == UINT64_MAX);
    for (int last = 2; last < 0x80; last++) { /* more than 64 */
        buf[9] = (uint8_t)last;
        assert_null(varint_get(buf, buf + sizeof buf, &v));
    }
    memset(buf, 0x80, sizeof buf);
    buf[10] = 0;
    assert_null(varint_get(buf, buf + sizeof buf, &v));
}

/* RFC 3629 the naive way: decode, encode again, compare. */
static size_t naive_utf8_len(const unsigned char *p, size_t room)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80             ? 1
               : (p[0] & 0xE0) == 0xC0 ? 2
               : (p[0] & 0xF0) == 0xE0 ? 3
               : (p[0] & 0xF8) == 0xF0 ? 4
                                       : 0;
    if (n <= 1)
        return n;
    if (n > room)
        return 0;
    unsigned code = p[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    return code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : n;
}

static void test_utf8_equals_a_naive_decoder(void **state)
{
    (void)state;
    static const unsigned char thirds[] = {0x00, 0x41, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xE2, 0xFF};
    for (unsigned first = 0; first < 0x10000; first++) {
        unsigned char p[4] = {(unsigned char)(first >> 8), (unsigned char)first};
        for (size_t k = 0; k < COUNT_OF(thirds) * COUNT_OF(thirds); k++) {
            p[2] = thirds[k / COUNT_OF(thirds)];
            p[3] = thirds[k % COUNT_OF(thirds)];
            for (size_t room = 1; room <= 4; room++) {
                size_t len = utf8_len(p, p + room);
                if (len != naive_utf8_len(p, room))
                    fail_msg("%02X %02X %02X %02X, %zu bytes: found %zu", p[0], p[1], p[2], p[3], room, len);
            }
        }
        assert_int_equal(utf8_len(p, p), 0);
    }
}

static void test_slices_compare_bytes(void **state)
{
    (void)state;
    assert_true(slice_equal(slice_of(NULL, 0), slice_of("x", 0)));
    assert_true(slice_equal(slice_of("a\0b", 3), slice_of("a\0b", 3)));
    assert_false(slice_equal(slice_of("a\0b", 3), slice_of("a\0c", 3)));
    assert_false(slice_equal(slice_text("ab"), slice_text("a")));
    assert_true(slice_is(slice_text(""), ""));
    assert_false(slice_is(slice_of("a\0", 2), "a"));
}

static void test_growing_array_keeps_its_elements(void **state)
{
    (void)state;
    size_t capacity = 0;
    int *array = NULL;
    for (int i = 0; i < 5000; i++) {
        array = xgrow(array, &capacity, (size_t)i + 1, sizeof *array);
        assert_true(capacity > (size_t)i);
        array[i] = i;
    }
    for (int i = 0; i < 5000; i++)
        assert_int_equal(array[i], i);
    size_t before = capacity;
    array = xgrow(array, &capacity, 10, sizeof *array);
    assert_int_equal(capacity, before);
    free(array);
    char *copy = xstrndup("abcdef", 3);
    assert_string_equal(copy, "abc");
    free(copy);
    free(xmalloc(0));
    free(xcalloc(0, 8));
}

static volatile size_t many = SIZE_MAX / 16 + 2, all = SIZE_MAX;

static void allocate_calloc(void)
{
    free(xcalloc(many, 16));
}

static void allocate_table(void)
{
    free(xtable(many, 16));
}

static void allocate_aligned(void)
{
    free(xtable(all, 1));
}

static void test_size_that_overflows_is_a_bug_and_no_small_block(void **state)
{
    static void (*const calls[])(void) = {allocate_calloc, allocate_table, allocate_aligned};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            calls[i]();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static void test_log_values_are_one_clean_line(void **state)
{
    (void)state;
    char buf[LOG_QUOTE_BYTES], longer[3 * LOG_QUOTE_BYTES];
    assert_string_equal(log_quote("", buf), "\"\"");
    assert_string_equal(log_quote("a \"b\" \\", buf), "\"a \\\"b\\\" \\\\\"");
    assert_string_equal(log_quote("a\nlevel=error\r\t\x1b[m\x7f", buf), "\"a level=error   [m \"");
    for (size_t len = LOG_QUOTE_BYTES / 2 - 10; len < sizeof longer; len++) {
        memset(longer, '"', len);
        longer[len] = '\0';
        size_t n = strlen(log_quote(longer, buf));
        assert_true(n < sizeof buf && buf[0] == '"' && buf[n - 1] == '"');
        assert_int_equal(n % 2, 0); /* no many of an escape */
    }
}

static void note_signal(int number)
{
    (void)number;
}

static void test_a_signal_does_not_shorten_a_sleep(void **state)
{
    (void)state;
    const struct sigaction noting = {.sa_handler = note_signal};
    const struct itimerval soon = {.it_value.tv_usec = 5000};
    struct sigaction before;
    sigaction(SIGALRM, &noting, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    const int64_t begun_ms = clock_mono_ms(&clock_system);
    clock_sleep(50);
    assert_true(clock_mono_ms(&clock_system) - begun_ms >= 49);
    sigaction(SIGALRM, &before, NULL);
}

static void test_fake_clock_stands_still(void **state)
{
    (void)state;
    struct clock c = clock_fake(1431857103250);
    assert_int_equal(clock_wall_ms(&c), 1431857103250);
    int64_t mono = clock_mono_ms(&c);
    c.fake_mono_ms += 500;
    assert_int_equal(clock_mono_ms(&c), mono + 500);
    assert_int_equal(clock_wall_ms(&c), 1431857103250);
    int64_t wall = clock_wall_ms(&clock_system);
    assert_true(wall > 1700000000000 && clock_wall_ms(&clock_system) - wall < 10000);
    int64_t before = clock_mono_ms(&clock_system);
    assert_true(clock_mono_ms(&clock_system) >= before);
}

static void test_times_of_the_clock_as_threads_wait_for_them(void **state)
{
    (void)state;
    struct timespec at = clock_timespec(1999);
    assert_int_equal(at.tv_sec, 1);
    assert_int_equal(at.tv_nsec, 999000000);
    int64_t before_ms = clock_mono_ms(&clock_system);
    at = clock_timespec_in(2500);
    int64_t at_ms = (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
    assert_true(at_ms >= before_ms + 2500 && at_ms <= clock_mono_ms(&clock_system) + 2500);
}

static void test_wait_ends_by_the_clock_that_is_given(void **state)
{
    (void)state;
    struct clock c = clock_fake(0);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;
    clock_cond_init(&changed);
    pthread_mutex_lock(&lock);
    assert_true(clock_wait(&c, &changed, &lock, 5)); /* it looks now and then */
    clock_pass(&c, 5);
    assert_false(clock_wait(&c, &changed, &lock, 5));
    int64_t until_ms = clock_mono_ms(&clock_system) + 2;
    while (clock_wait(&clock_system, &changed, &lock, until_ms)) {
    }
    assert_true(clock_mono_ms(&clock_system) >= until_ms);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_keeps_what_it_handed_out),
        cmocka_unit_test(test_errors_say_what_they_are),
        cmocka_unit_test(test_errors_do_nothing_to_a_terminal),
        cmocka_unit_test(test_errors_are_cut_at_their_room),
        cmocka_unit_test(test_varints_read_back),
        cmocka_unit_test(test_malformed_varints_are_refused),
        cmocka_unit_test(test_utf8_equals_a_naive_decoder),
        cmocka_unit_test(test_slices_compare_bytes),
        cmocka_unit_test(test_growing_array_keeps_its_elements),
        cmocka_unit_test(test_size_that_overflows_is_a_bug_and_no_small_block),
        cmocka_unit_test(test_log_values_are_one_clean_line),
        cmocka_unit_test(test_a_signal_does_not_shorten_a_sleep),
        cmocka_unit_test(test_fake_clock_stands_still),
        cmocka_unit_test(test_times_of_the_clock_as_threads_wait_for_them),
        cmocka_unit_test(test_wait_ends_by_the_clock_that_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
