/* Copies a whole store: the reports by copier.h, then the rest by reader.h and fill.h. */
#include "store/backend/copy.h"

#include "base/mem.h"
#include "store/backend/backend.h"
#include "store/backend/copier.h"
#include "store/fill.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES ((size_t)256 << 10)

struct copying {
    const struct store_copying *c;
    struct store *from, *to;       /* to: NULL in a dry run */
    struct watermarks *watermarks; /* by report */
    struct range *positions;
    size_t position_count, position_capacity;
    struct store_book *books;
    size_t book_count, book_capacity;
    struct arena names;
    uint64_t series, cells; /* copied */
    struct err *e;
};

/* ---- positions and books */

static bool take_position(void *context, const struct position *position)
{
    struct copying *k = context;
    k->positions = xgrow(k->positions, &k->position_capacity, k->position_count + 1, sizeof *k->positions);
    struct range *r = &k->positions[k->position_count++];
    *r = position->range;
    r->from = r->to;
    return true;
}

static const char *keep_name(struct copying *k, const char *name, const char *last)
{
    return last != NULL && strcmp(name, last) == 0
               ? last
               : arena_copy(&k->names, slice_of(name, strlen(name) + 1)).ptr;
}

/* The state of a followed file names its host. A store with one writer has no hosts: any may go on there. */
static int64_t value_there(const struct copying *k, const char *entry, int64_t value)
{
    bool has_hosts = k->to == NULL || k->to->is_shared;
    return has_hosts || strcmp(entry, STORE_STATE_ENTRY) != 0 ? value : value % RANGE_STATES;
}

/* Some stores list the expiry watermarks with the books; a target is given them beside these. */
static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct copying *k = context;
    int index = report[0] == '\0' ? -1 : store_find_report(k->from, slice_text(report));
    if (strncmp(entry, "expired.", strlen("expired.")) == 0)
        return true;
    k->books = xgrow(k->books, &k->book_capacity, k->book_count + 1, sizeof *k->books);
    const struct store_book *last = k->book_count > 0 ? &k->books[k->book_count - 1] : NULL;
    k->books[k->book_count] = (struct store_book){
        .source = keep_name(k, source, last != NULL ? last->source : NULL),
        .partition = keep_name(k, partition, last != NULL ? last->partition : NULL),
        .entry = keep_name(k, entry, NULL),
        .report = index < 0 ? STORE_NO_REPORT : (size_t)index,
        .value = value_there(k, entry, value),
    };
    k->book_count++;
    return true;
}

/* By partition; the books of reports themselves, which have none, by report. */
static int compare_books(const void *a, const void *b)
{
    const struct store_book *x = a, *y = b;
    int by = strcmp(x->source, y->source);
    by = by != 0 ? by : strcmp(x->partition, y->partition);
    by = by != 0 ? by : (x->report > y->report) - (x->report < y->report);
    return by != 0 ? by : strcmp(x->entry, y->entry);
}

static bool read_content(struct copying *k)
{
    if (!store_positions(k->from, take_position, k, k->e) || !store_books(k->from, take_book, k, k->e))
        return false;
    if (k->book_count > 0)
        qsort(k->books, k->book_count, sizeof *k->books, compare_books);
    return true;
}

/* ---- all of it */

/* A target that holds something is refused in a dry run, too. */
static bool check_target(struct copying *k)
{
    struct store *there = store_open(k->c->to, STORE_READ, NULL, 0, k->e);
    if (there == NULL) /* an unfinished copy is copied again */
        return k->e->code == EX_NOINPUT || (k->e->code == EX_TEMPFAIL && !k->e->retryable);
    store_close(there);
    struct text shown = {0};
    text_url(&shown, slice_text(k->c->to));
    err_set(k->e, EX_CANTCREAT, "%s holds a store already: name an empty one", shown.ptr);
    text_fini(&shown);
    return false;
}

