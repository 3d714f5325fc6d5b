/* Turns the books of a batch into updates of documents of `books`. */
#include "store/common/watermarks.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/update.h"
#include "store/mongo/writer/update_internal.h"
#include "store/writer.h"

#include <stdio.h>

void mongo_set_entry(bson_t *to, const char *report, const char *entry, int64_t value)
{
    char path[MONGO_NAME_BYTES + STORE_ENTRY_BYTES + 16];
    if (report != NULL)
        snprintf(path, sizeof path, "reports.%s.%s", report, entry);
    else
        snprintf(path, sizeof path, "entries.%s", entry);
    bson_append_int64(to, path, -1, value);
}

/* Entries without a count are left out. */
static void add_entry(bson_t *to, const char *report, const char *entry, int64_t value)
{
    if (value != 0)
        mongo_set_entry(to, report, entry, value);
}

/* Adds what a report counted of a range, or takes it out. */
static void add_report_entries(struct update *u, size_t report, const struct books *books, bool takes)
{
    const int64_t *entries = &books->entries[BOOK_SOURCE_COUNT + report * BOOK_REPORT_COUNT];
    for (int i = 0; i < BOOK_REPORT_COUNT; i++)
        add_entry(&u->inc, u->m->more[report].key, books_report_name(i), takes ? -entries[i] : entries[i]);
}

/* Sets the offsets between which each report counts this partition. */
static void add_spans(struct update *u, bson_t *set, const struct range *range)
{
    const struct mongo_partition *p = mongo_own_partition(u->m, range);
    char name[STORE_ENTRY_BYTES];
    for (size_t r = 0; r < u->m->store.report_count; r++) {
        const char *key = u->m->more[r].key;
        if (p->until[r] < 0)
            mongo_set_entry(set, key, "since", range->from);
        else if (p->until[r] != range->from)
            mongo_set_entry(set, key, store_gap_entry(p->until[r], name), range->from);
        mongo_set_entry(set, key, "until", range->to);
    }
}

/* Sets the builds of the lists and databases that made fields of the range. */
static void add_builds(struct update *u, bson_t *set, const struct range *range)
{
    const struct mongo_partition *p = mongo_own_partition(u->m, range);
    char name[STORE_ENTRY_BYTES];
    struct build_stretch s;
    for (int k = 0; k < BUILD_COUNT; k++) {
        if (builds_after(&p->builds[0], range, (enum build_kind)k, &s))
            mongo_set_entry(set, NULL, build_entry(&s, name), s.to);
    }
}

/* The opposite of add_builds(): of the source, whose `key` is NULL, or of a report that was backfilled. */
static void take_builds(struct update *u, bson_t *set, const struct range *range, const char *key,
                        const struct build_stretches *all)
{
    char name[STORE_ENTRY_BYTES];
    for (size_t i = 0; i < all->count; i++) {
        const struct build_stretch *s = &all->list[i];
        if (s->to > range->to)
            mongo_set_entry(s->from < range->to ? set : &u->unset, key, build_entry(s, name), range->to);
    }
}

static void end_books(struct update *u, const struct range *range, bson_t *set)
{
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(set, "source", range->source);
    BSON_APPEND_UTF8(set, "partition", range->partition);
    text_clear(&u->m->id);
    text_printf(&u->m->id, "%s/%s", range->source, range->partition);
    bson_append_utf8(&filter, "_id", -1, u->m->id.ptr, (int)u->m->id.len);
    mongo_end_update(u, &filter, set);
    bson_destroy(&filter);
}

static void count_books(struct update *u, const struct range *range, const struct books *books)
{
    char name[BOOK_NAME_BYTES], latest[STORE_ENTRY_BYTES];
    bson_t set = BSON_INITIALIZER;
    mongo_begin_update(u);
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++)
        add_entry(&u->inc, NULL, books_source_name(i, name), books->entries[i]);
    for (size_t r = 0; r < books->report_count; r++)
        add_report_entries(u, r, books, false);
    add_spans(u, &set, range);
    if (books->entries[BOOK_REJECTED + REJECT_FUTURE] > 0)
        mongo_set_entry(&set, NULL, store_latest_entry(range, latest), range->to);
    if (range->partition[0] != '\0' && mongo_own_partition(u->m, range)->is_new)
        mongo_set_entry(&set, NULL, "since", range->from);
    if (range->state != RANGE_UNCHANGED)
        mongo_set_entry(&set, NULL, STORE_STATE_ENTRY, range->state);
    add_builds(u, &set, range);
    end_books(u, range, &set);
    bson_destroy(&set);
}

