/* figures.c - what an update costs over the minutes of a day, by the shape of the document: the literature's
 * figures, measured.
 *
 *     build/mongo_figures URL DOCUMENTS STEP
 *
 * Each shape has a collection of its name with DOCUMENTS documents of one day. The day goes through its
 * minutes, by STEP; in each, all documents of a shape are counted into by one command, as tallyd sends them,
 * one shape after the other, each time with another first. It prints microseconds per document:
 *
 *     SHAPE before US      to make it beforehand, where it is
 *     SHAPE MINUTE US      an update
 */
#include "bench/mongo/visits.h"
#include "store/mongo/wire/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

enum { MINUTES = 1440, DOCUMENTS_MAX = 1000, NAME_BYTES = 64 };

#define DAY_MS INT64_C(1767571200000) /* 2026-01-05 */

/* The document before the first update: of `shell`, metadata alone. */
enum before { BEFORE_NOTHING, BEFORE_SHELL, BEFORE_ZEROS };

static const struct shape {
    const char *name;
    bool is_flat; /* minute.847, not minute.14.7 */
    enum before before;
    bool is_probe; /* only `daily`: at each time of day the same work, so it tells how busy the machine is */
} shapes[] = {
    {"growing_flat", true, BEFORE_NOTHING, false}, {"zeros_flat", true, BEFORE_ZEROS, false},
    {"growing", false, BEFORE_NOTHING, false},     {"shell", false, BEFORE_SHELL, false},
    {"zeros", false, BEFORE_ZEROS, false},         {"probe", false, BEFORE_SHELL, true},
};

#define SHAPES (sizeof shapes / sizeof *shapes)

static void append_names(bson_t *to, int document, const char *prefix)
{
    char name[NAME_BYTES], path[NAME_BYTES];
    snprintf(path, sizeof path, "/page/%d", document);
    snprintf(name, sizeof name, "%sdate", prefix);
    BSON_APPEND_DATE_TIME(to, name, DAY_MS);
    snprintf(name, sizeof name, "%spath", prefix);
    BSON_APPEND_UTF8(to, name, path);
}

static void append_id(bson_t *to, int document)
{
    char id[NAME_BYTES];
    snprintf(id, sizeof id, "20260105/%%2Fpage%%2F%d", document);
    BSON_APPEND_UTF8(to, "_id", id);
}

static void append_zeros(bson_t *to, const char *name, int count)
{
    bson_t zeros;
    BSON_APPEND_DOCUMENT_BEGIN(to, name, &zeros);
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT64(&zeros, key, 0);
    }
    bson_append_document_end(to, &zeros);
}

static void append_slots(bson_t *to, const struct shape *s)
{
    bson_t minute;
    BSON_APPEND_INT64(to, "daily", 0);
    append_zeros(to, "hourly", 24);
    if (s->is_flat) {
        append_zeros(to, "minute", MINUTES);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(to, "minute", &minute);
    for (int hour = 0; hour < 24; hour++) {
        char key[16];
        snprintf(key, sizeof key, "%d", hour);
        append_zeros(&minute, key, 60);
    }
    bson_append_document_end(to, &minute);
}

static void append_document(bson_t *to, const struct shape *s, int document)
{
    bson_t metadata;
    append_id(to, document);
    BSON_APPEND_DOCUMENT_BEGIN(to, "metadata", &metadata);
    append_names(&metadata, document, "");
    bson_append_document_end(to, &metadata);
    if (s->before == BEFORE_ZEROS)
        append_slots(to, s);
}

static void append_increments(bson_t *to, const struct shape *s, int at)
{
    char name[NAME_BYTES];
    BSON_APPEND_INT64(to, "daily", 1);
    if (s->is_probe)
        return;
    snprintf(name, sizeof name, "hourly.%d", at / 60);
    BSON_APPEND_INT64(to, name, 1);
    if (s->is_flat)
        snprintf(name, sizeof name, "minute.%d", at);
    else
        snprintf(name, sizeof name, "minute.%d.%d", at / 60, at % 60);
    BSON_APPEND_INT64(to, name, 1);
}

static void append_update(bson_t *to, const struct shape *s, int document, int at)
{
    bson_t filter, update, increments;
    BSON_APPEND_DOCUMENT_BEGIN(to, "q", &filter);
    append_id(&filter, document);
    append_names(&filter, document, "metadata.");
    bson_append_document_end(to, &filter);
    BSON_APPEND_DOCUMENT_BEGIN(to, "u", &update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &increments);
    append_increments(&increments, s, at);
    bson_append_document_end(&update, &increments);
    bson_append_document_end(to, &update);
    BSON_APPEND_BOOL(to, "upsert", true);
}

/* Microseconds of the command per document. `at` < 0: make it beforehand. */
static double write_all(struct mongo_client *client, const struct shape *s, int documents, int at)
{
    bson_t command, list, one, reply;
    bson_iter_t it;
    struct err e;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, at < 0 ? "insert" : "update", s->name);
    BSON_APPEND_BOOL(&command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(&command, at < 0 ? "documents" : "updates", &list);
    for (int i = 0; i < documents; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&list, key, &one);
        if (at < 0)
            append_document(&one, s, i);
        else
            append_update(&one, s, i, at);
        bson_append_document_end(&list, &one);
    }
    bson_append_array_end(&command, &list);
    double begun_s = visits_now_s();
    if (!mongo_write(client, &command, &reply, &e))
        visits_fail(s->name, e.text);
    double took_s = visits_now_s() - begun_s;
    if (bson_has_field(&reply, "writeErrors") || !bson_iter_init_find(&it, &reply, "n") ||
        bson_iter_as_int64(&it) != documents)
        visits_fail(s->name, "not every document was written");
    bson_destroy(&reply);
    bson_destroy(&command);
    return took_s * 1e6 / documents;
}

int main(int argc, char **argv)
{
    struct err e;
    if (argc != 4) {
        fputs("usage: mongo_figures URL DOCUMENTS STEP\n", stderr);
        return EX_USAGE;
    }
    int documents = atoi(argv[2]), step = atoi(argv[3]);
    if (documents < 1 || documents > DOCUMENTS_MAX)
        visits_fail("DOCUMENTS", "out of range");
    if (step < 1 || step > MINUTES)
        visits_fail("STEP", "out of range");
    struct mongo_client *client = mongo_client_open(argv[1], true, 0, &e);
    if (!client)
        visits_fail("the server", e.text);
    for (size_t i = 0; i < SHAPES; i++) {
        if (shapes[i].before != BEFORE_NOTHING)
            printf("%s before %.2f\n", shapes[i].name, write_all(client, &shapes[i], documents, -1));
    }
    for (int at = 0, turn = 0; at < MINUTES; at += step, turn++) {
        for (size_t i = 0; i < SHAPES; i++) {
            const struct shape *s = &shapes[((size_t)turn + i) % SHAPES];
            printf("%s %d %.2f\n", s->name, at, write_all(client, s, documents, at));
        }
    }
    mongo_client_close(client);
    return EX_OK;
}
