/* Sends the log of a batch over several connections, as many as it has chunks for. Each has a thread while
 * the batch is applied. The thread sends its first chunk, then takes the next one from the log, under a
 * lock. So there is one unpacked chunk for each connection. Chunks begin in the order of the log: new series
 * before documents, books last. */
#include "store/mongo/send/send.h"

#include "base/check.h"
#include "base/mem.h"
#include "store/mongo/send/chunk.h"
#include "store/mongo/wire/field.h"

#include <pthread.h>
#include <stdlib.h>

struct sending {
    const struct mongo_limits *limits;
    pthread_mutex_t lock; /* guards the members below */
    struct mongo_log_reader log;
    struct slice next; /* read from the log, in no chunk yet; length 0: none */
    bool has_failed;
    struct err error; /* the first error */
};

struct sender {
    struct sending *sending;
    struct mongo_chunk chunk;
    pthread_t thread;
};

static const char *collection_of(struct slice raw)
{
    bson_t update;
    ASSERT(bson_init_static(&update, (const uint8_t *)raw.ptr, raw.len));
    return mongo_text_at(&update, "c");
}

/* Does the update only preallocate a document? */
static bool is_ahead(struct slice raw)
{
    bson_t update;
    bson_iter_t operator;
    ASSERT(bson_init_static(&update, (const uint8_t *)raw.ptr, raw.len));
    return mongo_begin_members(&update, "u", &operator) && bson_iter_next(&operator) &&
           strcmp(bson_iter_key(&operator), "$setOnInsert") == 0;
}

static bool has_room(const struct sending *s, const struct mongo_chunk *c, const char *collection)
{
    return c->count == 0 || (c->count < s->limits->updates && c->raw.len + s->next.len <= s->limits->bytes &&
                             strcmp(c->collection, collection) == 0 && c->is_ahead == is_ahead(s->next));
}

/* Fills a chunk with updates of one collection, as many as a command takes; none at the end of the log. */
static bool fill(struct sending *s, struct mongo_chunk *c, struct err *e)
{
    while (true) {
        if (s->next.len == 0 && !mongo_log_next(&s->log, &s->next, e))
            return false;
        if (s->next.len == 0)
            return true;
        const char *collection = collection_of(s->next);
        if (collection[0] == '\0')
            return err_set(e, EX_DATAERR, "the log of a batch is damaged: an update without a collection");
        if (!has_room(s, c, collection))
            return true;
        snprintf(c->collection, sizeof c->collection, "%s", collection);
        c->is_ahead = c->count > 0 ? c->is_ahead : is_ahead(s->next);
        c->at[c->count++] = c->raw.len;
        text_add(&c->raw, s->next.ptr, s->next.len);
        s->next.len = 0;
    }
}

static void fail(struct sending *s, const struct err *e)
{
    if (!s->has_failed)
        s->error = *e;
    s->has_failed = true;
}

/* Fills the chunk, unless it is filled already. False: there is none, or sending has failed. */
static bool take_chunk(struct sending *s, struct mongo_chunk *c)
{
    struct err e;
    pthread_mutex_lock(&s->lock);
    if (!s->has_failed && c->count == 0 && !fill(s, c, &e))
        fail(s, &e);
    bool good = !s->has_failed && c->count > 0;
    pthread_mutex_unlock(&s->lock);
    return good;
}

static bool send_chunk(struct sender *sender)
{
    struct sending *s = sender->sending;
    struct err e;
    if (!take_chunk(s, &sender->chunk))
        return false;
    if (mongo_chunk_apply(&sender->chunk, &e))
        return true;
    pthread_mutex_lock(&s->lock);
    fail(s, &e);
    pthread_mutex_unlock(&s->lock);
    return false;
}

static void *run(void *context)
{
    while (send_chunk(context)) {
    }
    return NULL;
}

/* Makes a connection for each chunk only: a small batch needs one. */
static bool fill_senders(struct mongo_store *m, const struct mongo_open *of, struct sending *s,
                         struct sender *senders, size_t *count, struct err *e)
{
    for (*count = 0; *count < m->connections; ++*count) {
        struct sender *sender = &senders[*count];
        sender->sending = s;
        sender->chunk.of = of;
        sender->chunk.one_by_one = m->limits.is_router;
        sender->chunk.pipelines = m->pipelines;
        if (!take_chunk(s, &sender->chunk))
            break;
        if (!mongo_connection(m, *count, &sender->chunk.client, e))
            return false;
    }
    return true;
}

/* Sends the caller's first chunk, then those whose threads could not be started, then the rest of the log. */
static void send_rest(struct sender *senders, size_t started, size_t count)
{
    bool more = send_chunk(&senders[0]);
    for (size_t i = started; more && i < count; i++)
        more = send_chunk(&senders[i]);
    if (more)
        run(&senders[0]);
}

bool mongo_send(struct mongo_store *m, const struct mongo_open *of, struct slice packed, struct err *e)
{
    struct sending s = {.limits = &m->limits, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct sender *senders = xcalloc(m->connections, sizeof *senders);
    size_t count, started = 1;
    mongo_log_open(&s.log, packed);
    bool good = fill_senders(m, of, &s, senders, &count, e);
    while (good && started < count &&
           pthread_create(&senders[started].thread, NULL, run, &senders[started]) == 0)
        pthread_setname_np(senders[started++].thread, "tallyd-sender");
    if (good && count > 0)
        send_rest(senders, started, count);
    for (size_t i = 1; i < started; i++)
        pthread_join(senders[i].thread, NULL);
    if (s.has_failed)
        *e = s.error;
    for (size_t i = 0; i < m->connections; i++) {
        if (senders[i].chunk.pipelines != MONGO_PIPELINES_UNKNOWN)
            m->pipelines = senders[i].chunk.pipelines;
        text_fini(&senders[i].chunk.raw);
    }
    mongo_log_close(&s.log);
    free(senders);
    return good && !s.has_failed;
}
