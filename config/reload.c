#include "config/reload.h"

#include "config/keys.h"

#include <string.h>

static void list(struct text *out, const char *section, const char *name, const char *key, const char *more)
{
    text_printf(out, "%s%s%s%s%s%s%s", out->len > 0 ? ", " : "", section, name[0] != '\0' ? "." : "", name,
                key[0] != '\0' ? "." : "", key, more);
}

/* False for strings and lists: other threads may hold pointers to them. */
static bool is_plain(const struct key *k)
{
    return k->type == KEY_SIZE || k->type == KEY_DURATION || k->type == KEY_INTEGER ||
           k->type == KEY_BOOLEAN || k->type == KEY_LOG_LEVEL || k->type == KEY_VALIDATION;
}

static void take(const struct key *k, struct slice value, const char *name, void *base, struct reload *found)
{
    struct err e = {0};
    struct text more = {0};
    ASSERT(is_plain(k));
    bool good = keys_parse(k, value, (struct slice){0}, base, &e);
    ASSERT(good);
    text_printf(&more, "=%.*s", SLICE_ARGS(value));
    list(&found->taken, k->section, name, k->name, more.ptr);
    text_fini(&more);
}

/* Compares the keys of a section, or of one source or report, and applies those that are reloadable. */
static void take_keys(const char *section, const char *name, void *running, const void *next,
                      struct reload *found)
{
    struct text before = {0}, after = {0};
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) != 0)
            continue;
        text_clear(&before);
        text_clear(&after);
        keys_print(k, running, &before);
        keys_print(k, next, &after);
        if (slice_equal(text_slice(&before), text_slice(&after)))
            continue;
        if (k->reload)
            take(k, text_slice(&after), name, running, found);
        else
            list(&found->restart, section, name, k->name, "");
    }
    text_fini(&before);
    text_fini(&after);
}

/* The source or report at `i`, and its name; NULL: there are not so many. */
static void *entry_at(const struct config *c, const char *section, size_t i, const char **name)
{
    bool is_source = strcmp(section, "sources") == 0;
    if (i >= (is_source ? c->source_count : c->report_count))
        return NULL;
    *name = is_source ? c->sources[i].name : c->reports[i].name;
    return is_source ? (void *)&c->sources[i] : (void *)&c->reports[i];
}

static void *find_entry(const struct config *c, const char *section, const char *name)
{
    const char *other;
    void *entry;
    for (size_t i = 0; (entry = entry_at(c, section, i, &other)) != NULL; i++) {
        if (strcmp(other, name) == 0)
            break;
    }
    return entry;
}

/* Compares all sources, or all reports. */
static void take_entries(const char *section, struct config *running, const struct config *next,
                         struct reload *found)
{
    const char *name;
    const void *entry;
    for (size_t i = 0; (entry = entry_at(next, section, i, &name)) != NULL; i++) {
        void *old = find_entry(running, section, name);
        if (old == NULL)
            list(&found->restart, section, name, "", " (new)");
        else
            take_keys(section, name, old, entry, found);
    }
    for (size_t i = 0; entry_at(running, section, i, &name) != NULL; i++) {
        if (find_entry(next, section, name) == NULL)
            list(&found->restart, section, name, "", " (gone)");
    }
}

void reload_take(struct config *running, const struct config *next, struct reload *found)
{
    *found = (struct reload){0};
    text_puts(&found->taken, "");
    text_puts(&found->restart, "");
    for (const struct key_section *s = keys_sections; s->name != NULL; s++) {
        if (strcmp(s->name, "sources") == 0 || strcmp(s->name, "reports") == 0)
            take_entries(s->name, running, next, found);
        else
            take_keys(s->name, "", running, next, found);
    }
}
