#include "query/missed.h"

#include "base/units.h"
#include "store/backfill.h"

#include <stdio.h>
#include <string.h>

void missed_cache_init(struct missed_cache *cache)
{
    *cache = (struct missed_cache){0};
    pthread_mutex_init(&cache->lock, NULL);
}

void missed_cache_fini(struct missed_cache *cache)
{
    pthread_mutex_destroy(&cache->lock);
}

/* False: the cache has no finding that is young enough. */
static bool look_up(struct missed_cache *cache, const char *report, int64_t now_ms, struct missed *missed)
{
    bool is_found = false;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; !is_found && i < MISSED_CACHE_SIZE; i++) {
        int64_t age_ms = now_ms - cache->entries[i].at_ms;
        is_found = cache->entries[i].at_ms != 0 && age_ms >= 0 && age_ms < MISSED_CACHE_MS &&
                   strcmp(cache->entries[i].report, report) == 0;
        if (is_found)
            *missed = cache->entries[i].missed;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_found;
}

/* Replace the report's finding, or else the oldest one. */
static void keep(struct missed_cache *cache, const char *report, int64_t now_ms, const struct missed *missed)
{
    size_t place = 0;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < MISSED_CACHE_SIZE; i++) {
        if (strcmp(cache->entries[i].report, report) == 0) {
            place = i;
            break;
        }
        if (cache->entries[i].at_ms < cache->entries[place].at_ms)
            place = i;
    }
    snprintf(cache->entries[place].report, sizeof cache->entries[place].report, "%s", report);
    cache->entries[place].at_ms = now_ms;
    cache->entries[place].missed = *missed;
    pthread_mutex_unlock(&cache->lock);
}

static bool add_up(struct store *st, size_t report, struct missed *missed, struct err *e)
{
    struct backfill_plan plan = {0};
    *missed = (struct missed){0};
    bool good = backfill_plan(&plan, st, report, e);
    const struct backfill_stretch *last = NULL;
    for (size_t i = 0; good && i < plan.stretch_count; i++) {
        const struct backfill_stretch *s = &plan.stretches[i];
        if (s->begun > 0)
            continue;
        missed->sources += last == NULL || s->position != last->position;
        missed->offsets += s->to - s->from;
        missed->can_be_filled |= !st->is_shared || plan.positions[s->position].range.partition[0] == '\0';
        last = s;
    }
    backfill_plan_fini(&plan);
    return good;
}

bool missed_find(struct store *st, size_t report, struct missed_cache *cache, int64_t now_ms,
                 struct missed *missed, struct err *e)
{
    const char *name = st->reports[report].name;
    if (cache != NULL && look_up(cache, name, now_ms, missed))
        return true;
    if (!add_up(st, report, missed, e))
        return false;
    if (cache != NULL)
        keep(cache, name, now_ms, missed);
    return true;
}

void missed_note(const struct missed *missed, struct slice report, struct text *out)
{
    char number[UNITS_NUMBER_BYTES];
    if (missed->sources == 0)
        return;
    text_printf(out,
                "%.*s was not configured when %s bytes (of a topic: records) of %zu source%s were counted%s",
                SLICE_ARGS(report), units_number(missed->offsets, number), missed->sources,
                missed->sources > 1 ? "s" : "",
                missed->can_be_filled ? "; `tallyd backfill` counts what the sources still hold" : "");
}
