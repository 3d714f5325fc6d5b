/* A line that may come often is logged five times a minute, and then how often it was left out; by any
 * thread. */
#include "base/log.h"
#include "base/slice.h"
#include "base/text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Standard error, as long as a test wants to know what is said there. */
struct ear {
    FILE *file;
    int stderr_fd;
};

static int setup(void **state)
{
    struct ear *ear = calloc(1, sizeof *ear);
    ear->file = tmpfile();
    ear->stderr_fd = dup(STDERR_FILENO);
    assert_true(dup2(fileno(ear->file), STDERR_FILENO) >= 0);
    *state = ear;
    return 0;
}

static int teardown(void **state)
{
    struct ear *ear = *state;
    dup2(ear->stderr_fd, STDERR_FILENO);
    close(ear->stderr_fd);
    fclose(ear->file);
    free(ear);
    return 0;
}

/* The lines since the last call. */
static const char *heard(struct ear *ear)
{
    static char said[65536];
    off_t end = lseek(fileno(ear->file), 0, SEEK_CUR);
    ssize_t n = pread(fileno(ear->file), said, sizeof said - 1, 0);
    assert_true(n == end);
    said[n] = '\0';
    assert_int_equal(ftruncate(fileno(ear->file), 0), 0);
    lseek(fileno(ear->file), 0, SEEK_SET);
    return said;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void test_log_limit_says_how_many_it_kept(void **state)
{
    struct log_limit l = {0}, other = {0};
    int64_t now_ms = 1000;
    for (int i = 0; i < LOG_LIMIT_LINES; i++)
        assert_true(log_limit_pass(&l, LOG_LEVEL_WARN, "flood", now_ms++));
    for (int i = 0; i < 7; i++)
        assert_false(log_limit_pass(&l, LOG_LEVEL_WARN, "flood", now_ms++));
    assert_true(log_limit_pass(&other, LOG_LEVEL_ERROR, "drop", now_ms)); /* each cause by itself */
    assert_string_equal(heard(*state), "");

    log_limit_tell(1000 + LOG_LIMIT_INTERVAL_MS - 1);
    assert_string_equal(heard(*state), "");
    log_limit_tell(1000 + LOG_LIMIT_INTERVAL_MS);
    assert_string_equal(heard(*state), "level=warn event=flood suppressed=7\n");
    log_limit_tell(INT64_MAX);
    assert_string_equal(heard(*state), "");
    assert_true(log_limit_pass(&l, LOG_LEVEL_WARN, "flood", 1000 + LOG_LIMIT_INTERVAL_MS));
}

static void test_log_limit_begins_anew_without_being_told(void **state)
{
    struct log_limit l = {0};
    for (int i = 0; i < LOG_LIMIT_LINES + 2; i++)
        (void)!log_limit_pass(&l, LOG_LEVEL_INFO, "flood", 0);
    assert_true(log_limit_pass(&l, LOG_LEVEL_INFO, "flood", LOG_LIMIT_INTERVAL_MS));
    assert_string_equal(heard(*state), "level=info event=flood suppressed=2\n");
    log_limit_tell(INT64_MAX);
    assert_string_equal(heard(*state), "");
}

static void *flood(void *context)
{
    (void)context;
    for (int i = 0; i < 1000; i++)
        log_limited(LOG_LEVEL_WARN, "many", "at=%d", i);
    return NULL;
}

static void test_log_limit_is_one_for_all_threads(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, flood, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_lines(heard(*state)), LOG_LIMIT_LINES);
    log_limit_tell(INT64_MAX);
    assert_string_equal(heard(*state), "level=warn event=many suppressed=3995\n");
}

static void test_log_lines_have_a_priority_in_the_journal(void **state)
{
    struct stat status;
    char stream[64];
    fstat(STDERR_FILENO, &status);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_init();
    log_warn("dry", "n=%d", 1);
    log_error("wet", "n=%d", 2);
    assert_string_equal(heard(*state), "<4>level=warn event=dry n=1\n<3>level=error event=wet n=2\n");

    setenv("JOURNAL_STREAM", "1:1", 1); /* standard error was sent elsewhere since */
    log_init();
    log_warn("dry", "n=%d", 1);
    assert_string_equal(heard(*state), "level=warn event=dry n=1\n");
}

static void test_log_level_hides_what_is_below(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    log_warn("dry", "n=%d", 1);
    assert_string_equal(heard(*state), "");
    log_set_level(LOG_LEVEL_INFO);
}

int main(void)
{
#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        LOG_TEST(test_log_limit_says_how_many_it_kept),
        LOG_TEST(test_log_limit_begins_anew_without_being_told),
        LOG_TEST(test_log_limit_is_one_for_all_threads),
        LOG_TEST(test_log_lines_have_a_priority_in_the_journal),
        LOG_TEST(test_log_level_hides_what_is_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
