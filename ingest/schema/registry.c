#include "ingest/schema/registry.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

/* A schema of the registry that was asked for. */
struct entry {
    uint32_t id;
    enum schema_kind kind;
    struct message_schema *schema; /* NULL: it is not known yet */
    int64_t since_ms;              /* monotonic time at which it was first asked for */
    int64_t next_ms;               /* monotonic time of the next attempt */
    int64_t pause_ms;              /* before the attempt behind that one */
    char why[512];                 /* why the last attempt failed; "": there was none */
    char where[128];               /* the first record that waits: "topic=t partition=0 offset=7" */
};

struct registry_client {
    const struct registry *registry;
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t asked; /* for the thread: there is an entry without a schema, or the stop */
    struct entry *entries;
    size_t count, capacity;
    int64_t failures;
    int64_t away_ms; /* pause of all requests after the last one found the registry away; 0: it answered */
    int64_t away_until_ms; /* monotonic time of its end */
    bool has_thread;
    pthread_t thread;
    atomic_bool stop;
};

static void client_free(struct registry_client *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->stop, true);
    pthread_cond_broadcast(&c->asked);
    pthread_mutex_unlock(&c->lock);
    if (c->has_thread)
        pthread_join(c->thread, NULL);
    for (size_t i = 0; i < c->count; i++)
        message_schema_free(c->entries[i].schema);
    free(c->entries);
    pthread_cond_destroy(&c->asked);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void registry_fini(struct registry *r)
{
    client_free(r->client);
    for (size_t i = 0; i < r->file_count; i++)
        message_schema_free(r->files[i].schema);
    free(r->files);
    free(r->server.url);
    free(r->server.user);
    free(r->server.password);
    free(r->server.token);
    free(r->server.cacert);
    free(r->server.tls_cert);
    free(r->server.tls_key);
    *r = (struct registry){0};
}

static struct registry_file *find_file(const struct registry *r, enum schema_kind kind, const char *path)
{
    for (size_t i = 0; i < r->file_count; i++) {
        if (r->files[i].kind == kind && strcmp(r->files[i].path, path) == 0)
            return &r->files[i];
    }
    return NULL;
}

bool registry_ask(struct registry *r, enum schema_kind kind, const char *path, struct err *e)
{
    if (path[0] == '\0') {
        r->is_asked = true;
        return true;
    }
    if (find_file(r, kind, path) != NULL)
        return true;
    if (r->file_count == REGISTRY_FILES_MAX)
        return err_set(e, EX_CONFIG, "found one more file of a schema, expected at most %d",
                       REGISTRY_FILES_MAX);
    r->files = xrealloc(r->files, (r->file_count + 1) * sizeof *r->files);
    struct registry_file *file = &r->files[r->file_count++];
    *file = (struct registry_file){.kind = kind};
    snprintf(file->path, sizeof file->path, "%s", path);
    return true;
}

bool registry_check(const struct registry *r, struct err *e)
{
    const char *host = r->server.url != NULL ? strstr(r->server.url, "://") : NULL;
    bool is_url = r->server.url != NULL &&
                  (strncmp(r->server.url, "http://", 7) == 0 || strncmp(r->server.url, "https://", 8) == 0);
    if (r->is_asked && r->server.url == NULL)
        return err_set(e, EX_CONFIG,
                       "found a step that needs a schema registry, expected registry.url to say where it is");
    if (r->server.url != NULL && (!is_url || host[3] == '\0' || host[3] == '/'))
        return err_set(e, EX_CONFIG,
                       "found registry.url without its scheme or host, expected http://HOST:PORT");
    if (r->server.url != NULL && memchr(host + 3, '@', strcspn(host + 3, "/?#")) != NULL)
        return err_set(e, EX_CONFIG,
                       "found credentials in registry.url, expected them as registry.user and password");
    if (r->server.url != NULL && strpbrk(r->server.url, "?#") != NULL)
        return err_set(e, EX_CONFIG, "found a query in registry.url, expected http://HOST:PORT or a path");
    if ((r->server.user == NULL) != (r->server.password == NULL))
        return err_set(e, EX_CONFIG, "found one of registry.user and password, expected both or none");
    if (r->server.user != NULL && r->server.token != NULL)
        return err_set(e, EX_CONFIG, "found registry.user and token, expected one of them");
    return (r->server.tls_cert == NULL) == (r->server.tls_key == NULL) ||
           err_set(e, EX_CONFIG, "found one of registry.tls_cert and tls_key, expected both or none");
}

