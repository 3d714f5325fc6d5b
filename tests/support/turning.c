#include "tests/support/turning.h"

#define LOOK_NS 200000L

/* Only a turning clock's own address is ever given to it. */
static bool look(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock, int64_t until_ms)
{
    struct turning *t = (struct turning *)(uintptr_t)c;
    atomic_fetch_add(&t->looks, 1);
    return t->wait(c, changed, lock, until_ms);
}

void turning_init(struct turning *t, int64_t wall_ms)
{
    const struct clock fake = clock_fake(wall_ms);
    t->clock = fake;
    t->clock.fake_mono_ms = 1000000;
    t->wait = fake.wait;
    t->clock.wait = look;
    atomic_store(&t->looks, 0);
}

/* The second look from now on begins after the time was read anew. */
void turning_settle(struct turning *t)
{
    int64_t seen = atomic_load(&t->looks) + 2;
    while (atomic_load(&t->looks) < seen)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

void turning_pass(struct turning *t, int64_t ms)
{
    clock_pass(&t->clock, ms);
    turning_settle(t);
}
