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

static struct config_source *find_source(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->source_count; i++) {
        if (strcmp(c->sources[i].name, name) == 0)
            return &c->sources[i];
    }
    return NULL;
}

static struct report *find_report(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->report_count; i++) {
        if (strcmp(c->reports[i].name, name) == 0)
            return &c->reports[i];
    }
    return NULL;
}

static void take_sources(struct config *running, const struct config *next, struct reload *found)
{
    for (size_t i = 0; i < next->source_count; i++) {
        const struct config_source *source = &next->sources[i];
        struct config_source *old = find_source(running, source->name);
        if (old == NULL)
            list(&found->restart, "sources", source->name, "", " (new)");
        else
            take_keys("sources", source->name, old, source, found);
    }
    for (size_t i = 0; i < running->source_count; i++) {
        if (find_source(next, running->sources[i].name) == NULL)
            list(&found->restart, "sources", running->sources[i].name, "", " (gone)");
    }
}

static void take_reports(struct config *running, const struct config *next, struct reload *found)
{
    for (size_t i = 0; i < next->report_count; i++) {
        const struct report *report = &next->reports[i];
        struct report *old = find_report(running, report->name);
        if (old == NULL)
            list(&found->restart, "reports", report->name, "", " (new)");
        else
            take_keys("reports", report->name, old, report, found);
    }
    for (size_t i = 0; i < running->report_count; i++) {
        if (find_report(next, running->reports[i].name) == NULL)
            list(&found->restart, "reports", running->reports[i].name, "", " (gone)");
    }
}

void reload_take(struct config *running, const struct config *next, struct reload *found)
{
    *found = (struct reload){0};
    text_puts(&found->taken, "");
    text_puts(&found->restart, "");
    for (const struct key_section *s = keys_sections; s->name != NULL; s++) {
        if (strcmp(s->name, "sources") == 0)
            take_sources(running, next, found);
        else if (strcmp(s->name, "reports") == 0)
            take_reports(running, next, found);
        else
            take_keys(s->name, "", running, next, found);
    }
}
