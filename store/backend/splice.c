#include "store/backend/splice.h"

#include "base/civil.h"
#include "base/mem.h"
#include "store/backend/copier.h"
#include "store/splice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry of the report's books, to write. */
struct entry {
    char name[STORE_ENTRY_BYTES];
    const struct range *of; /* NULL: of the report itself */
    int64_t value;
};

struct splicer {
    const struct store_splicing *s;
    const struct report *by, *report;
    struct watermarks watermarks;
    struct backfill_plan old, new, range; /* what each lacks; range: of events of the range alone */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    int64_t events, other; /* that the report had by itself, in months that are stored */
    int64_t booked_other;  /* the entry `other` of its books */
    bool was_taken;        /* it has counts of a third report */
    struct err *e;
};

/* ---- may it be done? */

/* The next line of a definition that both reports must have; NULL: there is none. Conditions may differ, and
 * the settings by which fields are made. */
static const char *next_line(const char *line)
{
    while (line != NULL && (strncmp(line, "where ", strlen("where ")) == 0 ||
                            strncmp(line, "given ", strlen("given ")) == 0)) {
        line = strchr(line, '\n');
        line = line != NULL && line[1] != '\0' ? line + 1 : NULL;
    }
    return line;
}

static bool check_shape(const struct splicer *k)
{
    const char *a = next_line(k->by->definition), *b = next_line(k->report->definition);
    while (a != NULL && b != NULL && *a != '\0') {
        size_t len = strcspn(a, "\n");
        if (len != strcspn(b, "\n") || memcmp(a, b, len) != 0)
            break;
        a = next_line(a[len] == '\n' ? a + len + 1 : a + len);
        b = next_line(b[len] == '\n' ? b + len + 1 : b + len);
    }
    bool are_equal = (a == NULL || *a == '\0') && (b == NULL || *b == '\0');
    if (k->by->newest > 0 || k->report->newest > 0)
        return err_set(
            k->e, EX_CONFIG,
            "%s keeps its newest events by whole days and series, which cannot be taken for a range: "
            "leave out --from and --to, and %s takes the whole place of %s",
            k->by->newest > 0 ? k->by->name : k->report->name, k->by->name, k->report->name);
    return are_equal ||
           err_set(k->e, EX_CONFIG,
                   "%s and %s differ in more than `where`: a range can only be taken between reports "
                   "with the same dimensions, measures, layout and sample",
                   k->by->name, k->report->name);
}

static bool find_watermarks(struct splicer *k)
{
    struct watermarks of;
    if (!store_watermarks(k->s->from, k->s->by, &k->watermarks, k->e) ||
        !store_watermarks(k->s->from, k->s->report, &of, k->e))
        return false;
    for (int s = 0; s < SPAN_COUNT; s++) {
        if (of.before_ms[s] > k->watermarks.before_ms[s])
            k->watermarks.before_ms[s] = of.before_ms[s];
    }
    return true;
}

/* Is there a start of a bucket that is kept at this time? */
static bool check_edge(const struct splicer *k, const char *what, int64_t at_ms)
{
    const struct watermarks *w = &k->watermarks;
    char iso[CIVIL_ISO_BYTES], kept[CIVIL_ISO_BYTES];
    enum span s = report_cell(k->by);
    if (at_ms == 0 || at_ms == CIVIL_END_MS)
        return true;
    while (s < SPAN_MONTH && at_ms < w->before_ms[s])
        s++;
    if (at_ms < w->before_ms[s])
        return err_set(k->e, EX_DATAERR, "%s %s: what was counted before %s has expired", what,
                       civil_iso(at_ms, iso), civil_iso(w->before_ms[s], kept));
    return span_floor(s, at_ms) == at_ms ||
           err_set(k->e, EX_DATAERR,
                   "%s %s is within a %s, and shorter buckets have expired there: give the start of a %s",
                   what, civil_iso(at_ms, iso), span_name(s), span_name(s));
}

static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct splicer *k = context;
    (void)partition;
    if (strcmp(report, k->by->name) != 0)
        return true;
    k->was_taken |= strncmp(entry, "kept.", strlen("kept.")) == 0;
    if (source[0] == '\0' && strcmp(entry, "other") == 0)
        k->booked_other = value;
    return true;
}

