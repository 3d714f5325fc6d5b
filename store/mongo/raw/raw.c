#include "store/mongo/raw/raw.h"

#include "aggregate/raw_document.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/send/crew.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

/* If a document's failure is neither known to pass nor known to stay, it is tried this often, with this
 * delay. */
#define TRIES_MAX    3
#define TRY_AGAIN_MS 250

struct item {
    const char *document;
    uint32_t len, number; /* bytes of the document; number of its source */
    int64_t period_ms;
};

struct items {
    struct item *list;
    size_t count, capacity;
    bool in_order; /* items of one collection stand together */
};

/* Consecutive items of one collection, sent as one command. */
struct chunk {
    const struct item *items;
    size_t count;
};

struct sending {
    struct mongo_store *m;
    const struct items *items;
    size_t next;                                /* the first item that is in no chunk yet */
    struct chunk chunks[MONGO_CONNECTIONS_MAX]; /* the chunk at hand of each connection */
    bool is_last_try;
    pthread_mutex_t lock; /* guards has_unknown, and the figures */
    bool has_unknown;     /* a failure that may pass or not */
};

/* A chunk that is being sent. */
struct sender {
    struct sending *sending;
    struct mongo_client *client;
    const struct chunk *chunk;
};

/* ---- what is to be stored */

static struct raw_head read_head(const char *p)
{
    struct raw_head head;
    memcpy(&head, p, sizeof head);
    return head;
}

/* The clock may have been set back since the last look. */
static void note_first_kept(struct mongo_store *m)
{
    int64_t now_ms = clock_wall_ms(m->store.clock);
    for (size_t i = 0; i < m->raw_count; i++) {
        struct mongo_raw *of = &m->raws[i];
        if (of->of == NULL)
            continue;
        int64_t latest_ms = raw_period(of->of, now_ms);
        of->first_kept_ms = raw_first_kept(of->of, of->newest_ms < latest_ms ? of->newest_ms : latest_ms);
    }
}

static void collect(struct mongo_store *m, const struct text *raw, struct items *items)
{
    for (size_t at = 0; at < raw->len;) {
        struct raw_head head = read_head(raw->ptr + at);
        struct mongo_raw *of = &m->raws[head.number];
        struct item item = {raw->ptr + at + sizeof head, head.len, head.number,
                            raw_period(of->of, head.at_ms)};
        at += sizeof head + head.len;
        if (item.period_ms < of->first_kept_ms) {
            of->pending.expired++;
            continue;
        }
        of->pending.stored++; /* refuse() takes this back */
        items->list = xgrow(items->list, &items->capacity, items->count + 1, sizeof *items->list);
        const struct item *last = items->count > 0 ? &items->list[items->count - 1] : &item;
        items->in_order &= last->number == item.number && last->period_ms <= item.period_ms;
        items->list[items->count++] = item;
    }
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = order_int64(x->number, y->number);
    order = order != 0 ? order : order_int64(x->period_ms, y->period_ms);
    return order != 0 ? order : (x->document > y->document) - (x->document < y->document); /* by arrival */
}

static bool prepare(struct mongo_store *m, const struct items *items, struct err *e)
{
    for (size_t i = 0; i < items->count; i++) {
        const struct item *at = &items->list[i];
        bool is_same = i > 0 && at[-1].number == at->number && at[-1].period_ms == at->period_ms;
        if (!is_same && !mongo_raw_prepare(m, &m->raws[at->number], at->period_ms, e))
            return false;
    }
    return true;
}

/* ---- what the server says of it */

static const char *id_of(const struct item *item, bson_t *document)
{
    bson_iter_t it;
    ASSERT(bson_init_static(document, (const uint8_t *)item->document, item->len));
    ASSERT(bson_iter_init_find(&it, document, "_id"));
    return bson_iter_utf8(&it, NULL);
}

