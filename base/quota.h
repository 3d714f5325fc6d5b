/* quota.h - bytes of memory that questions share: each takes what it needs, while others take theirs.
 * Set up by web/, taken from by query/ and prom/.
 *
 *   struct quota    all bytes there are (query.memory_max)
 *   struct share    the bytes of one question; a NULL share has no limit
 *
 * Counts  : what is taken, not what malloc gives: take memory before it is allocated.
 * Whole   : a share takes from the quota in steps of SHARE_STEP_BYTES.
 * Threads : any for a quota; one at a time for a share.
 * Errors  : EX_UNAVAILABLE: the question needs more than there is. EX_TEMPFAIL, retryable: other questions
 *           have taken it.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

#define SHARE_STEP_BYTES ((int64_t)64 << 10)

struct quota {
    atomic_int_fast64_t max, left; /* left: below 0 if `max` was lowered */
};

struct share {
    struct quota *quota;
    uint64_t used, taken; /* bytes taken by the question; of the quota, in whole steps */
    uint64_t most;        /* the most that `used` has been */
    uint64_t wanted;      /* what `used` would have become when bytes were refused last */
};

void quota_init(struct quota *q, uint64_t max);
/* Any thread, at any time. */
void quota_set_max(struct quota *q, uint64_t max);

/* False: there are not so many bytes; share_fail() says why. */
bool share_take(struct share *s, uint64_t bytes) MUST_CHECK;
void share_give(struct share *s, uint64_t bytes);
/* Takes what a part that grows needs beyond `*counted`, which becomes `bytes`. */
bool share_fit(struct share *s, uint64_t *counted, uint64_t bytes) MUST_CHECK;
/* Sets the error of bytes that were refused. Returns false. */
bool share_fail(const struct share *s, struct err *e);
/* Gives all back. If the question was large, so does malloc: what it freed goes back to the system. */
void share_end(struct share *s);
