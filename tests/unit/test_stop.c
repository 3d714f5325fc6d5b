/* Signals to a process: the second one, of either kind, ends it at once. */
#include "daemon/service/stop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* How a child ends that gets both while it drains: as wait() tells it. */
static int end_by(int first, int second)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const atomic_bool *stopping = stop_catch();
        stop_within(60000);
        raise(first);
        if (!atomic_load(stopping) || stop_signal() != first)
            _exit(1);
        raise(second);
        _exit(2);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    return status;
}

static void test_second_signal_ends_it(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) {
            int status = end_by(numbers[i], numbers[k]);
            assert_true(WIFSIGNALED(status));
            assert_int_equal(numbers[k], WTERMSIG(status));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_second_signal_ends_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