/* Counts a document that the server refuses, and logs some of them. */
static void refuse(struct sending *s, const struct item *item, const char *why)
{
    static struct log_limit limit;
    char quoted[LOG_QUOTE_BYTES], id[LOG_QUOTE_BYTES];
    bson_t document;
    struct mongo_raw *of = &s->m->raws[item->number];
    pthread_mutex_lock(&s->lock);
    of->pending.refused++;
    of->pending.stored--;
    if (log_limit_pass(&limit, LOG_LEVEL_WARN, "raw_refused", log_now_ms())) {
        log_warn("raw_refused", "source=%s id=%s error=%s", of->of->source,
                 log_quote(id_of(item, &document), id), log_quote(why, quoted));
        of->shown++;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Logs how many documents the batch had refused besides those shown. */
static void tell_refused(const struct mongo_store *m)
{
    for (size_t i = 0; i < m->raw_count; i++) {
        const struct mongo_raw *of = &m->raws[i];
        if (of->pending.refused > of->shown)
            log_limited(LOG_LEVEL_WARN, "raw_refused_in_batch",
                        "source=%s refused=%" PRId64 " shown=%" PRId64, of->of->source, of->pending.refused,
                        of->shown);
    }
}

/* Documents with a duplicate key. Some exist already, by their `_id`: the batch is repeated. Others violate
 * somebody's unique index. Only the collection knows which is which. */
struct duplicates {
    bson_t *ids; /* { "0": "kafka:access/0/…", … } */
    const struct item **items;
    char **why;
    size_t count;
};

/* Finds the document with this `_id` in a reply of find. */
static bool find_id(const bson_t *reply, const char *id, bson_iter_t *found)
{
    bson_iter_t at, it;
    for (bool more = mongo_begin_members(reply, "cursor.firstBatch", &at); more && bson_iter_next(&at);) {
        if (mongo_find_in(&at, "_id", &it) && BSON_ITER_HOLDS_UTF8(&it) &&
            strcmp(bson_iter_utf8(&it, NULL), id) == 0)
            return bson_iter_recurse(&at, found);
    }
    return false;
}

static bool is_equal(const bson_iter_t *a, const bson_iter_t *b)
{
    bson_t x = BSON_INITIALIZER, y = BSON_INITIALIZER;
    bool equal = bson_append_iter(&x, "v", 1, a) && bson_append_iter(&y, "v", 1, b) && bson_equal(&x, &y);
    bson_destroy(&x);
    bson_destroy(&y);
    return equal;
}

/* Is the stored document another event? That is so if a field that both have differs. Other fields may have
 * been configured meanwhile. */
static bool is_other(const bson_t *document, const bson_iter_t *there)
{
    bson_iter_t it;
    ASSERT(bson_iter_init(&it, document));
    while (bson_iter_next(&it)) {
        bson_iter_t found = *there;
        if (bson_iter_find(&found, bson_iter_key(&it)) && !is_equal(&it, &found))
            return true;
    }
    return false;
}

/* Refuses documents that are not in the collection: they violate an index. `others`: refuses those in whose
 * place another event is. An `_id` names an offset, and a broker that lost the end of its log gives one
 * offset to two events. The later one is refused: a daemon that slept must not replace the other event by a
 * lost one. */
static bool refuse_duplicates(struct sender *sender, const struct mongo_place *place,
                              const struct duplicates *d, bool others, struct err *e)
{
    bson_t reply, document;
    bson_iter_t there;
    bson_t *projection = others ? bson_new() : BCON_NEW("_id", BCON_INT32(1));
    bson_t *command = BCON_NEW("find", BCON_UTF8(place->collection), "filter", "{", "_id", "{", "$in",
                               BCON_ARRAY(d->ids), "}", "}", "projection", BCON_DOCUMENT(projection),
                               "batchSize", BCON_INT32(MONGO_CHUNK_UPDATES), "singleBatch", BCON_BOOL(true));
    bool good = mongo_read_in(sender->client, place->database, command, &reply, e);
    for (size_t i = 0; good && i < d->count; i++) {
        bool is_there = find_id(&reply, id_of(d->items[i], &document), &there);
        if (!others && !is_there)
            refuse(sender->sending, d->items[i], d->why[i]);
        if (others && is_there && is_other(&document, &there))
            refuse(sender->sending, d->items[i],
                   "another event has this _id: the topic was re-created, or a broker lost its last records");
    }
    bson_destroy(&reply);
    bson_destroy(command);
    bson_destroy(projection);
    return good;
}

static void note_duplicate(struct duplicates *d, const struct item *item, const char *why)
{
    char room[MONGO_KEY_BYTES];
    bson_t document;
    BSON_APPEND_UTF8(d->ids, mongo_array_key(d->count, room), id_of(item, &document));
    d->items[d->count] = item;
    d->why[d->count++] = xstrdup(why);
}

/* Codes for a document that is refused for good: a bad value or type, member names, an immutable field, too
 * large for a capped collection, a validator, too large, a key too long. */
static bool is_final(int64_t code)
{
    static const int64_t codes[] = {
        2,   14,  52,    55,    56,    57,    66,
        116, 121, 10334, 17280, 17419, 17420, 525074461 /* FerretDB's code of a validator */};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i] == code)
            return true;
    }
    return false;
}

