#include "web/streams.h"

#include "base/mem.h"
#include "query/unknown.h"
#include "web/api.h"

#include <pthread.h>
#include <stdlib.h>

/* The bytes of one answer. The streams that send it share it. */
struct frame {
    size_t users;
    struct text bytes;
    int64_t begun_ms, cost_ms; /* when its question was asked (monotonic); how long that took */
};

/* A question that at least one stream asks. */
struct question {
    struct question *next;
    size_t users;                 /* its streams, and the thread while it asks */
    size_t count;                 /* number of parameters */
    struct parameter *parameters; /* owned, with their texts in the same allocation */
    struct frame *newest;         /* never NULL */
};

struct stream {
    struct stream *next;
    struct streams *streams;
    struct question *question;
    struct frame *frame; /* being sent; NULL: none yet */
    size_t sent;         /* bytes of the frame that were sent */
    void *suspended;     /* the client that waits; NULL: none */
};

struct streams {
    struct api *api;
    struct streams_clients clients;
    size_t streams_max, stream_count;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a question was added, or `ending` was set */
    pthread_t thread;
    struct question *questions;
    struct stream *list;
    struct deadline deadline; /* of the question that the thread asks */
    bool ending;
};

static void frame_release(struct frame *f)
{
    if (f == NULL || --f->users > 0)
        return;
    text_fini(&f->bytes);
    free(f);
}

static bool set_word(struct query *q, struct slice name, struct slice value, struct err *e)
{
    static const char *const names[] = {"report", "measure",    "filter", "where",
                                        "step",   "week_start", "tz",     NULL};
    return slice_find(name, names) >= 0 ? query_set(q, name, value, e)
                                        : unknown_name(e, "parameter", name, names);
}

/* Sets the present step and the two before it; by second two minutes, so that late events are in them. */
static void set_range(struct query *q)
{
    if (!q->has_step)
        q->step = (struct step){.unit = STEP_MINUTE, .count = 1};
    q->has_step = true;
    q->to_ms = q->now_ms + 1;
    q->from_ms = step_floor(&q->step, q->zone, q->now_ms);
    for (int i = 0; i < 2; i++)
        q->from_ms = q->step.unit == STEP_SECOND ? q->from_ms - MINUTE_MS
                                                 : step_floor(&q->step, q->zone, q->from_ms - 1);
}

static bool ask(struct api *api, const struct parameter *parameters, size_t count, struct deadline *deadline,
                struct text *rows, struct err *e)
{
    struct query q;
    struct query_stats stats;
    struct share memory = {.quota = &api->memory};
    api_begin(api, &q);
    if (q.limits.bytes_max == 0 || q.limits.bytes_max > (uint64_t)STREAMS_ROWS_BYTES)
        q.limits.bytes_max = STREAMS_ROWS_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (!set_word(&q, parameters[i].name, parameters[i].value, e))
            return false;
    }
    set_range(&q);
    struct store *st = readers_take(&api->readers, deadline, &memory, e);
    if (st == NULL)
        return false;
    bool good = query_run(st, &q, rows, &stats, e);
    readers_give(&api->readers, st, good || api_is_of_question(e));
    share_end(&memory);
    return good;
}

/* `data` ends with its only line feed. */
static void add_event(struct text *out, const char *name, const struct text *data)
{
    text_printf(out, "event: %s\ndata: ", name);
    text_add(out, data->ptr, data->len);
    text_putc(out, '\n');
}

/* Asks the question. *good: it was answered; else *e says why not. */
static struct frame *make_frame(struct api *api, const struct parameter *parameters, size_t count,
                                struct deadline *deadline, bool *good, struct err *e)
{
    int64_t begun_ms = clock_mono_ms(api->clock);
    struct text rows = {0}, status = {0};
    struct frame *f = xcalloc(1, sizeof *f);
    f->users = 1;
    *good = ask(api, parameters, count, deadline, &rows, e);
    if (*good)
        add_event(&f->bytes, "rows", &rows);
    else
        text_puts(&f->bytes, ": the store could not be read this time\n\n");
    status_write(api->status, &status);
    add_event(&f->bytes, "status", &status);
    text_fini(&rows);
    text_fini(&status);
    f->begun_ms = begun_ms;
    f->cost_ms = clock_mono_ms(api->clock) - begun_ms;
    return f;
}

