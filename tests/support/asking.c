#include "tests/support/asking.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

bool asking_run(const struct asking *a, struct world *w, const char *const *parameters, struct text *out,
                struct err *e)
{
    struct query q;
    a->init(&q);
    text_clear(out);
    for (; *parameters != NULL; parameters++) {
        const char *equals = strchr(*parameters, '=');
        assert_non_null(equals);
        if (!a->set(&q, slice_of(*parameters, (size_t)(equals - *parameters)), slice_text(equals + 1), e))
            return false;
    }
    return a->run(w->store, &q, out, e);
}

void asking_check(const struct asking *a, struct world *w, const char *const *parameters,
                  const char *expected)
{
    struct text out = {0};
    struct err e = {0};
    if (!asking_run(a, w, parameters, &out, &e))
        fail_msg("%s", e.text);
    assert_string_equal(out.ptr, expected);
    text_fini(&out);
}

void asking_refused(const struct asking *a, struct world *w, const char *const *parameters, int code,
                    const char *text)
{
    struct text out = {0};
    struct err e = {0};
    assert_false(asking_run(a, w, parameters, &out, &e));
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_equal(e.code, code);
    assert_int_equal(out.len, 0);
    text_fini(&out);
}