static void note_unknown(struct sending *s)
{
    pthread_mutex_lock(&s->lock);
    s->has_unknown = true;
    pthread_mutex_unlock(&s->lock);
}

/* Handles the failure of one document. False: it may pass, so the batch must be tried again. */
static bool take_failure(struct sender *sender, const bson_iter_t *failure, const char *what,
                         struct duplicates *d, struct err *e)
{
    bson_iter_t index, code;
    const struct chunk *c = sender->chunk;
    bool is_known = mongo_find_in(failure, "index", &index) && mongo_find_in(failure, "code", &code);
    int64_t i = is_known ? bson_iter_as_int64(&index) : -1;
    (void)!mongo_check_write(sender->client, failure, what, e);
    if (e->retryable || i < 0 || i >= (int64_t)c->count)
        return false;
    if (bson_iter_as_int64(&code) == MONGO_DUPLICATE_KEY) {
        note_duplicate(d, &c->items[i], e->text);
    } else if (is_final(bson_iter_as_int64(&code)) || sender->sending->is_last_try) {
        refuse(sender->sending, &c->items[i], e->text);
    } else {
        note_unknown(sender->sending);
        return false;
    }
    return true;
}

static bool take_reply(struct sender *sender, const struct mongo_place *place, const bson_t *reply,
                       struct err *e)
{
    const size_t count = sender->chunk->count;
    bson_iter_t at;
    struct duplicates d = {
        .ids = bson_new(), .items = xcalloc(count, sizeof *d.items), .why = xcalloc(count, sizeof *d.why)};
    bool good = true, more = mongo_begin_members(reply, "writeErrors", &at);
    while (good && more && bson_iter_next(&at))
        good = take_failure(sender, &at, place->collection, &d, e);
    good = good && (d.count == 0 || (refuse_duplicates(sender, place, &d, false, e) &&
                                     refuse_duplicates(sender, place, &d, true, e)));
    for (size_t i = 0; i < d.count; i++)
        free(d.why[i]);
    bson_destroy(d.ids);
    free(d.items);
    free(d.why);
    return good;
}

/* ---- sending */

static bool insert_chunk(struct sender *sender, struct err *e)
{
    const struct chunk *c = sender->chunk;
    struct mongo_store *m = sender->sending->m;
    const struct raw *r = m->raws[c->items->number].of;
    struct mongo_place place;
    bson_t command = BSON_INITIALIZER, documents, concern, reply, one;
    char room[MONGO_KEY_BYTES];
    size_t sent = 0;
    mongo_raw_place(m, r, c->items->period_ms, &place);
    BSON_APPEND_UTF8(&command, "insert", place.collection);
    BSON_APPEND_BOOL(&command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &documents);
    for (; sent < c->count; sent++) {
        ASSERT(bson_init_static(&one, (const uint8_t *)c->items[sent].document, c->items[sent].len));
        BSON_APPEND_DOCUMENT(&documents, mongo_array_key(sent, room), &one);
    }
    bson_append_array_end(&command, &documents);
    mongo_raw_concern(r, sender->client, &concern);
    bool good = mongo_write_in(sender->client, place.database, &command, &concern, &reply, e) &&
                take_reply(sender, &place, &reply, e);
    bson_destroy(&reply);
    bson_destroy(&concern);
    bson_destroy(&command);
    return good;
}