/* The books tell one report's other counts apart, not those of a report that has some of a third one. */
static bool read_books(struct splicer *k)
{
    if (!store_books(k->s->from, take_book, k, k->e))
        return false;
    return !k->was_taken ||
           err_set(
               k->e, EX_CONFIG,
               "%s took another report's place for a range of times, so it has counts of that: backfill a "
               "new report, and let that one take the place",
               k->by->name);
}

/* Did the report count events of times outside the range, at offsets that the other report lacks? */
static bool lacks_filled(const struct splicer *k, struct backfill_stretch *found)
{
    for (size_t i = 0; i < k->new.stretch_count; i++) {
        const struct backfill_stretch *n = &k->new.stretches[i];
        bool is_outside = false;
        for (size_t w = 0; w < n->without_count; w++) {
            const struct backfill_times *filled = &k->new.times[n->without + w];
            is_outside |= filled->from_ms < k->s->times.from_ms || filled->to_ms > k->s->times.to_ms;
        }
        for (size_t o = 0; is_outside && o < k->old.stretch_count; o++) {
            *found = k->old.stretches[o];
            if (found->position == n->position && found->from < n->to && n->from < found->to)
                return true;
        }
    }
    return false;
}

/* Make the plans, and compare them. */
static bool check_plans(struct splicer *k)
{
    const struct store_splicing *s = k->s;
    struct backfill_stretch lacking;
    if (!backfill_plan(&k->old, s->from, s->report, NULL, k->e) ||
        !backfill_plan(&k->new, s->from, s->by, NULL, k->e) ||
        !backfill_plan(&k->range, s->from, s->by, &s->times, k->e))
        return false;
    if (!s->forced && backfill_lacks(&k->range, &k->old, false, &lacking))
        return backfill_refuse(
            &k->new, &lacking, k->by->name, k->report->name,
            "run `tallyd backfill` with the same range first, or give --force if they are nowhere any more",
            k->e);
    if (backfill_lacks(&k->old, &k->new, true, &lacking) || lacks_filled(k, &lacking))
        return backfill_refuse(&k->new, &lacking, k->report->name, k->by->name,
                               "events of other times would be lost: give a range that has them, or run "
                               "`tallyd backfill` for both",
                               k->e);
    return true;
}

/* ---- the books */

static struct entry *add_entry(struct splicer *k, const struct range *of, int64_t value)
{
    k->entries = xgrow(k->entries, &k->entry_capacity, k->entry_count + 1, sizeof *k->entries);
    k->entries[k->entry_count] = (struct entry){.of = of, .value = value};
    return &k->entries[k->entry_count++];
}

static void add_kept(struct splicer *k, const struct range *of, int64_t from, int64_t to, int64_t from_ms,
                     int64_t to_ms)
{
    if (from_ms < to_ms)
        snprintf(add_entry(k, of, to)->name, STORE_ENTRY_BYTES, "kept.%" PRId64 ".%" PRId64 ".%" PRId64, from,
                 from_ms, to_ms);
}

/* Only the other report counted these offsets. */
static void note_kept(void *context, size_t position, int64_t from, int64_t to)
{
    struct splicer *k = context;
    const struct range *of = &k->new.positions[position].range;
    add_kept(k, of, from, to, 0, k->s->times.from_ms);
    add_kept(k, of, from, to, k->s->times.to_ms, CIVIL_END_MS);
}

static bool note_sources(struct splicer *k)
{
    return backfill_each_only_of(&k->new, &k->old, note_kept, k) ||
           err_set(
               k->e, EX_NOINPUT,
               "%s has only events of some times of what %s did not count: run `tallyd backfill %s` first",
               k->report->name, k->by->name, k->report->name);
}

static bool find_end(const struct splicer *k, size_t report, int64_t *end_ms)
{
    struct newest newest;
    if (!store_newest(k->s->from, report, CIVIL_END_MS, &newest, k->e))
        return false;
    if (newest.start_ms >= 0 && span_next(newest.span, newest.start_ms) > *end_ms)
        *end_ms = span_next(newest.span, newest.start_ms);
    return true;
}

