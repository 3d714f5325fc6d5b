#include "config/config_read.h"

#include "base/mem.h"
#include "config/keys.h"
#include "config/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct config *new_config(void)
{
    struct config *c = xcalloc(1, sizeof *c);
    struct err e;
    keys_set_defaults(KEY_OF_config, c);
    decode_init(&c->any_line);
    c->any_line.derive = &c->derive;
    bool good = decode_finish(&c->any_line, &e);
    ASSERT(good);
    return c;
}

static void add_default_source(struct config *c)
{
    c->sources = xrealloc(c->sources, sizeof *c->sources);
    c->sources[c->source_count++] = (struct config_source){.name = xstrdup("access"), .decode = c->any_line};
    keys_set_defaults(KEY_OF_config_source, c->sources);
}

static void add_default_report(struct config *c, const char *name, const char *dimension)
{
    struct err e = {0};
    struct report *r = &c->reports[c->report_count++];
    bool good = report_init(r, slice_text(name), 1, &e) &&
                (dimension == NULL || report_add_dimension(r, slice_text(dimension), &e)) &&
                report_finish(r, &e);
    ASSERT(good);
    keys_set_defaults(KEY_OF_report, r);
}

/* Adds the built-in source if none is configured, and the built-in reports if none is configured. */
static void complete(struct config *c)
{
    if (c->source_count == 0)
        add_default_source(c);
    if (c->report_count > 0)
        return;
    c->reports = xrealloc(c->reports, 2 * sizeof *c->reports);
    add_default_report(c, "site", NULL);
    add_default_report(c, "pages", "path");
}

struct config *config_default(void)
{
    struct config *c = new_config();
    complete(c);
    return c;
}

struct config *config_parse(struct slice bytes, const char *path, struct text *problems)
{
    struct config *c = new_config();
    struct document d;
    c->file = xstrdup(path);
    if (document_open(&d, bytes, path, problems))
        load_document(c, &d);
    document_close(&d);
    if (d.problem_count > 0) {
        config_free(c);
        return NULL;
    }
    complete(c);
    return c;
}

/* Reads up to one byte more than the limit, so that config_parse() detects a file that is too large. */
static bool read_file(const char *path, struct text *bytes)
{
    char buf[16384];
    size_t n;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (bytes->len <= CONFIG_FILE_BYTES_MAX && (n = fread(buf, 1, sizeof buf, file)) > 0)
        text_add(bytes, buf, n);
    bool good = ferror(file) == 0;
    int why = errno;
    fclose(file);
    errno = why;
    return good;
}

struct config *config_load(const char *path, struct text *problems, int *code)
{
    struct text bytes = {0};
    struct config *c = NULL;
    *code = EX_CONFIG;
    if (read_file(path, &bytes)) {
        c = config_parse(text_slice(&bytes), path, problems);
    } else {
        int why = errno;
        text_printf(problems, "%s: cannot read: %s\n", path, strerror(why));
        *code = why == EACCES ? EX_NOPERM : EX_NOINPUT;
    }
    text_fini(&bytes);
    return c;
}

static void forget_reference(struct config *c, const char *key)
{
    for (size_t i = 0; i < c->reference_count; i++) {
        if (strcmp(c->references[i].key, key) != 0)
            continue;
        free(c->references[i].key);
        free(c->references[i].text);
        c->references[i] = c->references[--c->reference_count];
        return;
    }
}

bool config_set_store(struct config *c, const char *url, struct err *e)
{
    const struct key *k = keys_find("store", slice_text("url"));
    if (!keys_parse(k, slice_text(url), (struct slice){0}, c, e))
        return false;
    forget_reference(c, "store.url");
    return true;
}