/* Fills a chunk with consecutive items, as many as a command takes. */
static void fill(struct sending *s, struct chunk *c)
{
    const struct mongo_limits *limits = &s->m->limits;
    size_t bytes = 0;
    c->items = &s->items->list[s->next];
    for (c->count = 0; c->count < limits->updates && s->next < s->items->count; c->count++, s->next++) {
        const struct item *at = &s->items->list[s->next];
        bytes += at->len;
        if (c->count > 0 &&
            (bytes > limits->bytes || at->number != c->items->number || at->period_ms != c->items->period_ms))
            break;
    }
}

static bool take_chunk(void *context, size_t connection, bool *is_taken, struct err *e)
{
    struct sending *s = context;
    (void)e;
    fill(s, &s->chunks[connection]);
    *is_taken = s->chunks[connection].count > 0;
    return true;
}

static bool send_chunk(void *context, size_t connection, struct mongo_client *client, struct err *e)
{
    struct sending *s = context;
    struct sender sender = {s, client, &s->chunks[connection]};
    return insert_chunk(&sender, e);
}

static size_t count_connections(const struct mongo_store *m, const struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        if (m->raws[items->list[i].number].of->growth == RAW_CAPPED)
            return 1;
    }
    return m->connections;
}

/* *is_unknown: it failed, and may pass or not; never with `is_last_try`. */
static bool send_items(struct mongo_store *m, const struct items *items, bool is_last_try, bool *is_unknown,
                       struct err *e)
{
    struct sending s = {
        .m = m, .items = items, .is_last_try = is_last_try, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct mongo_crew crew = {.context = &s, .take = take_chunk, .work = send_chunk};
    bool good = mongo_crew_work(m, &crew, count_connections(m, items), e);
    *is_unknown = !good && s.has_unknown && !e->retryable;
    return good;
}

/* No server takes these documents, and some close the connection. */
static void refuse_longest(struct mongo_store *m, struct items *items)
{
    struct sending s = {.m = m, .lock = PTHREAD_MUTEX_INITIALIZER};
    size_t kept = 0;
    for (size_t i = 0; i < items->count; i++) {
        if (items->list[i].len > m->limits.document_bytes)
            refuse(&s, &items->list[i], "the document is larger than the server takes");
        else
            items->list[kept++] = items->list[i];
    }
    items->count = kept;
}

static bool try_store(struct mongo_store *m, const struct batch *batch, bool is_last_try, bool *is_unknown,
                      struct err *e)
{
    struct items items = {.in_order = true};
    *is_unknown = false;
    for (size_t i = 0; i < m->raw_count; i++) {
        m->raws[i].pending = (struct raw_figures){0};
        m->raws[i].shown = 0;
    }
    note_first_kept(m);
    for (size_t i = 0; i < batch->part_count; i++)
        collect(m, &batch->parts[i]->raw, &items);
    if (!items.in_order)
        qsort(items.list, items.count, sizeof *items.list, compare_items);
    refuse_longest(m, &items);
    bool good =
        items.count == 0 || (prepare(m, &items, e) && send_items(m, &items, is_last_try, is_unknown, e));
    tell_refused(m);
    if (good && items.count > 0)
        failpoint(FAILPOINT_RAW_INSERTED);
    free(items.list);
    return good;
}

bool mongo_raw_store(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    bool is_unknown, good = try_store(m, batch, false, &is_unknown, e);
    for (int tries = 2; is_unknown && tries <= TRIES_MAX; tries++) {
        clock_sleep(TRY_AGAIN_MS);
        good = try_store(m, batch, tries == TRIES_MAX, &is_unknown, e);
    }
    return good;
}

void mongo_raw_note(struct mongo_store *m)
{
    for (size_t i = 0; i < m->raw_count; i++) {
        struct raw_figures *to = &m->store.raws[i];
        const struct raw_figures *from = &m->raws[i].pending;
        to->stored += from->stored;
        to->refused += from->refused;
        to->expired += from->expired;
        m->raws[i].pending = (struct raw_figures){0};
    }
}
