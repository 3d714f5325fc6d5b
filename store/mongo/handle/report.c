#include "store/mongo/handle/report.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

/* Is the name one of ours, or one of ours with underscores behind it? */
static bool is_taken(const char *name)
{
    static const char *const names[] = {"total",    "weekly",  "daily",    "hourly", "minute", "second",
                                        "metadata", "applied", "modified", "v",      "date",   "other"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(names[i], name, len) == 0 && name[len + strspn(name + len, "_")] == '\0')
            return true;
    }
    return false;
}

static void name_fields(struct mongo_report *more, const struct report *r)
{
    more->plain = -1;
    for (size_t i = 0; i < r->measure_count; i++) {
        if (more->plain < 0 && r->measures[i].kind == MEASURE_COUNT)
            more->plain = (int)i;
        else
            snprintf(more->fields[i], sizeof more->fields[i], "%s%s.", r->measures[i].name,
                     is_taken(r->measures[i].name) ? "_" : "");
    }
    for (size_t d = 0; d < r->dimension_count; d++) {
        struct text name = {0};
        const char *own = r->dimensions[d].name;
        text_percent(&name, slice_text(own), ".$");
        snprintf(more->dimensions[d], sizeof more->dimensions[d], "metadata.%s%s", name.ptr,
                 is_taken(own) ? "_" : "");
        text_fini(&name);
    }
}

/* The name "system" gets a generation, too, since databases have collections of their own below "system". */
void mongo_report_key(const struct report *r, char key[MONGO_NAME_BYTES])
{
    bool is_plain = r->generation == 1 && strcmp(r->name, "system") != 0;
    if (is_plain)
        snprintf(key, MONGO_NAME_BYTES, "%s", r->name);
    else
        snprintf(key, MONGO_NAME_BYTES, "%s~%d", r->name, r->generation);
}

bool mongo_read_report(const bson_t *document, struct report *r, struct err *e)
{
    bson_iter_t name, generation, definition;
    *r = (struct report){0};
    if (!bson_iter_init_find(&name, document, "name") || !BSON_ITER_HOLDS_UTF8(&name) ||
        !bson_iter_init_find(&generation, document, "generation") ||
        !bson_iter_init_find(&definition, document, "definition") || !BSON_ITER_HOLDS_UTF8(&definition))
        return err_set(e, EX_DATAERR, "a report of the database is damaged; restore it from a backup");
    return report_read(r, slice_text(bson_iter_utf8(&name, NULL)), (int)bson_iter_as_int64(&generation),
                       slice_text(bson_iter_utf8(&definition, NULL)), e);
}

void mongo_report_init(struct mongo_report *more, const struct report *r, const char *key, bool has_zeros,
                       bool is_decimal)
{
    *more = (struct mongo_report){.series_found = -1, .is_decimal = is_decimal};
    if (key != NULL)
        snprintf(more->key, sizeof more->key, "%s", key);
    else
        mongo_report_key(r, more->key);
    mongo_names_init(&more->names);
    name_fields(more, r);
    more->has_zeros = has_zeros && more->plain >= 0;
}

void mongo_report_fini(struct mongo_report *more)
{
    if (more->rolled != NULL)
        free(more->rolled->list);
    free(more->rolled);
    for (size_t t = 0; t < COUNT_OF(more->waits); t++)
        free(more->waits[t].list);
    for (size_t i = 0; i < REPORT_MEASURES_MAX; i++) {
        if (more->hints[i] != NULL) {
            free(more->hints[i]->listed);
            free(more->hints[i]->series);
        }
        free(more->hints[i]);
    }
    series_map_fini(&more->map);
    mongo_names_fini(&more->names);
    for (size_t k = 0; k < COUNT_OF(more->sweep_at); k++)
        text_fini(&more->sweep_at[k]);
}
