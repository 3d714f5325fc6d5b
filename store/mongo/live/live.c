#include "store/mongo/live/live.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/live/groups.h"
#include "store/mongo/live/hints.h"
#include "store/mongo/live/minutes.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT_MAX     1000 /* series of an answer */
#define DOCUMENTS_MAX 4000 /* beyond it, a scan is as good */
#define AT_ONCE       4    /* series of a group that are read in one turn */
#define TURNS_MAX     8
#define SUM_MAX       (INT64_MAX / 2) /* a greater sum may be saturated */

/* Which batches documents have: by slot, the number of the last one. A slot's batches are applied one after
 * the other (docs/LEDGER.md). So a document with a slot's batch has all earlier ones of the slot that concern
 * it. */
struct applied {
    int64_t last[MONGO_SLOTS]; /* 0: none */
    bool is_odd;               /* a slot has a name that this version does not know */
};

/* A series or a group, by its value. */
struct entry {
    int64_t value;
    uint32_t number;  /* of the series, or the group */
    struct slice key; /* of a series; set when the answer is sorted */
};

struct live {
    struct mongo_store *m;
    const struct store_top *what;
    const struct mongo_kind *kind; /* of the documents */
    struct scan_stats *stats;
    struct mongo_hints *hints;
    char top[MONGO_NAME_BYTES], documents[MONGO_NAME_BYTES];    /* collections */
    char sums_path[MEASURE_NAME_BYTES + 32];                    /* "open.sums.hits" */
    char value_path[MEASURE_NAME_BYTES + MONGO_PATH_BYTES + 8]; /* "hourly.13" */
    struct text key;
    /* the period's document, as last read */
    bool is_whole;
    int64_t sums[MONGO_GROUPS];
    struct applied has;
    /* the documents read of series */
    struct entry *entries;
    size_t count, capacity;
    int64_t got[MONGO_GROUPS];   /* sums of their values */
    uint32_t next[MONGO_GROUPS]; /* hints of the group that were asked for */
    struct applied needs;
};

/* ---- which batches documents have */

/* Merges the `applied` of a document. */
static void applied_add(struct applied *a, const bson_t *document)
{
    bson_iter_t of;
    for (bool more = mongo_begin_members(document, "applied", &of); more && bson_iter_next(&of);) {
        const size_t slot = mongo_slot_number(bson_iter_key(&of));
        const int64_t number = bson_iter_as_int64(&of);
        if (slot == MONGO_SLOTS)
            a->is_odd = true;
        else if (number > a->last[slot])
            a->last[slot] = number;
    }
}

/* Merges the batches that are done, by ledger and seats: every document has those. */
static bool applied_done(struct applied *a, struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        struct mongo_open open;
        const int64_t done = mongo_open_of(&ledger, slot, &open) ? open.prev : mongo_seq_of(&ledger, slot);
        if (done > a->last[i])
            a->last[i] = done;
    }
    bson_destroy(&ledger);
    return good;
}

/* Does `a` have every batch of `b`? */
static bool applied_covers(const struct applied *a, const struct applied *b)
{
    bool covers = !a->is_odd && !b->is_odd;
    for (size_t i = 0; covers && i < MONGO_SLOTS; i++)
        covers = b->last[i] <= a->last[i];
    return covers;
}

/* ---- the period's document */

static void read_sums(struct live *l, const bson_t *document)
{
    bson_iter_t at;
    for (bool more = mongo_begin_members(document, l->sums_path, &at); more && bson_iter_next(&at);) {
        size_t group;
        const int64_t sum = bson_iter_as_int64(&at);
        if (!mongo_name_is_number(bson_iter_key(&at), MONGO_GROUPS, &group) || sum < 0 || sum > SUM_MAX) {
            l->is_whole = false;
            return;
        }
        l->sums[group] = sum;
    }
}

static bool see_period(void *context, const bson_t *document)
{
    struct live *l = context;
    const int64_t written = mongo_number_at(document, "written", 0);
    l->stats->rows++;
    l->stats->bytes += document->len;
    l->is_whole = written > 0 && mongo_number_at(document, "open.batches", -1) == written &&
                  mongo_number_at(document, "open.until", INT64_MAX) <= l->what->end_ms;
    if (l->is_whole)
        read_sums(l, document);
    applied_add(&l->has, document);
    return true;
}

