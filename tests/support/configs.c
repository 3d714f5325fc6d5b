#include "tests/support/configs.h"

#include "config/config_read.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

void expect_problems(const char *yaml, const char *wanted)
{
    struct text problems = {0};
    struct config *c = config_parse(slice_text(yaml), "f.yaml", &problems);
    if (c != NULL)
        fail_msg("%s\nmust not be good", yaml);
    if (strcmp(problems.ptr, wanted) != 0)
        fail_msg("%s\nsays   %s\nwanted %s", yaml, problems.ptr, wanted);
    text_fini(&problems);
}

void expect_all_problems(const struct bad_config *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_problems(list[i].yaml, list[i].problems);
}

char *config_printed(const struct config *c)
{
    struct text out = {0};
    config_print(c, false, &out);
    return out.ptr;
}

struct config *config_again(const struct config *c)
{
    char *once = config_printed(c);
    struct config *again = fixture_config(once);
    char *twice = config_printed(again);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    return again;
}

void expect_same_decode(const struct decode *a, const struct decode *b)
{
    struct decode copy = *b;
    copy.derive = a->derive;
    copy.registry = a->registry;
    assert_memory_equal(a, &copy, sizeof copy);
}
