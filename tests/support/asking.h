/* asking.h - questions of a test: parameters as in a URL, answers as text. */
#pragma once

#include "query/query.h"
#include "tests/support/world.h"

/* A kind of question: what it is before its words, what takes them, and what answers it. */
struct asking {
    void (*init)(struct query *q);
    bool (*set)(struct query *q, struct slice name, struct slice value, struct err *e);
    bool (*run)(struct store *st, const struct query *q, struct text *out, struct err *e);
};

/* "name=value", … */
#define PARAMETERS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Into `out`, instead of what it held. */
bool asking_run(const struct asking *a, struct world *w, const char *const *parameters, struct text *out,
                struct err *e);
/* Fail the test unless it is answered so, … */
void asking_check(const struct asking *a, struct world *w, const char *const *parameters,
                  const char *expected);
/* … or refused with this code, and this in the complaint; nothing is answered then. */
void asking_refused(const struct asking *a, struct world *w, const char *const *parameters, int code,
                    const char *text);
