#include "store/mongo/ledger/books.h"

#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/writer.h"

#include <stdio.h>

struct books_reading {
    const struct mongo_store *m;
    book_fn *fn;
    void *context;
    char source[RANGE_SOURCE_BYTES], partition[RANGE_PARTITION_BYTES];
};

/* Calls `fn` for each entry, with nested names joined: "rejected.time". */
static bool see_entries(const struct books_reading *g, const char *report, const char *stem,
                        const bson_iter_t *of)
{
    bson_iter_t at;
    char name[STORE_ENTRY_BYTES];
    if (!BSON_ITER_HOLDS_DOCUMENT(of) || !bson_iter_recurse(of, &at))
        return true;
    while (bson_iter_next(&at)) {
        snprintf(name, sizeof name, "%s%s%s", stem, stem[0] != '\0' ? "." : "", bson_iter_key(&at));
        if (BSON_ITER_HOLDS_DOCUMENT(&at)
                ? !see_entries(g, report, name, &at)
                : !g->fn(g->context, g->source, g->partition, report, name, bson_iter_as_int64(&at)))
            return false;
    }
    return true;
}

static bool see_all(const struct books_reading *g, const bson_t *document)
{
    bson_iter_t it;
    if (mongo_find_member(document, "entries", &it) && !see_entries(g, "", "", &it))
        return false;
    for (size_t r = 0; r < g->m->store.report_count; r++) {
        char path[MONGO_NAME_BYTES + 16];
        snprintf(path, sizeof path, "reports.%s", g->m->more[r].key);
        if (mongo_find_member(document, path, &it) && !see_entries(g, g->m->reports[r].name, "", &it))
            return false;
    }
    return true;
}

static bool see_book(void *context, const bson_t *document)
{
    struct books_reading *g = context;
    snprintf(g->source, sizeof g->source, "%s", mongo_text_at(document, "source"));
    snprintf(g->partition, sizeof g->partition, "%s", mongo_text_at(document, "partition"));
    return see_all(g, document);
}

void mongo_read_entries(const struct mongo_store *m, const bson_t *book, book_fn *fn, void *context)
{
    const struct books_reading g = {.m = m, .fn = fn, .context = context};
    (void)see_all(&g, book);
}

bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e)
{
    struct books_reading g = {.m = mongo_of(st), .fn = fn, .context = context};
    return mongo_look(mongo_of(st)->client, MONGO_BOOKS, NULL, NULL, see_book, &g, e);
}

static bool take_entry(void *context, const char *source, const char *partition, const char *report,
                       const char *entry, int64_t value)
{
    (void)source, (void)partition, (void)report;
    backfill_read(context, entry, value);
    return true;
}

bool mongo_read_span(struct mongo_store *m, const struct range *r, size_t report, struct backfill_span *span,
                     struct err *e)
{
    char id[RANGE_SOURCE_BYTES + RANGE_PARTITION_BYTES], path[MONGO_NAME_BYTES + 16];
    const struct books_reading g = {.m = m, .fn = take_entry, .context = span};
    bson_t book;
    bson_iter_t entries;
    snprintf(id, sizeof id, "%s/%s", r->source, r->partition);
    snprintf(path, sizeof path, "reports.%s", m->more[report].key);
    bool good = mongo_read_document(m->client, MONGO_BOOKS, id, &book, e);
    if (good && mongo_find_member(&book, path, &entries))
        (void)see_entries(&g, m->reports[report].name, "", &entries);
    bson_destroy(&book);
    return good;
}
