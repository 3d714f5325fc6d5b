/* missed.h - the note that a report did not count all records of its sources: it was configured later, or not
 * all the time. An answer has this note if it begins empty, or if it is empty at a time before one with
 * counts: its zeros may be no counts. An answer that only ends empty has it if the report counts no more, or
 * has later counts: otherwise there were no events. In PromQL that is the answer of a range. Called by
 * query_run() and prom_api.c.
 * An answer of some series also has a note if events of further series went to (other): these may be among
 * them.
 *
 * Unknown: whether lines were written that no daemon has read yet. The store does not know them; the daemon
 *          says how far it is behind (/metrics).
 *
 * Cost   : it reads all positions and books of the store. Callers that are asked often share a cache.
 * Threads: any may use a cache.
 * Errors : those of the store.
 */
#pragma once

#include "base/text.h"
#include "store/backfill.h"

#include <pthread.h>

#define MISSED_CACHE_MS   10000 /* a cached finding is used for so long */
#define MISSED_CACHE_SIZE 32    /* reports in the cache; further ones replace the oldest */

/* The times at which an answer has no events, as far as that may be due to missed records. */
enum missed_where { MISSED_NOWHERE, MISSED_AT_END, MISSED_BEFORE };

/* Records that the report did not count. */
struct missed {
    size_t sources;               /* 0: it counted all */
    int64_t offsets;              /* bytes of files, or records of topics */
    bool is_behind;               /* these include the newest: it counts no more. Only in an embedded store */
    struct backfill_times filled; /* all events of these times were counted nevertheless; 0: there are none */
    int64_t others; /* events of series beyond series_max, if the answer is of some series only */
};

struct missed_cache {
    pthread_mutex_t lock;
    struct {
        char report[REPORT_NAME_BYTES];
        int64_t at_ms; /* time of the finding; 0: there is none */
        struct missed missed;
    } entries[MISSED_CACHE_SIZE];
};

void missed_cache_init(struct missed_cache *cache);
void missed_cache_fini(struct missed_cache *cache);

/* An answer: its times, where it is empty, and whether it is of some series only. */
struct missed_answer {
    struct backfill_times of;
    enum missed_where where;
    bool is_of_some;
};
/* Find out of a report of the store, for an answer. `cache` may be NULL. */
bool missed_find(struct store *st, size_t report, const struct missed_answer *a, struct missed_cache *cache,
                 int64_t now_ms, struct missed *missed, struct err *e) MUST_CHECK;
/* Adds the note of series that went to (other), a sentence without its end; nothing if there are none. */
void missed_note_others(const struct missed *missed, struct text *out);
/* Adds the note, a sentence without its end; nothing if the report counted all. */
void missed_note(const struct missed *missed, struct slice report, struct text *out);