/* Without a document, the sums are not whole. */
static bool read_period(struct live *l, struct err *e)
{
    char id[MONGO_TOP_ID_BYTES];
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(mongo_top_id(l->what->span, l->what->from_ms, id)));
    bson_t *options =
        BCON_NEW("projection", "{", "written", BCON_BOOL(true), "applied", BCON_BOOL(true), "open.batches",
                 BCON_BOOL(true), "open.until", BCON_BOOL(true), l->sums_path, BCON_BOOL(true), "}");
    l->is_whole = false;
    memset(l->sums, 0, sizeof l->sums);
    l->has = (struct applied){0};
    return mongo_look(l->m->client, l->top, filter, options, see_period, l, e);
}

/* ---- documents of series */

static bool see_document(void *context, const bson_t *document)
{
    struct live *l = context;
    const struct measure *measure = &l->m->reports[l->what->report].measures[l->what->measure];
    int64_t columns[MEASURE_COLUMNS_MAX] = {0};
    bson_iter_t value;
    uint32_t series;
    l->stats->rows++;
    l->stats->bytes += document->len;
    if (!mongo_take_name(l->m, l->what->report, document, &l->key, &series) ||
        !mongo_find_member(document, l->value_path, &value))
        return true;
    applied_add(&l->needs, document);
    if (!mongo_read_value(measure, &value, columns) || columns[0] == 0)
        return true; /* a damaged one stays in what its group may have */
    int64_t *got = &l->got[mongo_group(&l->m->more[l->what->report], series)];
    *got = value_add(*got, columns[0]);
    l->entries = xgrow(l->entries, &l->capacity, l->count + 1, sizeof *l->entries);
    l->entries[l->count++] = (struct entry){.value = columns[0], .number = series};
    return true;
}

static bool read_documents(struct live *l, const uint32_t *series, size_t count, struct err *e)
{
    struct mongo_store *m = l->m;
    char time[MONGO_TIME_BYTES];
    struct mongo_ids ids;
    mongo_ids_begin(&ids, bson_new());
    mongo_time(l->kind->span, span_floor(l->kind->span, l->what->from_ms), time);
    for (size_t i = 0; i < count; i++) {
        mongo_id(&m->id, m, l->what->report, time, mongo_key(&m->more[l->what->report], series[i]));
        mongo_ids_add(&ids, slice_of(m->id.ptr, m->id.len));
    }
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(false), "metadata", BCON_BOOL(true),
                               "applied", BCON_BOOL(true), l->value_path, BCON_BOOL(true), "}");
    return mongo_look(m->client, l->documents, mongo_ids_end(&ids), options, see_document, l, e);
}

/* ---- which of them */

static int compare_values(const void *left, const void *right)
{
    return order_int64(((const struct entry *)right)->value, ((const struct entry *)left)->value);
}

/* The smallest value of the answer as far as it is known, at least 1. A series below it is not shown. */
static int64_t smallest_shown(struct live *l)
{
    if (l->count < l->what->limit)
        return 1;
    qsort(l->entries, l->count, sizeof *l->entries, compare_values);
    return l->entries[l->what->limit - 1].value;
}

/* Adds some more series of the group; false: no more are known. */
static bool choose_of(struct live *l, size_t group, uint32_t *chosen, size_t *count, size_t most)
{
    const struct mongo_hints *h = l->hints;
    const size_t before = *count;
    while (*count - before < most && h->first[group] + l->next[group] < h->end[group])
        chosen[(*count)++] = h->series[h->first[group] + l->next[group]++];
    return *count > before;
}

/* The likeliest series of the largest groups: nothing is known yet. */
static size_t choose_first(struct live *l, uint32_t *chosen)
{
    struct entry ranks[MONGO_GROUPS];
    const uint64_t wanted = l->what->limit + l->what->limit / 4 + 4;
    size_t count = 0;
    for (uint32_t g = 0; g < MONGO_GROUPS; g++)
        ranks[g] = (struct entry){.value = l->sums[g], .number = g};
    qsort(ranks, MONGO_GROUPS, sizeof *ranks, compare_values);
    for (size_t i = 0; i < MONGO_GROUPS && count < wanted && ranks[i].value > 0; i++)
        (void)choose_of(l, ranks[i].number, chosen, &count, 1);
    return count;
}

