/* flaky.h - a store in front of another that is slow, fails for a while, or fails for good. */
#pragma once

#include "store/store.h"

#include <stdatomic.h>

struct flaky {
    struct store store; /* first: a struct flaky is a struct store */
    struct store *under;
    int apply_ms;       /* every apply takes at least so long */
    uint64_t fail_from; /* the first apply to fail, from 1; 0: none */
    uint64_t failures;  /* how many fail from there */
    bool retryable;
    uint64_t stop_after; /* after so many applies *stop is set; 0: never */
    atomic_bool *stop;
    uint64_t applies;
    _Atomic int64_t applied_to; /* the end of the first range of the last batch that was applied */
};

/* Does not own `under`. */
void flaky_init(struct flaky *f, struct store *below);
