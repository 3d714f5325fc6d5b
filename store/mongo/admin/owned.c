/* Finds tallyd's collections, by their names and by `reports`, and deletes them. */
#include "base/log.h"
#include "base/mem.h"
#include "store/mongo/admin/copy.h"
#include "store/mongo/admin/dump.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_MAX 100000 /* names in one reply */
#define RAW      "raw."

struct owning {
    struct mongo_store *m;
    const struct mongo_dump *also;
    mongo_owned_fn *fn;
    void *context;
    struct text keys; /* "pages" and "pages.latency" of reports and their sketches, each between two \n */
    char database[MONGO_DATABASE_BYTES];
};

bool mongo_is_raw(const struct mongo_place *place)
{
    return strncmp(place->collection, RAW, strlen(RAW)) == 0;
}

static bool take_key(void *context, const bson_t *document)
{
    char quoted_key[LOG_QUOTE_BYTES], quoted[LOG_QUOTE_BYTES];
    const char *key = mongo_text_at(document, "_id");
    struct report r;
    struct err e;
    if (key[0] == '\0')
        return true;
    text_printf(context, "\n%s\n", key);
    if (!mongo_read_report(document, &r, &e)) {
        log_warn(
            "report_unreadable",
            "report=%s error=%s next=\"leaving its histograms and distinct counts alone, if it has some\"",
            log_quote(key, quoted_key), log_quote(e.text, quoted));
        return true;
    }
    for (size_t i = 0; i < mongo_sketch_count(&r); i++)
        text_printf(context, "\n%s.%s\n", key, report_sketched(&r, i)->name);
    report_fini(&r);
    return true;
}

static bool is_report(const struct owning *o, const char *key, size_t len)
{
    char line[MONGO_NAME_BYTES + 3];
    snprintf(line, sizeof line, "\n%.*s\n", (int)len, key);
    return o->keys.len > 0 && strstr(o->keys.ptr, line) != NULL;
}

/* Is it a collection of a report, such as "pages.day" or "pages.latency.day"? */
static bool is_of_report(const struct owning *o, const char *name)
{
    const char *kind = strrchr(name, '.');
    bool is_kind = kind != NULL && (strcmp(kind, ".series") == 0 || strcmp(kind, "." MONGO_TOP) == 0);
    for (int s = 0; kind != NULL && !is_kind && s < SPAN_COUNT; s++)
        is_kind = strcmp(kind + 1, span_name((enum span)s)) == 0;
    is_kind |= kind != NULL && (strcmp(kind, ".year") == 0 || strcmp(kind, ".week") == 0);
    return is_kind && is_report(o, name, (size_t)(kind - name));
}

static bool is_owned(const struct owning *o, const struct mongo_place *place)
{
    static const char *const names[] = {MONGO_LEDGER,  MONGO_BATCHES, MONGO_BOOKS, MONGO_PAST,
                                        MONGO_REPORTS, MONGO_JOBS,    NULL};
    if (mongo_is_raw(place))
        return true;
    if (strcmp(place->database, mongo_client_database(o->m->client)) != 0)
        return false;
    return slice_find(slice_text(place->collection), names) >= 0 || is_of_report(o, place->collection) ||
           (o->also != NULL && mongo_dump_find(o->also, o->also->database, place->collection) != NULL);
}

static bool see_collection(const struct owning *o, const bson_iter_t *at, struct err *e)
{
    struct mongo_place place = {.collection = ""};
    const uint8_t *bytes;
    uint32_t len;
    bson_t listed;
    bson_iter_t name, type;
    bson_iter_document(at, &len, &bytes);
    if (!bson_init_static(&listed, bytes, len) || !bson_iter_init_find(&name, &listed, "name") ||
        !BSON_ITER_HOLDS_UTF8(&name))
        return true;
    bool is_view = bson_iter_init_find(&type, &listed, "type") && BSON_ITER_HOLDS_UTF8(&type) &&
                   strcmp(bson_iter_utf8(&type, NULL), "collection") != 0;
    memcpy(place.database, o->database, sizeof place.database);
    int n = snprintf(place.collection, sizeof place.collection, "%s", bson_iter_utf8(&name, NULL));
    if (is_view || n >= (int)sizeof place.collection || !is_owned(o, &place))
        return true;
    return o->fn(o->context, &place, &listed, e);
}

