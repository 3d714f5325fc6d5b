/* flaky.h - a store that passes calls to another one, but is slow, or fails for a while or for good. */
#pragma once

#include "store/reader.h"
#include "store/writer.h"

#include <stdatomic.h>

struct flaky {
    struct store store; /* first: a struct flaky is a struct store */
    struct store *under;
    int apply_ms;        /* least time that an apply takes */
    uint64_t fail_from;  /* number of the first apply that fails, from 1; 0: none */
    uint64_t failures;   /* number of applies that fail from there */
    bool retryable;      /* its errors are retryable */
    uint64_t stop_after; /* number of applies after which *stop is set; 0: never */
    atomic_bool *stop;
    uint64_t applies;
    _Atomic int64_t applied_to; /* end of the first range of the last batch applied */
};

/* Does not own `under`. */
void flaky_init(struct flaky *f, struct store *below);