/* More series of every group that may have one for the answer. *is_stuck: a group has no more. */
static size_t choose_more(struct live *l, uint32_t *chosen, bool *is_stuck)
{
    const int64_t smallest = smallest_shown(l);
    size_t count = 0;
    *is_stuck = false;
    for (size_t g = 0; g < MONGO_GROUPS; g++) {
        if (l->sums[g] - l->got[g] >= smallest)
            *is_stuck |= !choose_of(l, g, chosen, &count, AT_ONCE);
    }
    return count;
}

/* ---- the answer */

/* Do all reads go to the primary? Another member may lack a batch that the ledger of a third calls done. */
static bool reads_primary(const struct mongo_store *m)
{
    return strcasestr(m->uri, "readPreference") == NULL;
}

/* Makes the sums have every batch of the documents. False: they do not, or reading failed. */
static bool catch_up(struct live *l, bool *is_good, struct err *e)
{
    struct applied done = {{0}, false};
    *is_good = applied_covers(&l->has, &l->needs);
    if (!*is_good && !read_period(l, e))
        return false;
    *is_good = applied_covers(&l->has, &l->needs);
    if (*is_good || !reads_primary(l->m))
        return true;
    /* What is done now, the period's document has when it is read after that. */
    if (!applied_done(&done, l->m, e) || !read_period(l, e))
        return false;
    for (size_t i = 0; i < MONGO_SLOTS; i++)
        l->has.last[i] = done.last[i] > l->has.last[i] ? done.last[i] : l->has.last[i];
    *is_good = applied_covers(&l->has, &l->needs);
    return true;
}

/* Is no group's rest negative? It would be if another program changed a document. */
static bool adds_up(const struct live *l)
{
    bool adds = l->is_whole;
    for (size_t g = 0; adds && g < MONGO_GROUPS; g++)
        adds = l->got[g] <= l->sums[g];
    return adds;
}

/* Reads documents until those that were not read do not matter. *is_stuck: hints are missing. */
static bool explain_groups(struct live *l, bool *found, bool *is_stuck, struct err *e)
{
    uint32_t *chosen = xmalloc((2 * LIMIT_MAX + AT_ONCE * MONGO_GROUPS) * sizeof *chosen);
    size_t count = choose_first(l, chosen), asked = 0;
    bool good = true, is_good = true;
    *is_stuck = false;
    for (int turn = 0; !*found && !*is_stuck && turn < TURNS_MAX; turn++) {
        good = (count == 0 || read_documents(l, chosen, count, e)) &&
               deadline_check(l->m->store.deadline, e) && catch_up(l, &is_good, e);
        asked += count;
        if (!good || !is_good || !adds_up(l) || asked > DOCUMENTS_MAX)
            break;
        count = choose_more(l, chosen, is_stuck);
        *found = count == 0 && !*is_stuck;
    }
    free(chosen);
    return good;
}

static void forget_documents(struct live *l)
{
    l->count = 0;
    memset(l->got, 0, sizeof l->got);
    memset(l->next, 0, sizeof l->next);
    l->needs = (struct applied){0};
}

/* If it lacks hints, it begins again with newer ones. */
static bool find_largest(struct live *l, bool *found, struct err *e)
{
    struct mongo_store *m = l->m;
    const struct store_top *what = l->what;
    bool is_stuck, more;
    if (!read_period(l, e))
        return false;
    if (!l->is_whole)
        return true;
    l->hints = mongo_hints_of(m, what->report, what->measure);
    if (l->hints->asked_ms == 0 && !mongo_hints_read(m, what->report, what->measure, l->stats, &more, e))
        return false;
    if (!explain_groups(l, found, &is_stuck, e))
        return false;
    if (!is_stuck)
        return true;
    if (!mongo_hints_read(m, what->report, what->measure, l->stats, &more, e))
        return false;
    forget_documents(l);
    return !more || explain_groups(l, found, &is_stuck, e);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return a->value != b->value ? order_int64(b->value, a->value) : slice_compare(a->key, b->key);
}