static bool each_of_database(const struct owning *o, struct err *e)
{
    bson_t reply;
    bson_iter_t batch, at;
    bson_t *command =
        BCON_NEW("listCollections", BCON_INT32(1), "cursor", "{", "batchSize", BCON_INT32(LIST_MAX), "}");
    bool good = mongo_read_in(o->m->client, o->database, command, &reply, e);
    if (good && mongo_number_at(&reply, "cursor.id", 0) != 0)
        good = err_set(e, EX_IOERR, "%s: the server does not list all collections of %s at once",
                       mongo_client_name(o->m->client), o->database);
    if (good && mongo_find_member(&reply, "cursor.firstBatch", &batch) && bson_iter_recurse(&batch, &at)) {
        while (good && bson_iter_next(&at))
            good = !BSON_ITER_HOLDS_DOCUMENT(&at) || see_collection(o, &at, e);
    }
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

/* Databases of raw events, such as "DATABASE_raw_access_201010": mongo/raw/raw.h. */
static bool each_of_months(struct owning *o, struct err *e)
{
    char prefix[MONGO_DATABASE_BYTES + 8];
    bson_t reply;
    bson_iter_t list, at, name;
    bson_t *command = BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true));
    snprintf(prefix, sizeof prefix, "%s_raw_", mongo_client_database(o->m->client));
    bool good = mongo_read_in(o->m->client, "admin", command, &reply, e);
    if (good && mongo_find_member(&reply, "databases", &list) && bson_iter_recurse(&list, &at)) {
        while (good && bson_iter_next(&at)) {
            bool has_name = BSON_ITER_HOLDS_DOCUMENT(&at) && bson_iter_recurse(&at, &name) &&
                            bson_iter_find(&name, "name") && BSON_ITER_HOLDS_UTF8(&name);
            if (!has_name || strncmp(bson_iter_utf8(&name, NULL), prefix, strlen(prefix)) != 0)
                continue;
            snprintf(o->database, sizeof o->database, "%s", bson_iter_utf8(&name, NULL));
            good = each_of_database(o, e);
        }
    }
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

bool mongo_each_owned(struct mongo_store *m, const struct mongo_dump *also, mongo_owned_fn *fn, void *context,
                      struct err *e)
{
    struct owning o = {.m = m, .also = also, .fn = fn, .context = context};
    bson_t *options = BCON_NEW("projection", "{", "name", BCON_BOOL(true), "generation", BCON_BOOL(true),
                               "definition", BCON_BOOL(true), "}");
    snprintf(o.database, sizeof o.database, "%s", mongo_client_database(m->client));
    bool good = mongo_look(m->client, MONGO_REPORTS, NULL, options, take_key, &o.keys, e) &&
                each_of_database(&o, e) && each_of_months(&o, e);
    text_fini(&o.keys);
    return good;
}

static bool see_owned(void *context, const struct mongo_place *place, const bson_t *listed, struct err *e)
{
    (void)listed, (void)e;
    snprintf(context, MONGO_NAME_BYTES, "%s", place->collection);
    return false;
}

bool mongo_find_owned(struct mongo_store *m, const struct mongo_dump *also, char found[MONGO_NAME_BYTES],
                      struct err *e)
{
    struct err ended = {0};
    found[0] = '\0';
    if (mongo_each_owned(m, also, see_owned, found, &ended) || found[0] != '\0')
        return true;
    *e = ended;
    return false;
}

/* ---- deleting them */

struct places {
    struct mongo_place *list;
    size_t count, capacity;
};

static bool note_place(void *context, const struct mongo_place *place, const bson_t *listed, struct err *e)
{
    struct places *p = context;
    (void)listed, (void)e;
    p->list = xgrow(p->list, &p->capacity, p->count + 1, sizeof *p->list);
    p->list[p->count++] = *place;
    return true;
}

static bool drop(struct mongo_store *m, const char *database, const char *collection, struct err *e)
{
    bson_t reply;
    bson_t *command = BCON_NEW("drop", BCON_UTF8(collection));
    bool good = mongo_write_in(m->client, database, command, NULL, &reply, e);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

bool mongo_drop_owned(struct mongo_store *m, const struct mongo_dump *also, struct err *e)
{
    struct places places = {.count = 0};
    bool good = mongo_each_owned(m, also, note_place, &places, e), has_reports = false;
    for (size_t i = 0; good && i < places.count; i++) {
        const struct mongo_place *p = &places.list[i];
        bool is_report = strcmp(p->collection, MONGO_REPORTS) == 0;
        has_reports |= is_report;
        if (!is_report && strcmp(p->collection, MONGO_LEDGER) != 0)
            good = drop(m, p->database, p->collection, e);
    }
    free(places.list);
    return good && (!has_reports || drop(m, mongo_client_database(m->client), MONGO_REPORTS, e));
}