/* Note the times whose counts are the other report's: up to the last time of which any of both has counts. */
static bool note_times(struct splicer *k)
{
    const struct backfill_times *own = &k->s->times;
    int64_t end_ms = 0;
    if (!find_end(k, k->s->report, &end_ms) || !find_end(k, k->s->by, &end_ms))
        return false;
    if (own->from_ms > 0)
        snprintf(add_entry(k, NULL, own->from_ms)->name, STORE_ENTRY_BYTES, "kept.0");
    if (own->to_ms < end_ms)
        snprintf(add_entry(k, NULL, end_ms)->name, STORE_ENTRY_BYTES, "kept.%" PRId64, own->to_ms);
    return true;
}

static void add_own(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct splicer *k = context;
    int64_t count = copier_events(k->by, values);
    (void)bucket_ms;
    k->events = value_add(k->events, count);
    k->other = value_add(k->other, series == STORE_SERIES_OTHER ? count : 0);
}

static bool find_own(struct splicer *k)
{
    struct scan_stats stats = {0};
    struct watermarks w;
    if (!store_watermarks(k->s->from, k->s->by, &w, k->e))
        return false;
    const struct scan scan = {.report = k->s->by,
                              .resolution = SPAN_MONTH,
                              .from_ms = w.before_ms[SPAN_MONTH],
                              .to_ms = CIVIL_END_MS,
                              .series = {.kind = SERIES_ALL},
                              .rows_max = UINT64_MAX};
    return store_scan(k->s->from, &scan, add_own, k, &stats, k->e);
}

/* Note the events of the cells that were copied, less those that the books have. */
static void note_events(struct splicer *k, const struct copier *copier)
{
    snprintf(add_entry(k, NULL, value_add(copier->events, -k->events))->name, STORE_ENTRY_BYTES,
             "kept.events");
    int64_t other = value_add(k->booked_other, value_add(copier->other, -k->other));
    snprintf(add_entry(k, NULL, other)->name, STORE_ENTRY_BYTES, "other");
}

static bool end(const struct splicer *k, struct store_replaced *done)
{
    struct store_book *books = xcalloc(k->entry_count, sizeof *books);
    for (size_t i = 0; i < k->entry_count; i++) {
        const struct entry *n = &k->entries[i];
        books[i] = (struct store_book){.source = n->of != NULL ? n->of->source : "",
                                       .partition = n->of != NULL ? n->of->partition : "",
                                       .entry = n->name,
                                       .report = 0,
                                       .value = n->value};
    }
    bool good = store_splice_end(k->s->to, books, k->entry_count, k->by->name, k->report->name,
                                 k->s->drops_old, done, k->e);
    free(books);
    return good;
}

/* ---- the counts */

static bool go_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context, (void)what, (void)done, (void)total;
    return true;
}

static bool copy_times(struct copier *copier, size_t report, int64_t begin_ms, int64_t end_ms)
{
    copier->begin_ms = begin_ms;
    copier->end_ms = end_ms;
    return begin_ms >= end_ms || copier_report(copier, report, 0);
}

static bool copy_counts(struct splicer *k)
{
    const struct store_splicing *s = k->s;
    struct copier copier = {
        .from = s->from, .to = s->to, .watermarks = &k->watermarks, .goes_on = go_on, .e = k->e};
    copier_init(&copier, s->to->reports, 1);
    bool good = copy_times(&copier, s->by, s->times.from_ms, s->times.to_ms) &&
                copy_times(&copier, s->report, 0, s->times.from_ms) &&
                copy_times(&copier, s->report, s->times.to_ms, CIVIL_END_MS);
    if (good)
        note_events(k, &copier);
    copier_fini(&copier);
    return good;
}

bool store_splice(const struct store_splicing *s, struct store_replaced *done, struct err *e)
{
    struct splicer k = {
        .s = s, .by = &s->from->reports[s->by], .report = &s->from->reports[s->report], .e = e};
    bool good = check_shape(&k) && find_watermarks(&k) && check_edge(&k, "--from", s->times.from_ms) &&
                check_edge(&k, "--to", s->times.to_ms) &&
                store_splice_begin(s->to, k.report->name, &k.watermarks, e) && read_books(&k) &&
                check_plans(&k) && note_sources(&k) && note_times(&k) && find_own(&k) && copy_counts(&k) &&
                end(&k, done);
    backfill_plan_fini(&k.old);
    backfill_plan_fini(&k.new);
    backfill_plan_fini(&k.range);
    free(k.entries);
    return good;
}