static void tell(struct live *l, top_fn *fn, void *context, struct top_total *total)
{
    const struct store_top *what = l->what;
    const struct measure *measure = &l->m->reports[what->report].measures[what->measure];
    int64_t columns[REPORT_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < l->count; i++) {
        const struct slice *key = mongo_key(&l->m->more[what->report], l->entries[i].number);
        l->entries[i].key = key != NULL ? *key : slice_text(STORE_OTHER_KEY);
    }
    if (l->count > 0)
        qsort(l->entries, l->count, sizeof *l->entries, compare_entries);
    for (size_t i = 0; i < l->count && i < what->limit; i++) {
        columns[measure->column] = l->entries[i].value;
        fn(context, l->entries[i].number, what->from_ms, columns, (int128)l->entries[i].value * EVENT_SCALE);
    }
    for (size_t g = 0; g < MONGO_GROUPS; g++)
        total->columns[0] = value_add(total->columns[0], l->sums[g]);
}

/* The shortest documents that hold the period: longer ones may lack batches (mongo/doc/unrolled.h). */
static const struct mongo_kind *kind_of(const struct report *r, enum span span)
{
    const struct mongo_kind *kind = mongo_kinds(r, NULL);
    while (kind->span < span)
        kind++;
    return kind;
}

/* Do the documents of a longer period lack batches? */
static bool is_lacking(struct mongo_store *m, const struct store_top *what, bool *lacks, struct err *e)
{
    const struct report *r = &m->reports[what->report];
    const struct mongo_kind *fine = mongo_kinds(r, NULL);
    *lacks = false;
    if (kind_of(r, what->span) == fine)
        return true;
    const struct mongo_unrolled_seen *seen = mongo_see_unrolled(m, e);
    *lacks = seen != NULL && mongo_is_unrolled(seen, fine->span, what->from_ms, what->to_ms);
    return seen != NULL;
}

static bool rank_open(struct mongo_store *m, const struct store_top *what, top_fn *fn, void *context,
                      struct top_total *total, struct scan_stats *stats, bool *found, struct err *e)
{
    const struct report *r = &m->reports[what->report];
    struct live *l = xcalloc(1, sizeof *l);
    char path[MONGO_PATH_BYTES];
    *l = (struct live){.m = m, .what = what, .stats = stats};
    l->kind = kind_of(r, what->span);
    mongo_collection(m, what->report, MONGO_TOP, l->top);
    mongo_collection(m, what->report, span_name(l->kind->span), l->documents);
    snprintf(l->sums_path, sizeof l->sums_path, "open.sums.%s", r->measures[what->measure].name);
    snprintf(l->value_path, sizeof l->value_path, "%s%s", m->more[what->report].fields[what->measure],
             mongo_path(l->kind, what->span, what->from_ms, path));
    bool good = find_largest(l, found, e);
    if (good && *found)
        tell(l, fn, context, total);
    free(l->entries);
    text_fini(&l->key);
    free(l);
    return good;
}

/* Can the period that is asked for be ranked by its sums? */
static bool is_rankable(const struct mongo_store *m, const struct store_top *what)
{
    const struct report *r = &m->reports[what->report];
    return mongo_top_has_span(what->span) && mongo_top_is_cached(r) &&
           mongo_is_stamped(&m->more[what->report]) && mongo_live_sums(&r->measures[what->measure]) &&
           what->limit > 0 && what->limit <= LIMIT_MAX &&
           span_next(what->span, what->from_ms) == what->to_ms &&
           mongo_is_open(what->span, what->from_ms, clock_wall_ms(m->store.clock));
}

bool mongo_live_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
                    struct top_total *total, struct scan_stats *stats, bool *found, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool lacks = false;
    *found = false;
    if (is_rankable(m, what) && (!is_lacking(m, what, &lacks, e) ||
                                 (!lacks && !rank_open(m, what, fn, context, total, stats, found, e))))
        return false;
    if (*found)
        return true;
    if (what->limit == 0)
        return mongo_totals(st, what, total, stats, found, e);
    return what->end_ms < what->to_ms || mongo_top(st, what, fn, context, total, stats, found, e);
}
