/* Checks the books of each partition by themselves, and all of them together against the cells. */
#include "aggregate/books.h"
#include "base/mem.h"
#include "verify/audit.h"

#include <inttypes.h>
#include <stdlib.h>

/* The books and position of a partition. */
struct account {
    char source[RANGE_SOURCE_BYTES], partition[RANGE_PARTITION_BYTES];
    struct books books;
    bool *has_times;        /* by report: of some offsets it counts only events of some times */
    int64_t *since, *until; /* by report; -1: the report does not count the partition */
    int64_t begun;          /* offset from which the source's own books count; 0: from the first */
    bool has_position;
    int64_t next;
};

struct accounts {
    struct audit *a;
    struct account *list;
    /* `last`: index found last; stores list books and positions in similar order */
    size_t count, capacity, last;
};

static bool is_of(const struct account *c, const char *source, const char *partition)
{
    return strcmp(c->source, source) == 0 && strcmp(c->partition, partition) == 0;
}

static struct account *find_account(struct accounts *all, const char *source, const char *partition)
{
    for (size_t i = 0; i < all->count; i++) {
        size_t at = (all->last + i) % all->count;
        if (is_of(&all->list[at], source, partition)) {
            all->last = at;
            return &all->list[at];
        }
    }
    return NULL;
}

static struct account *need_account(struct accounts *all, const char *source, const char *partition)
{
    size_t count = all->a->store->report_count;
    if (all->count > 0 && is_of(&all->list[all->count - 1], source, partition))
        return &all->list[all->count - 1];
    struct account *c = find_account(all, source, partition);
    if (c != NULL)
        return c;
    all->list = xgrow(all->list, &all->capacity, all->count + 1, sizeof *all->list);
    c = &all->list[all->count++];
    *c = (struct account){.has_times = xcalloc(count + 1, sizeof *c->has_times),
                          .since = xcalloc(count + 1, sizeof *c->since),
                          .until = xcalloc(count + 1, sizeof *c->until)};
    snprintf(c->source, sizeof c->source, "%s", source);
    snprintf(c->partition, sizeof c->partition, "%s", partition);
    books_init(&c->books, count);
    for (size_t r = 0; r < count; r++)
        c->since[r] = c->until[r] = -1;
    return c;
}

static void read_entry(struct account *c, int report, const char *entry, int64_t value)
{
    char name[BOOK_NAME_BYTES];
    for (int i = 0; report < 0 && i < BOOK_SOURCE_COUNT; i++) {
        if (strcmp(entry, books_source_name(i, name)) == 0)
            *books_source(&c->books, i) = value;
    }
    for (int i = 0; report >= 0 && i < BOOK_REPORT_COUNT; i++) {
        if (strcmp(entry, books_report_name(i)) == 0)
            *books_report(&c->books, (size_t)report, i) = value;
    }
    if (report >= 0 && strcmp(entry, "since") == 0)
        c->since[report] = value;
    if (report >= 0 && strcmp(entry, "until") == 0)
        c->until[report] = value;
    if (report >= 0 && strncmp(entry, "filled.", strlen("filled.")) == 0)
        c->has_times[report] = true;
}

static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct accounts *all = context;
    if (source[0] == '\0')
        return true;
    if (report[0] == '\0' && strcmp(entry, "since") == 0)
        need_account(all, source, partition)->begun = value;
    read_entry(need_account(all, source, partition), store_find_report(all->a->store, slice_text(report)),
               entry, value);
    return true;
}

static bool take_position(void *context, const struct position *p)
{
    struct accounts *all = context;
    struct account *c = find_account(all, p->range.source, p->range.partition);
    all->a->partitions++;
    if (c == NULL)
        return true; /* nothing of the partition was counted yet */
    c->has_position = true;
    c->next = p->range.to;
    return true;
}

static bool read_accounts(struct accounts *all, struct err *e)
{
    return store_books(all->a->store, take_book, all, e) &&
           store_positions(all->a->store, take_position, all, e);
}

static void free_accounts(struct accounts *all)
{
    for (size_t i = 0; i < all->count; i++) {
        books_fini(&all->list[i].books);
        free(all->list[i].has_times);
        free(all->list[i].since);
        free(all->list[i].until);
    }
    free(all->list);
}

static struct text *say_of(struct audit *a, const struct account *c)
{
    struct text *said = audit_find(a);
    if (said != NULL)
        text_printf(said, "%s%s%s: ", c->source, c->partition[0] != '\0' ? "/" : "", c->partition);
    return said;
}

