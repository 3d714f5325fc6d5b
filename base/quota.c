#include "base/quota.h"

#include "base/mem.h"

#include <inttypes.h>

void quota_init(struct quota *q, uint64_t max)
{
    atomic_init(&q->max, (int64_t)max);
    atomic_init(&q->left, (int64_t)max);
}

void quota_set_max(struct quota *q, uint64_t max)
{
    int64_t before = atomic_exchange(&q->max, (int64_t)max);
    atomic_fetch_add(&q->left, (int64_t)max - before);
}

static bool quota_take(struct quota *q, int64_t bytes)
{
    int64_t left = atomic_load(&q->left);
    do {
        if (left < bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&q->left, &left, left - bytes));
    return true;
}

static uint64_t whole_steps(uint64_t bytes)
{
    return (bytes + SHARE_STEP_BYTES - 1) / SHARE_STEP_BYTES * SHARE_STEP_BYTES;
}

bool share_take(struct share *s, uint64_t bytes)
{
    if (s == NULL)
        return true;
    uint64_t used = bytes <= INT64_MAX / 2 - s->used ? s->used + bytes : INT64_MAX / 2;
    if (used > s->taken) {
        uint64_t more = whole_steps(used) - s->taken;
        if (!quota_take(s->quota, (int64_t)more)) {
            s->wanted = used;
            return false;
        }
        s->taken += more;
    }
    s->used = used;
    s->most = used > s->most ? used : s->most;
    return true;
}

void share_give(struct share *s, uint64_t bytes)
{
    if (s == NULL)
        return;
    ASSERT(bytes <= s->used);
    s->used -= bytes;
    uint64_t spare = s->taken - whole_steps(s->used);
    s->taken -= spare;
    atomic_fetch_add(&s->quota->left, (int64_t)spare);
}

bool share_fit(struct share *s, uint64_t *counted, uint64_t bytes)
{
    if (bytes <= *counted)
        return true;
    if (!share_take(s, bytes - *counted))
        return false;
    *counted = bytes;
    return true;
}

bool share_fail(const struct share *s, struct err *e)
{
    int64_t max = atomic_load(&s->quota->max);
    if ((int64_t)whole_steps(s->wanted) > max)
        return err_set(e, EX_UNAVAILABLE,
                       "the question takes more than %" PRId64
                       " bytes of memory (query.memory_max): ask for fewer series, a shorter range or a "
                       "longer step",
                       max);
    return err_set_retryable(e, EX_TEMPFAIL,
                             "other questions have taken the memory of all, %" PRId64
                             " bytes (query.memory_max): ask again, or for less",
                             max);
}

void share_end(struct share *s)
{
    bool is_large = s->most > MEM_KEPT_BYTES;
    share_give(s, s->used);
    if (is_large)
        mem_trim();
}
