#include "daemon/file/known.h"

#include "base/mem.h"
#include "daemon/source.h"

#include <stdlib.h>
#include <string.h>

static bool note_position(void *context, const struct position *p)
{
    struct known *k = context;
    struct known_file f = {.range = p->range};
    if (p->range.partition[0] != '\0')
        return true; /* of a topic */
    if (!identity_parse(slice_text(p->range.source), &f.first))
        f.first.len = 0;
    if (!source_head(&p->range, &f.head))
        f.head = f.first;
    f.range.from = f.range.to;
    k->files = xgrow(k->files, &k->capacity, k->count + 1, sizeof *k->files);
    k->files[k->count++] = f;
    (void)index_add(&k->by_source, index_hash_text(f.range.source));
    return true;
}

static bool note_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct known_file *f;
    if (report[0] != '\0' || partition[0] != '\0' || strcmp(entry, STORE_STATE_ENTRY) != 0 ||
        (f = known_find(context, source)) == NULL)
        return true;
    f->state = (enum range_state)(value % KNOWN_HOST);
    f->host = value / KNOWN_HOST;
    return true;
}

bool known_read(struct known *k, struct store *st, struct err *e)
{
    *k = (struct known){0};
    return store_positions(st, note_position, k, e) && store_books(st, note_book, k, e);
}

void known_fini(struct known *k)
{
    free(k->files);
    index_fini(&k->by_source);
    *k = (struct known){0};
}

struct known_file *known_find(const struct known *k, const char *source)
{
    uint64_t hash = index_hash_text(source);
    size_t at = hash;
    uint32_t number;
    while ((number = index_next(&k->by_source, hash, &at)) != 0) {
        if (strcmp(k->files[number - 1].range.source, source) == 0)
            return &k->files[number - 1];
    }
    return NULL;
}
