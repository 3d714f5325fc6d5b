#include "query/missed.h"

#include "base/civil.h"
#include "base/units.h"

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

/* Keep of `filled` what the stretch has, too. */
static void meet(struct missed *missed, const struct backfill_plan *plan, const struct backfill_stretch *s)
{
    struct backfill_times most = {0};
    for (size_t i = 0; i < s->without_count; i++) {
        const struct backfill_times *t = &plan->times[s->without + i];
        if (t->to_ms - t->from_ms > most.to_ms - most.from_ms)
            most = *t;
    }
    if (missed->sources > 0) {
        most.from_ms = most.from_ms > missed->filled.from_ms ? most.from_ms : missed->filled.from_ms;
        most.to_ms = most.to_ms < missed->filled.to_ms ? most.to_ms : missed->filled.to_ms;
    }
    missed->filled = most.from_ms < most.to_ms ? most : (struct backfill_times){0};
}

static bool add_up(struct store *st, size_t report, struct missed *missed, struct err *e)
{
    struct backfill_plan plan = {0};
    bool good = backfill_plan(&plan, st, report, NULL, e);
    *missed = (struct missed){.others = plan.others};
    const struct backfill_stretch *last = NULL;
    /* Elsewhere positions may be ahead of the books, and daemons with other reports may count beside. */
    missed->is_behind = good && plan.is_behind && st->reader->moment == NULL;
    for (size_t i = 0; good && i < plan.stretch_count; i++) {
        const struct backfill_stretch *s = &plan.stretches[i];
        if (s->begun > 0)
            continue;
        meet(missed, &plan, s);
        missed->sources += last == NULL || s->position != last->position;
        missed->offsets += s->to - s->from;
        last = s;
    }
    backfill_plan_fini(&plan);
    return good;
}

/* Can an answer that only ends empty be empty for that? It can if the report counts no more, or has later
 * counts: otherwise there were no events. */
static bool can_end(struct store *st, size_t report, const struct missed *missed, int64_t to_ms, bool *can,
                    struct err *e)
{
    struct newest newest;
    *can = missed->is_behind;
    if (*can || missed->sources == 0)
        return true;
    if (!store_newest(st, report, CIVIL_END_MS, &newest, e))
        return false;
    *can = newest.start_ms >= to_ms;
    return true;
}

bool missed_find(struct store *st, size_t report, const struct missed_answer *a, struct missed_cache *cache,
                 int64_t now_ms, struct missed *missed, struct err *e)
{
    const char *name = st->reports[report].name;
    bool can = a->where != MISSED_NOWHERE;
    *missed = (struct missed){0};
    if (!can && !a->is_of_some)
        return true;
    if (cache == NULL || !look_up(cache, name, now_ms, missed)) {
        if (!add_up(st, report, missed, e))
            return false;
        if (cache != NULL)
            keep(cache, name, now_ms, missed);
    }
    if (a->where == MISSED_AT_END && !can_end(st, report, missed, a->of.to_ms, &can, e))
        return false;
    const int64_t others = a->is_of_some ? missed->others : 0;
    if (!can || (missed->filled.from_ms <= a->of.from_ms && a->of.to_ms <= missed->filled.to_ms))
        *missed = (struct missed){0};
    missed->others = others;
    return true;
}

void missed_note_others(const struct missed *missed, struct text *out)
{
    char number[UNITS_NUMBER_BYTES];
    if (missed->others > 0)
        text_printf(out,
                    "%s events of series beyond `series_max` are counted as " STORE_OTHER_KEY
                    ": this answer may lack some of them",
                    units_number(missed->others, number));
}

void missed_note(const struct missed *missed, struct slice report, struct text *out)
{
    char number[UNITS_NUMBER_BYTES], from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    if (missed->sources == 0)
        return;
    text_printf(out,
                "%.*s was not configured when %s bytes (of a topic: records) of %zu source%s were counted",
                SLICE_ARGS(report), units_number(missed->offsets, number), missed->sources,
                missed->sources > 1 ? "s" : "");
    if (missed->is_behind)
        text_puts(out, ", the newest among them: it counts no more");
    if (missed->filled.to_ms > 0)
        text_printf(out, "; of these it has only events from %s to %s",
                    civil_iso(missed->filled.from_ms, from), civil_iso(missed->filled.to_ms, to));
    text_puts(out, "; `tallyd backfill` counts what the sources still hold");
}