/* Call under the lock. */
static void publish(struct streams *s, struct question *qu, struct frame *f)
{
    frame_release(qu->newest);
    qu->newest = f;
    for (struct stream *st = s->list; st != NULL; st = st->next) {
        if (st->question == qu && st->suspended != NULL) {
            s->clients.resume(st->suspended);
            st->suspended = NULL;
        }
    }
}

/* Call under the lock. */
static void question_release(struct streams *s, struct question *qu)
{
    if (--qu->users > 0)
        return;
    struct question **at = &s->questions;
    while (*at != qu)
        at = &(*at)->next;
    *at = qu->next;
    frame_release(qu->newest);
    free(qu->parameters);
    free(qu);
}

/* The time from one start of asking the question to the next, if it were the only question. */
static int64_t interval_ms(const struct frame *f)
{
    int64_t least_ms = STREAMS_SHARE * f->cost_ms;
    return least_ms > STREAMS_INTERVAL_MS ? least_ms : STREAMS_INTERVAL_MS;
}

/* The factor for all intervals, by which all questions together keep to STREAMS_SHARE, too. */
static double stretch(const struct streams *s)
{
    double load = 0; /* part of the thread's time */
    for (const struct question *qu = s->questions; qu != NULL; qu = qu->next)
        load += (double)qu->newest->cost_ms / (double)interval_ms(qu->newest);
    return load * STREAMS_SHARE > 1 ? load * STREAMS_SHARE : 1;
}

/* NULL: there is no question. Call under the lock. */
static struct question *first_due(const struct streams *s, int64_t *due_ms)
{
    const double times = stretch(s);
    struct question *first = NULL;
    for (struct question *qu = s->questions; qu != NULL; qu = qu->next) {
        int64_t at_ms = qu->newest->begun_ms + (int64_t)(times * (double)interval_ms(qu->newest));
        if (first == NULL || at_ms < *due_ms) {
            *due_ms = at_ms;
            first = qu;
        }
    }
    return first;
}

/* Call under the lock; it is released while the question is asked. */
static void ask_again(struct streams *s, struct question *qu)
{
    struct err e;
    bool good;
    qu->users++;
    deadline_init(&s->deadline, s->api->clock, api_timeout_ms(s->api));
    pthread_mutex_unlock(&s->lock);
    struct frame *f = make_frame(s->api, qu->parameters, qu->count, &s->deadline, &good, &e);
    pthread_mutex_lock(&s->lock);
    publish(s, qu, f);
    question_release(s, qu);
}