static bool read_file(const char *path, struct text *out, struct err *e)
{
    char block[65536];
    size_t n;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return err_set(e, EX_NOINPUT, "cannot read the schema %s: %s", path, strerror(errno));
    while (out->len <= REGISTRY_ANSWER_BYTES_MAX && (n = fread(block, 1, sizeof block, file)) > 0)
        text_add(out, block, n);
    bool good =
        ferror(file) == 0 || err_set(e, EX_NOINPUT, "cannot read the schema %s: %s", path, strerror(errno));
    fclose(file);
    return good && (out->len <= REGISTRY_ANSWER_BYTES_MAX ||
                    err_set(e, EX_DATAERR, "the schema %s is larger than %d MiB", path,
                            REGISTRY_ANSWER_BYTES_MAX >> 20));
}

static bool open_file(struct registry_file *file, struct err *e)
{
    struct text text = {0};
    if (read_file(file->path, &text, e)) {
        file->schema = registry_of_text(file->kind, text_slice(&text), e);
        if (file->schema == NULL)
            err_prefix(e, "%s", file->path);
    }
    text_fini(&text);
    return file->schema != NULL;
}

bool registry_open(struct registry *r, const struct clock *clock, struct err *e)
{
    for (size_t i = 0; i < r->file_count; i++) {
        if (r->files[i].schema == NULL && !open_file(&r->files[i], e))
            return false;
    }
    if (!r->is_asked || r->client != NULL)
        return true;
    if (!registry_server_open(e))
        return err_prefix(e, "the schema registry");
    struct registry_client *c = r->client = xcalloc(1, sizeof *c);
    c->registry = r;
    c->clock = clock;
    pthread_mutex_init(&c->lock, NULL);
    clock_cond_init(&c->asked);
    return true;
}

bool registry_probe(const struct registry *r, struct err *e)
{
    struct text answer = {0};
    bool is_away;
    bool good =
        registry_get(&r->server, "/schemas/types", &r->client->stop, &answer, &is_away, e) || !is_away;
    text_fini(&answer);
    return good;
}

const struct message_schema *registry_file_schema(const struct registry *r, enum schema_kind kind,
                                                  const char *path)
{
    const struct registry_file *file = find_file(r, kind, path);
    ASSERT(file != NULL && file->schema != NULL);
    return file->schema;
}

/* ---- the thread */

/* Pre: the lock is held, as for all below that take an entry. */
static struct entry *find_entry(struct registry_client *c, enum schema_kind kind, uint32_t id)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->entries[i].id == id && c->entries[i].kind == kind)
            return &c->entries[i];
    }
    return NULL;
}

/* The entry whose turn is next; NULL: each has its schema. */
static struct entry *next_entry(struct registry_client *c)
{
    struct entry *next = NULL;
    for (size_t i = 0; i < c->count; i++) {
        struct entry *en = &c->entries[i];
        if (en->schema == NULL && (next == NULL || en->next_ms < next->next_ms))
            next = en;
    }
    return next;
}

static int64_t longer(const struct registry_client *c, int64_t pause_ms)
{
    int64_t next_ms = pause_ms == 0 ? REGISTRY_RETRY_MS : 2 * pause_ms;
    return next_ms < c->registry->retry_max_ms ? next_ms : c->registry->retry_max_ms;
}

static void note_failure(struct registry_client *c, struct entry *en, bool is_away, const struct err *why)
{
    char quoted[LOG_QUOTE_BYTES];
    int64_t now_ms = clock_mono_ms(c->clock);
    c->failures++;
    if (is_away) { /* another request would only wait as long */
        c->away_ms = longer(c, c->away_ms);
        c->away_until_ms = now_ms + c->away_ms;
    } else {
        en->pause_ms = longer(c, en->pause_ms);
        en->next_ms = now_ms + en->pause_ms;
        c->away_ms = 0;
    }
    if (en->why[0] == '\0')
        log_warn("schema_waits", "id=%" PRIu32 " %s error=%s next=\"its messages wait; trying again\"",
                 en->id, en->where, log_quote(why->text, quoted));
    snprintf(en->why, sizeof en->why, "%.*s", (int)sizeof en->why - 1, why->text);
}

