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

#define RAW "raw."

struct owning {
    struct mongo_store *m;
    const struct mongo_dump *also;
    mongo_owned_fn *fn;
    void *context;
    struct text keys; /* "pages" and "pages.latency" of reports and their sketches, each between two \n */
    char database[MONGO_DATABASE_BYTES];
    bool good; /* false: `fn` ended the walk, or *e says why */
    struct err *e;
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
    for (int s = 0; kind != NULL && !is_kind && s < SPAN_END; s++)
        is_kind = strcmp(kind + 1, span_name((enum span)s)) == 0;
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

static bool see_collection(void *context, const bson_t *listed)
{
    struct owning *o = context;
    struct mongo_place place = {.collection = ""};
    const char *name = mongo_text_at(listed, "name"), *type = mongo_text_at(listed, "type");
    bool is_view = type[0] != '\0' && strcmp(type, "collection") != 0;
    memcpy(place.database, o->database, sizeof place.database);
    int n = snprintf(place.collection, sizeof place.collection, "%s", name);
    if (n > 0 && n < (int)sizeof place.collection && !is_view && is_owned(o, &place))
        o->good = o->fn(o->context, &place, listed, o->e);
    return o->good;
}

static bool each_of_database(struct owning *o)
{
    bson_t *command = BCON_NEW("listCollections", BCON_INT32(1), "cursor", "{", "batchSize",
                               BCON_INT32(MONGO_LIST_MAX), "}");
    return mongo_list(o->m->client, o->database, command, MONGO_BATCH, see_collection, o, o->e) && o->good;
}

static bool see_database(void *context, const char *name, struct err *e)
{
    struct owning *o = context;
    (void)e;
    snprintf(o->database, sizeof o->database, "%s", name);
    return each_of_database(o);
}

bool mongo_each_owned(struct mongo_store *m, const struct mongo_dump *also, mongo_owned_fn *fn, void *context,
                      struct err *e)
{
    struct owning o = {.m = m, .also = also, .fn = fn, .context = context, .good = true, .e = e};
    bson_t *options = BCON_NEW("projection", "{", "name", BCON_BOOL(true), "generation", BCON_BOOL(true),
                               "definition", BCON_BOOL(true), "}");
    snprintf(o.database, sizeof o.database, "%s", mongo_client_database(m->client));
    bool good = mongo_look(m->client, MONGO_REPORTS, NULL, options, take_key, &o.keys, e) &&
                each_of_database(&o) && mongo_raw_each_database(m, see_database, &o, e);
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
    return mongo_run(m->client, database, BCON_NEW("drop", BCON_UTF8(collection)), 0, e);
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
