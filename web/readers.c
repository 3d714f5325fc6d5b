#include "web/readers.h"
#include "store/backend/backend.h"

void readers_init(struct readers *r, const char *store_url, const struct clock *clock)
{
    *r = (struct readers){.url = store_url, .clock = clock};
    pthread_mutex_init(&r->lock, NULL);
}

void readers_fini(struct readers *r)
{
    while (r->idle_count > 0)
        store_close(r->idle[--r->idle_count]);
    pthread_mutex_destroy(&r->lock);
}

/* A server that is silent delays an answer by no more than the question may take. */
static struct store *open_reader(const struct readers *r, const struct deadline *deadline, struct err *e)
{
    const struct store_options options = {
        .clock = r->clock, .wait_max_ms = deadline != NULL ? deadline->at_ms - deadline->begun_ms : 0};
    return store_open_with(r->url, STORE_READ, &options, NULL, 0, e);
}

struct store *readers_take(struct readers *r, struct deadline *deadline, struct share *memory, struct err *e)
{
    if (!deadline_check(deadline, e))
        return NULL;
    pthread_mutex_lock(&r->lock);
    struct store *st = r->idle_count > 0 ? r->idle[--r->idle_count] : NULL;
    pthread_mutex_unlock(&r->lock);
    if (st == NULL)
        st = open_reader(r, deadline, e);
    if (st != NULL) {
        st->deadline = deadline;
        st->memory = memory;
    }
    return st;
}

void readers_give(struct readers *r, struct store *st, bool good)
{
    /* These are no failures of the store. */
    good |= deadline_is_over(st->deadline) || (st->memory != NULL && st->memory->wanted > 0);
    st->deadline = NULL;
    st->memory = NULL;
    pthread_mutex_lock(&r->lock);
    if (good && r->idle_count < READERS_MAX) {
        r->idle[r->idle_count++] = st;
        st = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    store_close(st);
}
