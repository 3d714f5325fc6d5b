/* asking.h - asks questions in a test: parameters as in a URL, answers as text. */
#pragma once

#include "query/query.h"
#include "tests/support/world.h"

/* A kind of question: the functions that initialize it, set a parameter, and answer it. */
struct asking {
    void (*init)(struct query *q);
    bool (*set)(struct query *q, struct slice name, struct slice value, struct err *e);
    bool (*run)(struct store *st, const struct query *q, struct text *out, struct err *e);
};

/* "name=value", … */
#define PARAMETERS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Replaces `out` by the answer. */
bool asking_run(const struct asking *a, struct world *w, const char *const *parameters, struct text *out,
                struct err *e);
/* Fails the test unless the answer is `expected`. */
void asking_check(const struct asking *a, struct world *w, const char *const *parameters,
                  const char *expected);
/* Fails the test unless the question is refused with this code, `text` in the error, and no answer. */
void asking_refused(const struct asking *a, struct world *w, const char *const *parameters, int code,
                    const char *text);