static void judge_report(struct audit *a, const struct account *c, size_t r)
{
    const char *name = a->store->reports[r].name;
    const int64_t *of = &c->books.entries[BOOK_SOURCE_COUNT + r * BOOK_REPORT_COUNT];
    struct text *said;
    if (of[BOOK_REPORT_PARSED] != of[BOOK_COUNTED] + of[BOOK_FILTERED] + of[BOOK_LATE] &&
        (said = say_of(a, c)) != NULL)
        text_printf(said,
                    "the books of %s do not balance: parsed %" PRId64 ", counted %" PRId64
                    " + filtered %" PRId64 " + late %" PRId64 "\n",
                    name, of[BOOK_REPORT_PARSED], of[BOOK_COUNTED], of[BOOK_FILTERED], of[BOOK_LATE]);
    bool has_more = c->begun > 0 && (c->since[r] < c->begun || c->has_times[r]);
    if (!has_more && of[BOOK_REPORT_PARSED] > c->books.entries[BOOK_PARSED] && (said = say_of(a, c)) != NULL)
        text_printf(said, "%s was given %" PRId64 " events, of only %" PRId64 " that were parsed\n", name,
                    of[BOOK_REPORT_PARSED], c->books.entries[BOOK_PARSED]);
    if (c->since[r] > c->until[r] && (said = say_of(a, c)) != NULL)
        text_printf(said, "%s counts it from %" PRId64 " to %" PRId64 "\n", name, c->since[r], c->until[r]);
    if (c->has_position && c->until[r] > c->next && (said = say_of(a, c)) != NULL)
        text_printf(said,
                    "%s was counted to %" PRId64 ", but the store would resume at %" PRId64
                    ": the records between would be counted twice\n",
                    name, c->until[r], c->next);
}

static void judge_account(struct audit *a, const struct account *c)
{
    const int64_t *of = c->books.entries;
    struct text *said;
    if (of[BOOK_CONSUMED] != of[BOOK_PARSED] + books_rejected(&c->books) && (said = say_of(a, c)) != NULL)
        text_printf(said,
                    "the books do not balance: consumed %" PRId64 ", parsed %" PRId64 " + rejected %" PRId64
                    "\n",
                    of[BOOK_CONSUMED], of[BOOK_PARSED], books_rejected(&c->books));
    if (!c->has_position && (said = say_of(a, c)) != NULL)
        text_puts(said, "it is in the books, but the store does not know how far it is counted\n");
    for (size_t r = 0; r < a->store->report_count; r++)
        judge_report(a, c, r);
}

bool audit_books(struct audit *a, size_t report, struct err *e)
{
    struct accounts all = {.a = a};
    (void)report;
    a->partitions = 0;
    bool good = read_accounts(&all, e);
    for (size_t i = 0; good && i < all.count; i++)
        judge_account(a, &all.list[i]);
    free_accounts(&all);
    return good;
}

/* ---- books against cells */

struct totals {
    const char *report;
    size_t column;             /* column of the report's first count */
    int128 sum, other;         /* over all stored months: of all series, and of `other` */
    int64_t counted, to_other; /* the same by the books */
    int64_t kept;              /* events of another generation, less those that the books have instead */
};

static void add_cell(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct totals *t = context;
    (void)bucket_ms;
    t->sum += values[t->column];
    if (series == STORE_SERIES_OTHER)
        t->other += values[t->column];
}

static bool add_book(void *context, const char *source, const char *partition, const char *report,
                     const char *entry, int64_t value)
{
    struct totals *t = context;
    (void)partition;
    if (strcmp(report, t->report) != 0)
        return true;
    if (source[0] != '\0' && strcmp(entry, books_report_name(BOOK_COUNTED)) == 0)
        t->counted = value_add(t->counted, value);
    if (source[0] == '\0' && strcmp(entry, "kept.events") == 0)
        t->kept = value;
    if (source[0] == '\0' && strcmp(entry, "other") == 0)
        t->to_other = value_add(t->to_other, value);
    return true;
}

/* `books`: the events of the books, each as often as it counts. */
static void judge_total(struct audit *a, const struct totals *t, const char *what, int128 books, int128 cells,
                        bool are_all)
{
    char number[NUMBER_BYTES], counted[NUMBER_BYTES];
    a->compared++;
    if (cells == books || (!are_all && cells < books))
        return;
    struct text *said = audit_find(a);
    if (said != NULL)
        text_printf(said, "%s: %s: the books have %s events, its months %s%s\n", t->report, what,
                    number_text(books * EVENT_SCALE, counted), number_text(cells * EVENT_SCALE, number),
                    are_all ? "" : ", though some have expired");
}

int audit_count(const struct report *r)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return (int)i;
    }
    return -1;
}

bool audit_totals(struct audit *a, size_t report, struct err *e)
{
    const struct report *r = &a->store->reports[report];
    struct totals t = {.report = r->name};
    struct scan_stats stats = {0};
    struct watermarks watermarks;
    int count = audit_count(r);
    if (count < 0)
        return true;
    t.column = r->measures[count].column;
    if (!store_books(a->store, add_book, &t, e) || !store_watermarks(a->store, report, &watermarks, e))
        return false;
    const struct scan scan = {.report = report,
                              .resolution = SPAN_MONTH,
                              .from_ms = watermarks.before_ms[SPAN_MONTH],
                              .to_ms = CIVIL_END_MS,
                              .series = {.kind = SERIES_ALL},
                              .rows_max = UINT64_MAX,
                              .measures = (uint32_t)1 << count};
    if (!store_scan(a->store, &scan, add_cell, &t, &stats, e))
        return false;
    judge_total(a, &t, "counted", (int128)t.counted * r->one_in + t.kept, t.sum, scan.from_ms == 0);
    judge_total(a, &t, "in the series " STORE_OTHER_KEY, t.to_other, t.other, scan.from_ms == 0);
    return true;
}
