/* Finds zones by their names in the system's tz database. */
#include "base/library.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/zone.h"

#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define DATABASE   "/usr/share/zoneinfo"
#define LIST       "tzdata.zi" /* the database's text file, which lists all names */
#define LINE_BYTES 256

#define FUNCTIONS(X)              \
    X(g_time_zone_new_identifier) \
    X(g_time_zone_find_interval) X(g_time_zone_get_offset) X(g_time_zone_unref)
LIBRARY(glib, FUNCTIONS, "libglib-2.0.so.0", "libglib2.0-0");

/* A zone that was loaded before. */
struct known {
    struct zone zone;
    struct known *next;
};

static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;
static struct known *known_zones;
static const char **names; /* names of all zones; NULL at the end */

/* The name in a line: "Z Europe/Berlin 0:53 …" is a zone, "L Europe/Berlin Arctic/Longyearbyen" an alias. */
static const char *name_of_line(char *line)
{
    char *rest, *kind = strtok_r(line, " \n", &rest), *first = strtok_r(NULL, " \n", &rest);
    if (kind == NULL || first == NULL)
        return NULL;
    if (strcmp(kind, "L") == 0)
        return strtok_r(NULL, " \n", &rest);
    return strcmp(kind, "Z") == 0 ? first : NULL;
}

static bool read_names(struct err *e)
{
    const char *where = getenv("TZDIR"), *name;
    char path[512], line[LINE_BYTES];
    size_t count = 0, capacity = 0;
    snprintf(path, sizeof path, "%s/" LIST, where != NULL ? where : DATABASE);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return err_set(e, EX_OSFILE,
                       "time zones are not known here: there is no %s: install the package tzdata", path);
    while (fgets(line, sizeof line, f) != NULL) {
        if ((name = name_of_line(line)) == NULL)
            continue;
        names = xgrow(names, &capacity, count + 2, sizeof *names);
        names[count++] = xstrdup(name);
        names[count] = NULL;
    }
    fclose(f);
    return names != NULL || err_set(e, EX_OSFILE, "%s names no time zones: install the package tzdata", path);
}

/* Is `given` the last part of the name, as Berlin in Europe/Berlin? Ignores case. */
static bool is_place(struct slice given, const char *name)
{
    const char *slash = strrchr(name, '/'), *place = slash != NULL ? slash + 1 : name;
    return strlen(place) == given.len && given.len > 0 && strncasecmp(place, given.ptr, given.len) == 0;
}

static const char *name_found(struct slice given, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    const char *place = NULL;
    for (const char **name = names; *name != NULL; name++) {
        if (slice_is(given, *name))
            return *name;
        if (is_place(given, *name))
            place = *name;
    }
    suggest_hint(place != NULL ? slice_text(place) : given, names, hint);
    err_set(e, EX_USAGE,
            "unknown time zone %s%s: expected a name of the tz database, as Europe/Berlin, or UTC",
            suggest_quote(given, quoted), hint);
    return NULL;
}

/* The first second of the interval after the one that holds `from`. Pre: `from` is not in the last one. */
static int64_t change_after(GTimeZone *tz, int64_t from, int64_t end)
{
    int here = lib.g_time_zone_find_interval(tz, G_TIME_TYPE_UNIVERSAL, from);
    while (end - from > 1) {
        int64_t middle = from + (end - from) / 2;
        if (lib.g_time_zone_find_interval(tz, G_TIME_TYPE_UNIVERSAL, middle) == here)
            from = middle;
        else
            end = middle;
    }
    return end;
}

static void read_stretches(GTimeZone *tz, struct zone *z)
{
    struct zone_stretch *all = NULL;
    size_t capacity = 0;
    int64_t at = 0, end = ZONE_END_MS / SECOND_MS;
    int last = lib.g_time_zone_find_interval(tz, G_TIME_TYPE_UNIVERSAL, end);
    for (bool is_last = false; !is_last;) {
        int interval = lib.g_time_zone_find_interval(tz, G_TIME_TYPE_UNIVERSAL, at);
        int64_t offset_ms = lib.g_time_zone_get_offset(tz, interval) * (int64_t)SECOND_MS;
        if (z->count == 0 ||
            all[z->count - 1].offset_ms != offset_ms) { /* another offset, not just another name */
            all = xgrow(all, &capacity, z->count + 1, sizeof *all);
            if (z->count > 0)
                all[z->count - 1].to_ms = at * SECOND_MS;
            all[z->count] =
                (struct zone_stretch){z->count > 0 ? at * SECOND_MS : INT64_MIN, INT64_MAX, offset_ms};
            z->count++;
        }
        is_last = interval == last;
        if (!is_last)
            at = change_after(tz, at, end);
    }
    z->stretches = all;
}

static const struct zone *load(const char *name, struct err *e)
{
    if (!library_load(&glib, e))
        return NULL;
    GTimeZone *tz = lib.g_time_zone_new_identifier(name);
    if (tz == NULL) {
        err_set(e, EX_OSFILE, "the time zone %s cannot be read: reinstall the package tzdata", name);
        return NULL;
    }
    struct known *k = xcalloc(1, sizeof *k);
    k->zone = (struct zone){.name = name, .end_ms = ZONE_END_MS};
    read_stretches(tz, &k->zone);
    lib.g_time_zone_unref(tz);
    k->next = known_zones;
    known_zones = k;
    return &k->zone;
}

static const struct zone *find(struct slice name, struct err *e)
{
    for (struct known *k = known_zones; k != NULL; k = k->next) {
        if (slice_is(name, k->zone.name))
            return &k->zone;
    }
    if (names == NULL && !read_names(e))
        return NULL;
    const char *found = name_found(name, e);
    return found != NULL ? load(found, e) : NULL;
}

const struct zone *zone_find(struct slice name, struct err *e)
{
    if (slice_is(name, zone_utc.name))
        return &zone_utc;
    pthread_mutex_lock(&finding);
    const struct zone *z = find(name, e);
    pthread_mutex_unlock(&finding);
    return z;
}
