#include "daemon/file/known.h"

#include "base/mem.h"
#include "daemon/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known_file *add_file(struct known *k, const struct range *r)
{
    k->files = xgrow(k->files, &k->capacity, k->count + 1, sizeof *k->files);
    struct known_file *f = &k->files[k->count++];
    *f = (struct known_file){.source = xstrdup(r->source), .label = xstrdup(r->label)};
    if (!identity_parse(slice_text(r->source), &f->first))
        f->first.len = 0;
    f->head = f->first;
    (void)index_add(&k->by_source, index_hash_text(f->source));
    return f;
}

static void set_state(struct known_file *f, int64_t value)
{
    f->state = (enum range_state)(value % KNOWN_HOST);
    f->host = value / KNOWN_HOST;
}

void known_note(struct known *k, const struct range *r)
{
    struct identity head;
    if (r->partition[0] != '\0')
        return; /* of a topic */
    struct known_file *f = known_find(k, r->source);
    if (f == NULL)
        f = add_file(k, r);
    if (strcmp(f->label, r->label) != 0) {
        free(f->label);
        f->label = xstrdup(r->label);
    }
    f->to = r->to;
    f->tail_hash = r->tail_hash;
    f->tail_len = r->tail_len;
    f->latest_ms = r->latest_ms;
    if (source_head(r, &head))
        f->head = head;
    if (r->state != RANGE_UNCHANGED)
        set_state(f, r->state);
}

static bool note_position(void *context, const struct position *p)
{
    known_note(context, &p->range);
    return true;
}

static bool note_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct known_file *f;
    if (report[0] == '\0' && partition[0] == '\0' && strcmp(entry, STORE_STATE_ENTRY) == 0 &&
        (f = known_find(context, source)) != NULL)
        set_state(f, value);
    return true;
}

bool known_read(struct known *k, struct store *st, struct err *e)
{
    *k = (struct known){0};
    return store_positions(st, note_position, k, e) && store_books(st, note_book, k, e);
}

void known_fini(struct known *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->files[i].source);
        free(k->files[i].label);
    }
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
        if (strcmp(k->files[number - 1].source, source) == 0)
            return &k->files[number - 1];
    }
    return NULL;
}

void known_range(const struct known_file *f, struct range *r)
{
    *r = (struct range){.from = f->to,
                        .to = f->to,
                        .tail_hash = f->tail_hash,
                        .tail_len = f->tail_len,
                        .latest_ms = f->latest_ms};
    snprintf(r->source, sizeof r->source, "%s", f->source);
    snprintf(r->label, sizeof r->label, "%s", f->label);
    if (f->head.len > 0)
        source_set_head(r, f->head);
}