static bool open_target(struct copying *k)
{
    struct store_options options = *k->c->options;
    if (k->c->dry)
        return check_target(k);
    options.watermarks = k->watermarks;
    k->to = store_open_with(k->c->to, STORE_FILL, &options, k->from->reports, k->from->report_count, k->e);
    return k->to != NULL;
}

static bool check_moment(struct copying *k, const struct text *before)
{
    struct text now = {0}, ignored = {0};
    bool good = store_moment(k->from, &now, &ignored, k->e);
    if (good && !slice_equal(text_slice(before), text_slice(&now)))
        good = err_set_retryable(k->e, EX_TEMPFAIL,
                                 "a tallyd counted into the source while it was copied: stop all daemons and "
                                 "copy again");
    text_fini(&now);
    text_fini(&ignored);
    return good;
}

static bool copy_counts(struct copying *k)
{
    struct copier copier = {.from = k->from,
                            .to = k->to,
                            .end_ms = CIVIL_END_MS,
                            .goes_on = k->c->goes_on,
                            .context = k->c->context,
                            .e = k->e};
    bool good = true;
    copier_init(&copier, k->from->reports, k->from->report_count);
    for (size_t r = 0; good && r < k->from->report_count; r++) {
        copier.watermarks = &k->watermarks[r];
        good = copier_report(&copier, r, r);
    }
    k->series = copier.series;
    k->cells = copier.cells;
    copier_fini(&copier);
    return good;
}

static bool copy_held(struct copying *k, struct text *left_out)
{
    struct text moment = {0};
    bool good = store_moment(k->from, &moment, left_out, k->e) && store_hold(k->from, k->e);
    for (size_t r = 0; good && r < k->from->report_count; r++)
        good = store_watermarks(k->from, r, &k->watermarks[r], k->e);
    good = good && open_target(k) && copy_counts(k) && read_content(k) && check_moment(k, &moment);
    if (good && k->to != NULL) {
        const struct store_content content = {k->positions, k->position_count, k->books, k->book_count};
        good = store_finish(k->to, &content, k->e);
    }
    text_fini(&moment);
    return good;
}

static void say(const struct copying *k, const struct text *left_out, struct text *said)
{
    text_puts(said, k->c->dry ? "would copy " : "");
    text_url(said, slice_text(k->c->from));
    text_puts(said, " to ");
    text_url(said, slice_text(k->c->to));
    text_printf(said, ": %zu reports with %" PRIu64 " series, positions of %zu sources or partitions",
                k->from->report_count, k->series, k->position_count);
    if (!k->c->dry)
        text_printf(said, ", %" PRIu64 " time buckets", k->cells);
    text_putc(said, '\n');
    for (size_t r = 0; r < k->from->report_count; r++) {
        const struct report *report = &k->from->reports[r];
        if (report->generation > 1)
            text_printf(said, "not copied: generations of %s before %d, which no query reads\n", report->name,
                        report->generation);
    }
    if (left_out->len > 0)
        text_add(said, left_out->ptr, left_out->len);
}

static void copying_fini(struct copying *k)
{
    store_close(k->to);
    store_close(k->from);
    arena_fini(&k->names);
    free(k->watermarks);
    free(k->positions);
    free(k->books);
}

bool store_copy_all(const struct store_copying *c, struct text *said, struct err *e)
{
    struct copying k = {.c = c, .e = e};
    struct text left_out = {0};
    if (strcmp(c->from, c->to) == 0)
        return err_set(e, EX_USAGE, "found one store twice, expected FROM and TO to be two");
    arena_init(&k.names, NAMES_BYTES);
    k.from = store_open(c->from, STORE_READ, NULL, 0, e);
    bool good = k.from != NULL;
    if (good) {
        k.watermarks = xcalloc(k.from->report_count + 1, sizeof *k.watermarks);
        good = copy_held(&k, &left_out);
    }
    if (good)
        say(&k, &left_out, said);
    text_fini(&left_out);
    copying_fini(&k);
    return good;
}
