/* Chunks of the log are sent in its order, each over a connection: new series before documents, books last.
 * The next chunk is read while others are sent, so there is one unpacked chunk for each connection. */
#include "store/mongo/send/send.h"

#include "base/check.h"
#include "base/mem.h"
#include "store/mongo/send/chunk.h"
#include "store/mongo/send/crew.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>

struct sending {
    const struct mongo_limits *limits;
    struct mongo_chunk *chunks; /* by connection */
    struct mongo_log_reader log;
    const bson_t *next; /* read from the log, in no chunk yet; NULL: none */
};

/* Does the update only preallocate a document? */
static bool is_ahead(const bson_t *update)
{
    bson_iter_t operator;
    return mongo_begin_members(update, "u", &operator) && bson_iter_next(&operator) &&
           strcmp(bson_iter_key(&operator), "$setOnInsert") == 0;
}

static bool has_room(const struct sending *s, const struct mongo_chunk *c, const char *collection)
{
    return c->count == 0 || (c->count < s->limits->updates && c->raw.len + s->next->len <= s->limits->bytes &&
                             strcmp(c->collection, collection) == 0 && c->is_ahead == is_ahead(s->next));
}

/* Fills a chunk with updates of one collection, as many as a command takes; none at the end of the log. */
static bool fill(struct sending *s, struct mongo_chunk *c, struct err *e)
{
    while (true) {
        if (s->next == NULL && !mongo_log_next(&s->log, &s->next, e))
            return false;
        if (s->next == NULL)
            return true;
        const char *collection = mongo_text_at(s->next, "c");
        if (collection[0] == '\0')
            return err_set(e, EX_DATAERR, "the log of a batch is damaged: an update without a collection");
        if (!has_room(s, c, collection))
            return true;
        snprintf(c->collection, sizeof c->collection, "%s", collection);
        c->is_ahead = c->count > 0 ? c->is_ahead : is_ahead(s->next);
        c->at[c->count++] = c->raw.len;
        text_add(&c->raw, (const char *)bson_get_data(s->next), s->next->len);
        s->next = NULL;
    }
}

static bool take_chunk(void *context, size_t connection, bool *is_taken, struct err *e)
{
    struct sending *s = context;
    struct mongo_chunk *c = &s->chunks[connection];
    if (!fill(s, c, e))
        return false;
    *is_taken = c->count > 0;
    return true;
}

static bool send_chunk(void *context, size_t connection, struct mongo_client *client, struct err *e)
{
    struct sending *s = context;
    s->chunks[connection].client = client;
    return mongo_chunk_apply(&s->chunks[connection], e);
}

bool mongo_send(struct mongo_store *m, const struct mongo_open *of, struct slice packed, struct err *e)
{
    struct sending s = {.limits = &m->limits, .chunks = xcalloc(m->connections, sizeof *s.chunks)};
    const struct mongo_crew crew = {.context = &s, .take = take_chunk, .work = send_chunk};
    mongo_log_open(&s.log, packed);
    for (size_t i = 0; i < m->connections; i++) {
        s.chunks[i].of = of;
        s.chunks[i].one_by_one = m->limits.is_router;
        s.chunks[i].pipelines = m->pipelines;
    }
    bool good = mongo_crew_work(m, &crew, m->connections, e);
    for (size_t i = 0; i < m->connections; i++) {
        if (s.chunks[i].pipelines != MONGO_PIPELINES_UNKNOWN)
            m->pipelines = s.chunks[i].pipelines;
        text_fini(&s.chunks[i].raw);
    }
    mongo_log_close(&s.log);
    free(s.chunks);
    return good;
}