static void *run(void *context)
{
    struct streams *s = context;
    pthread_mutex_lock(&s->lock);
    while (!s->ending) {
        int64_t due_ms = 0;
        struct question *qu = first_due(s, &due_ms);
        if (qu == NULL) {
            pthread_cond_wait(&s->changed, &s->lock);
        } else if (due_ms > clock_mono_ms(s->api->clock)) {
            (void)clock_wait(s->api->clock, &s->changed, &s->lock, due_ms);
        } else {
            ask_again(s, qu);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct streams *streams_start(struct api *api, const struct streams_clients *clients, size_t streams_max)
{
    struct streams *s = xcalloc(1, sizeof *s);
    s->api = api;
    s->clients = *clients;
    s->streams_max = streams_max;
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->changed);
    if (pthread_create(&s->thread, NULL, run, s) == 0)
        return s;
    streams_free(s);
    return NULL;
}

void streams_end(struct streams *s)
{
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    deadline_cancel(&s->deadline);
    pthread_cond_signal(&s->changed);
    for (struct stream *st = s->list; st != NULL; st = st->next) {
        if (st->suspended != NULL)
            s->clients.resume(st->suspended);
        st->suspended = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
}

void streams_free(struct streams *s)
{
    if (s == NULL)
        return;
    ASSERT(s->list == NULL && s->questions == NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool is_asked_by(const struct question *qu, const struct parameter *parameters, size_t count)
{
    size_t i = 0;
    while (i < count && i < qu->count && slice_equal(qu->parameters[i].name, parameters[i].name) &&
           slice_equal(qu->parameters[i].value, parameters[i].value))
        i++;
    return i == count && i == qu->count;
}

static struct question *find_question(struct streams *s, const struct parameter *parameters, size_t count)
{
    struct question *qu = s->questions;
    while (qu != NULL && !is_asked_by(qu, parameters, count))
        qu = qu->next;
    return qu;
}

static struct slice copy_slice(char **to, struct slice from)
{
    struct slice copy = slice_of(*to, from.len);
    if (from.len > 0)
        memcpy(*to, from.ptr, from.len);
    *to += from.len;
    return copy;
}

/* Takes over the frame. Call under the lock. */
static struct question *add_question(struct streams *s, const struct parameter *parameters, size_t count,
                                     struct frame *f)
{
    struct question *qu = xcalloc(1, sizeof *qu);
    size_t bytes = count * sizeof *parameters;
    for (size_t i = 0; i < count; i++)
        bytes += parameters[i].name.len + parameters[i].value.len;
    qu->count = count;
    qu->newest = f;
    qu->parameters = xmalloc(bytes);
    char *to = (char *)(qu->parameters + count);
    for (size_t i = 0; i < count; i++) {
        qu->parameters[i].name = copy_slice(&to, parameters[i].name);
        qu->parameters[i].value = copy_slice(&to, parameters[i].value);
    }
    qu->next = s->questions;
    s->questions = qu;
    pthread_cond_signal(&s->changed);
    return qu;
}

/* Call under the lock. */
static struct stream *add_stream(struct streams *s, struct question *qu)
{
    struct stream *st = xcalloc(1, sizeof *st);
    *st = (struct stream){.next = s->list, .streams = s, .question = qu};
    qu->users++;
    s->list = st;
    s->stream_count++;
    return st;
}

/* Call under the lock. */
static bool is_full(const struct streams *s)
{
    return s->stream_count >= s->streams_max || s->ending;
}

struct stream *stream_open(struct streams *s, const struct parameter *parameters, size_t count,
                           struct reply *rp)
{
    struct err e;
    bool good = true;
    struct stream *st = NULL;
    struct frame *first = NULL;
    pthread_mutex_lock(&s->lock);
    if (!is_full(s) && find_question(s, parameters, count) == NULL) {
        /* Ask before the stream begins, so that an error of the question is the reply. */
        pthread_mutex_unlock(&s->lock);
        first = make_frame(s->api, parameters, count, rp->deadline, &good, &e);
        pthread_mutex_lock(&s->lock);
    }
    if (good && !is_full(s)) {
        struct question *qu = find_question(s, parameters, count);
        if (qu == NULL) {
            qu = add_question(s, parameters, count, first);
            first = NULL;
        }
        st = add_stream(s, qu);
    }
    frame_release(first);
    pthread_mutex_unlock(&s->lock);
    if (!good)
        api_fail(rp, &e);
    else if (st == NULL)
        api_error(rp, 503, slice_text("all streams are in use (http.streams_max)"));
    return st;
}

void stream_answer(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    rp->stream = stream_open(api->streams, parameters, count, rp);
    if (rp->stream == NULL) {
        rp->retry = rp->code == 503;
        return;
    }
    rp->code = 200;
    rp->type = "text/event-stream";
}

void stream_close(struct stream *st)
{
    struct streams *s = st->streams;
    pthread_mutex_lock(&s->lock);
    struct stream **at = &s->list;
    while (*at != st)
        at = &(*at)->next;
    *at = st->next;
    s->stream_count--;
    frame_release(st->frame);
    question_release(s, st->question);
    pthread_mutex_unlock(&s->lock);
    free(st);
}

long stream_read(struct stream *st, void *client, char *buf, size_t size)
{
    struct streams *s = st->streams;
    long taken = -1;
    pthread_mutex_lock(&s->lock);
    if (st->frame != st->question->newest && (st->frame == NULL || st->sent == st->frame->bytes.len)) {
        frame_release(st->frame);
        st->frame = st->question->newest;
        st->frame->users++;
        st->sent = 0;
    }
    if (!s->ending) {
        size_t left = st->frame->bytes.len - st->sent, len = left < size ? left : size;
        memcpy(buf, st->frame->bytes.ptr + st->sent, len);
        st->sent += len;
        taken = (long)len;
        if (len == 0) {
            s->clients.suspend(client);
            st->suspended = client;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}