/* Writes the report's books of a range before the position: those of the source itself have it. */
static void backfill_books(struct update *u, const struct batch *batch)
{
    const struct mongo_batch *b = &u->m->batch;
    const char *key = u->m->more[batch->report].key;
    bson_t set = BSON_INITIALIZER;
    mongo_begin_update(u);
    add_report_entries(u, batch->report, &batch->books[0], false);
    if (batch->begun > 0)
        mongo_set_entry(&set, NULL, "since", batch->begun);
    for (size_t i = 0; i < b->moved_count; i++)
        mongo_set_entry(b->moved[i].value < 0 ? &u->unset : &set, key, b->moved[i].name, b->moved[i].value);
    end_books(u, &batch->ranges[0], &set);
    bson_destroy(&set);
}

/* Takes a stripe out of a report's books of its source. A report that counted nothing of the source has no
 * entries afterwards: its `since` may be behind the position. One that counted all of it has no entries of
 * some times, which would be behind the position, too. */
static void take_report_books(struct update *u, bson_t *set, const struct range *range, size_t report,
                              const struct books *books)
{
    const struct mongo_partition *p = mongo_own_partition(u->m, range);
    const char *key = u->m->more[report].key;
    char path[MONGO_NAME_BYTES + 16];
    if (u->m->batch.taken[report]) {
        add_report_entries(u, report, books, true);
        mongo_set_entry(set, key, "until", range->to);
        snprintf(path, sizeof path, "reports.%s.filled", key);
        BSON_APPEND_UTF8(&u->unset, path, "");
        take_builds(u, set, range, key, &p->builds[1 + report]);
    } else {
        bson_t none = BSON_INITIALIZER;
        snprintf(path, sizeof path, "reports.%s", key);
        BSON_APPEND_DOCUMENT(set, path, &none);
    }
}

/* The opposite of count_books(). */
static void take_books(struct update *u, const struct range *range, const struct books *books)
{
    char name[BOOK_NAME_BYTES], latest[STORE_ENTRY_BYTES];
    bson_t set = BSON_INITIALIZER, none = BSON_INITIALIZER;
    mongo_begin_update(u);
    if (range->to == 0) {
        BSON_APPEND_DOCUMENT(&set, "entries", &none);
        BSON_APPEND_DOCUMENT(&set, "reports", &none);
    } else {
        for (int i = 0; i < BOOK_SOURCE_COUNT; i++)
            add_entry(&u->inc, NULL, books_source_name(i, name), -books->entries[i]);
        for (size_t r = 0; r < books->report_count; r++)
            take_report_books(u, &set, range, r, books);
        if (range->latest_from >= 0)
            mongo_set_entry(&set, NULL, store_latest_entry(range, latest), range->to);
        take_builds(u, &set, range, NULL, &mongo_own_partition(u->m, range)->builds[0]);
    }
    end_books(u, range, &set);
    bson_destroy(&set);
}

void mongo_write_report_books(struct update *u, const struct batch *batch, int64_t other)
{
    const char *key = u->m->more[u->report].key;
    int64_t late[SPAN_COUNT];
    bson_t filter;
    const bool is_late = store_late(&u->m->store, u->report, &u->m->more[u->report].watermarks, batch, late);
    if (!is_late && other == 0 && !u->m->batch.fills) /* each batch must be in some book */
        return;
    bson_init(&filter);
    mongo_begin_update(u);
    add_entry(&u->inc, key, "other", other);
    for (int s = 0; s < SPAN_COUNT; s++) {
        char entry[STORE_ENTRY_BYTES];
        add_entry(&u->inc, key, store_late_entry((enum span)s, entry), late[s]);
    }
    BSON_APPEND_UTF8(&filter, "_id", key);
    mongo_end_update(u, &filter, NULL);
    bson_destroy(&filter);
}

void mongo_write_books(struct update *u, const struct batch *batch)
{
    u->collection = MONGO_BOOKS;
    if (batch->backfills) {
        backfill_books(u, batch);
        return;
    }
    for (size_t i = 0; i < batch->range_count; i++) {
        if (u->m->batch.taken != NULL)
            take_books(u, &batch->ranges[i], &batch->books[i]);
        else
            count_books(u, &batch->ranges[i], &batch->books[i]);
    }
}