static void note_schema(struct registry_client *c, struct entry *en, struct message_schema *s)
{
    c->away_ms = 0;
    en->schema = s;
    if (en->why[0] != '\0')
        log_info("schema_came", "id=%" PRIu32 " %s waited_ms=%" PRId64, en->id, en->where,
                 clock_mono_ms(c->clock) - en->since_ms);
}

/* Fetches without the lock, so that others may ask meanwhile. */
static void fetch_entry(struct registry_client *c, enum schema_kind kind, uint32_t id)
{
    struct err e = {0};
    bool is_away;
    pthread_mutex_unlock(&c->lock);
    struct message_schema *s = registry_fetch(&c->registry->server, kind, id, &c->stop, &is_away, &e);
    pthread_mutex_lock(&c->lock);
    struct entry *en = find_entry(c, kind, id);
    if (s != NULL)
        note_schema(c, en, s);
    else if (!atomic_load(&c->stop))
        note_failure(c, en, is_away, &e);
}

static void *fetch_all(void *client)
{
    struct registry_client *c = client;
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop)) {
        struct entry *en = next_entry(c);
        int64_t at_ms = en == NULL ? INT64_MAX / 1000 : en->next_ms;
        if (en != NULL && c->away_ms > 0 && c->away_until_ms > at_ms)
            at_ms = c->away_until_ms;
        if (clock_mono_ms(c->clock) >= at_ms)
            fetch_entry(c, en->kind, en->id);
        else
            (void)clock_wait(c->clock, &c->asked, &c->lock, at_ms);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- asking */

static void add_entry(struct registry_client *c, enum schema_kind kind, uint32_t id,
                      const struct record *record)
{
    if (c->count == REGISTRY_SCHEMAS_MAX) {
        log_limited(LOG_LEVEL_ERROR, "schema_waits",
                    "id=%" PRIu32
                    " error=\"there are more than %d schemas\" next=\"its messages wait; restart "
                    "tallyd to forget schemas that are no longer used\"",
                    id, REGISTRY_SCHEMAS_MAX);
        return;
    }
    c->entries = xgrow(c->entries, &c->capacity, c->count + 1, sizeof *c->entries);
    struct entry *en = &c->entries[c->count++];
    *en = (struct entry){.id = id, .kind = kind, .since_ms = clock_mono_ms(c->clock)};
    snprintf(en->where, sizeof en->where, "topic=%.*s partition=%" PRId32 " offset=%" PRId64,
             (int)(record->topic.len < 64 ? record->topic.len : 64), record->topic.ptr, record->partition,
             record->offset);
    pthread_cond_broadcast(&c->asked);
    c->has_thread = c->has_thread || pthread_create(&c->thread, NULL, fetch_all, c) == 0;
    if (!c->has_thread)
        c->count--; /* the next one who asks tries again */
}

const struct message_schema *registry_find(const struct registry *r, enum schema_kind kind, uint32_t id,
                                           const struct record *record)
{
    struct registry_client *c = r->client;
    ASSERT(c != NULL);
    pthread_mutex_lock(&c->lock);
    const struct entry *en = find_entry(c, kind, id);
    const struct message_schema *s = en != NULL ? en->schema : NULL;
    if (en == NULL)
        add_entry(c, kind, id, record);
    pthread_mutex_unlock(&c->lock);
    return s;
}

void registry_note(const struct registry *r, struct registry_figures *figures)
{
    struct registry_client *c = r->client;
    *figures = (struct registry_figures){0};
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    figures->failures = c->failures;
    for (size_t i = 0; i < c->count; i++) {
        const struct entry *en = &c->entries[i];
        if (en->schema != NULL || en->why[0] == '\0')
            continue;
        if (figures->waiting++ == 0)
            snprintf(figures->why, sizeof figures->why, "schema %" PRIu32 " (%s): %.100s", en->id, en->where,
                     en->why);
    }
    pthread_mutex_unlock(&c->lock);
}
