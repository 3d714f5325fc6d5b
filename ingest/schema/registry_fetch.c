/* Fetches a schema of the registry, with those that it refers to, and compiles it. */
#include "base/mem.h"
#include "ingest/schema/registry_server.h"
#include "ingest/schema/schema_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define REFERENCE_DEPTH_MAX 16

/* The texts of one schema: those that it refers to come before it. */
struct fetch {
    const struct registry_server *registry;
    const atomic_bool *stop;
    struct text texts[REGISTRY_REFERENCES_MAX + 1];
    struct text paths[REGISTRY_REFERENCES_MAX + 1]; /* of those texts */
    size_t count;
    unsigned depth;
    bool is_away;
    struct err *e;
};

static bool fetch_references(struct fetch *f, const json_t *answer);

static bool is_fetched(const struct fetch *f, const struct text *path)
{
    bool is = false;
    for (size_t i = 0; i < f->count && !is; i++)
        is = slice_equal(text_slice(&f->paths[i]), text_slice(path));
    return is;
}

/* Takes the text of an answer, behind those that it refers to. */
static bool take_answer(struct fetch *f, const json_t *answer, const struct text *path)
{
    struct slice text = schema_json_text(schema_json_member(answer, "schema"));
    if (text.ptr == NULL)
        return err_set(f->e, EX_UNAVAILABLE,
                       "%s answers without a schema: check that registry.url is a schema registry",
                       f->registry->url);
    if (!fetch_references(f, answer))
        return false;
    if (f->count > REGISTRY_REFERENCES_MAX)
        return err_set(f->e, EX_UNAVAILABLE, "it refers to more than %d schemas", REGISTRY_REFERENCES_MAX);
    text_add(&f->texts[f->count], text.ptr, text.len);
    text_add(&f->paths[f->count], path->ptr, path->len);
    f->count++;
    return true;
}

/* Gets an answer as JSON. NULL: *f->e says why. */
static json_t *get(struct fetch *f, const struct text *path)
{
    struct text answer = {0};
    json_t *tree = NULL;
    if (registry_get(f->registry, path->ptr, f->stop, &answer, &f->is_away, f->e)) {
        tree = schema_json_parse(text_slice(&answer), f->e);
        if (tree == NULL)
            err_prefix(f->e, "%s answers, but not with JSON: check registry.url", f->registry->url);
    }
    text_fini(&answer);
    return tree;
}

static bool fetch_reference(struct fetch *f, const json_t *reference)
{
    struct slice subject = schema_json_text(schema_json_member(reference, "subject"));
    int64_t version = schema_json_integer(schema_json_member(reference, "version"), -1);
    struct text path = {0};
    bool good = true;
    text_puts(&path, "/subjects/");
    text_percent(&path, subject, NULL);
    text_printf(&path, "/versions/%" PRId64, version);
    if (!is_fetched(f, &path)) {
        json_t *answer = get(f, &path);
        good = answer != NULL && take_answer(f, answer, &path);
        schema_json_free(answer);
    }
    text_fini(&path);
    return good;
}

static bool fetch_references(struct fetch *f, const json_t *answer)
{
    const json_t *references = schema_json_member(answer, "references");
    bool good = true;
    if (f->depth == REFERENCE_DEPTH_MAX)
        return err_set(f->e, EX_UNAVAILABLE, "its references are deeper than %d", REFERENCE_DEPTH_MAX);
    f->depth++;
    for (size_t i = 0; i < schema_json_count(references) && good; i++)
        good = fetch_reference(f, schema_json_element(references, i));
    f->depth--;
    return good;
}

/* Makes a schema of the last text; the others are those that it refers to. */
static struct message_schema *compile(enum schema_kind kind, const struct slice *texts, size_t count,
                                      struct err *e)
{
    struct message_schema made = {.kind = kind};
    if (kind == SCHEMA_AVRO)
        made.avro = avro_schema_new(texts, count, e);
    else
        made.proto = proto_schema_new(texts, count, e);
    if (made.avro == NULL && made.proto == NULL)
        return NULL;
    struct message_schema *s = xcalloc(1, sizeof *s);
    *s = made;
    return s;
}

/* `kind`: the one that is wanted. */
static struct message_schema *schema_of_answer(struct fetch *f, enum schema_kind kind, const json_t *answer,
                                               const struct text *path)
{
    static const char *const types[] = {[SCHEMA_AVRO] = "AVRO", [SCHEMA_PROTOBUF] = "PROTOBUF"};
    struct slice type = schema_json_text(schema_json_member(answer, "schemaType"));
    struct slice slices[REGISTRY_REFERENCES_MAX + 1];
    if (!slice_is(type.ptr != NULL ? type : slice_text("AVRO"), types[kind])) {
        struct message_schema *s = xcalloc(1, sizeof *s);
        s->kind = SCHEMA_OTHER;
        return s;
    }
    if (!take_answer(f, answer, path))
        return NULL;
    for (size_t i = 0; i < f->count; i++)
        slices[i] = text_slice(&f->texts[i]);
    return compile(kind, slices, f->count, f->e);
}

struct message_schema *registry_fetch(const struct registry_server *r, enum schema_kind kind, uint32_t id,
                                      const atomic_bool *stop, bool *is_away, struct err *e)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    struct text path = {0};
    struct message_schema *s = NULL;
    f->registry = r;
    f->stop = stop;
    f->e = e;
    text_printf(&path, "/schemas/ids/%" PRIu32, id);
    json_t *answer = get(f, &path);
    if (answer != NULL)
        s = schema_of_answer(f, kind, answer, &path);
    schema_json_free(answer);
    *is_away = f->is_away;
    for (size_t i = 0; i < f->count; i++) {
        text_fini(&f->texts[i]);
        text_fini(&f->paths[i]);
    }
    text_fini(&path);
    free(f);
    return s;
}

struct message_schema *registry_of_text(enum schema_kind kind, struct slice text, struct err *e)
{
    return compile(kind, &text, 1, e);
}

void message_schema_free(struct message_schema *s)
{
    if (s == NULL)
        return;
    avro_schema_free(s->avro);
    proto_schema_free(s->proto);
    free(s);
}
