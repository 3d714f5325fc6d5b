#include "daemon/forget.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/order.h"
#include "daemon/count/worker.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "ingest/file/identity.h"
#include "store/forget.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 50

/* From one offset to another, events later than latest_ms were in the future. */
struct stretch {
    int64_t from, to, latest_ms;
};

/* A report's entries of the books. */
struct counted {
    int64_t since, until; /* -1: it does not count the source */
    int64_t other;        /* events of all sources that went to the series `other` */
    bool has_gap;
    bool has_kept; /* counts of another generation, of any source (store/splice.h) */
};

/* A piece of the source that is recounted at once, up to an offset. Its begin is the end of the piece before
 * it. */
struct piece {
    int64_t to;
    uint64_t tail_hash; /* of the tail_len bytes before `to` */
    uint32_t tail_len;
    const struct stretch *in; /* NULL: no event of it was in the future */
    struct books books;
};

/* The source as the store knows it. */
struct known {
    struct store *store;
    const struct range *range;
    struct books books;
    struct counted *reports;
    bool *takes; /* by report: it counted the whole source */
    struct stretch *stretches;
    size_t stretch_count, stretch_capacity;
};

static void read_source_entry(struct known *k, const char *entry, int64_t value)
{
    char name[BOOK_NAME_BYTES];
    struct stretch s = {.to = value};
    if (sscanf(entry, "latest.%" SCNd64 ".%" SCNd64, &s.from, &s.latest_ms) == 2 && s.from < s.to) {
        k->stretches = xgrow(k->stretches, &k->stretch_capacity, k->stretch_count + 1, sizeof *k->stretches);
        k->stretches[k->stretch_count++] = s;
    }
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        if (strcmp(entry, books_source_name(i, name)) == 0)
            *books_source(&k->books, i) = value;
    }
}

static void read_report_entry(struct known *k, size_t report, const char *entry, int64_t value)
{
    struct counted *c = &k->reports[report];
    if (strcmp(entry, "since") == 0)
        c->since = value;
    else if (strcmp(entry, "until") == 0)
        c->until = value;
    else if (strncmp(entry, "gap.", 4) == 0)
        c->has_gap = true;
    for (int i = 0; i < BOOK_REPORT_COUNT; i++) {
        if (strcmp(entry, books_report_name(i)) == 0)
            *books_report(&k->books, report, i) = value;
    }
}

static bool read_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct known *k = context;
    int n = store_find_report(k->store, slice_text(report));
    if (source[0] == '\0' && n >= 0 && strcmp(entry, "other") == 0)
        k->reports[n].other = value;
    if (source[0] == '\0' && n >= 0 && strncmp(entry, "kept.", strlen("kept.")) == 0)
        k->reports[n].has_kept = true;
    if (strcmp(source, k->range->source) != 0 || strcmp(partition, k->range->partition) != 0)
        return true;
    if (report[0] == '\0')
        read_source_entry(k, entry, value);
    else if (n >= 0)
        read_report_entry(k, (size_t)n, entry, value);
    return true;
}

static int compare_stretches(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return order_int64(x->from, y->from);
}

static bool read_known(struct known *k, struct store *st, const struct range *range, struct err *e)
{
    *k = (struct known){.store = st, .range = range};
    k->reports = xcalloc(st->report_count + 1, sizeof *k->reports);
    k->takes = xcalloc(st->report_count + 1, sizeof *k->takes);
    for (size_t r = 0; r < st->report_count; r++)
        k->reports[r].since = k->reports[r].until = -1;
    books_init(&k->books, st->report_count);
    if (!store_books(st, read_book, k, e))
        return false;
    if (k->stretch_count > 0)
        qsort(k->stretches, k->stretch_count, sizeof *k->stretches, compare_stretches);
    return true;
}

static void free_known(struct known *k)
{
    books_fini(&k->books);
    free(k->reports);
    free(k->takes);
    free(k->stretches);
}

/* The first measure that cannot be taken out; NULL: there is none. */
static const struct measure *find_fixed(const struct report *r)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (!measure_is_sum(&r->measures[i]) || r->measures[i].kind == MEASURE_DISTINCT)
            return &r->measures[i];
    }
    return NULL;
}

/* May the report's counts of the source be taken out exactly? */
static bool check_report(struct known *k, size_t report, struct err *e)
{
    const struct report *r = &k->store->reports[report];
    const struct counted *c = &k->reports[report];
    const int64_t counted = *books_report(&k->books, report, BOOK_COUNTED);
    const struct measure *fixed = find_fixed(r);
    k->takes[report] = c->since == 0 && c->until == k->range->to && !c->has_gap;
    if (*books_report(&k->books, report, BOOK_LATE) > 0)
        return err_set(e, EX_UNAVAILABLE,
                       "%" PRId64
                       " of its events came too late for report \"%s\" (`keep`), and nothing tells "
                       "which ones",
                       *books_report(&k->books, report, BOOK_LATE), r->name);
    if (c->has_kept)
        return err_set(e, EX_UNAVAILABLE,
                       "report \"%s\" has counts of an earlier generation, of all sources, and nothing tells "
                       "which ones are of this source. `tallyd forget --yes %s` drops the whole report",
                       r->name, r->name);
    if (counted == 0)
        return true;
    if (!k->takes[report])
        return err_set(e, EX_UNAVAILABLE,
                       "report \"%s\" counted only a part of it: it was not configured all the time. `tallyd "
                       "forget --yes %s` drops the whole report",
                       r->name, r->name);
    if (fixed != NULL)
        return err_set(
            e, EX_UNAVAILABLE,
            "report \"%s\" has the measure %s: %s, which cannot be taken out of what it was merged into. "
            "`tallyd forget --yes %s` drops the whole report",
            r->name, fixed->name, fixed->expression, r->name);
    if (r->newest > 0)
        return err_set(
            e, EX_UNAVAILABLE,
            "report \"%s\" keeps its newest events, and nothing brings back those that events of this source "
            "pushed out. `tallyd forget --yes %s` drops the whole report; `tallyd backfill` counts one with "
            "another name anew, from the other sources",
            r->name, r->name);
    if (c->other > 0 && r->dimension_count > 0)
        return err_set(
            e, EX_UNAVAILABLE,
            "report \"%s\" counted %" PRId64 " events beyond its series_max as " STORE_OTHER_KEY
            ", and nothing tells which ones are of this source. `tallyd forget --yes %s` drops the "
            "whole report",
            r->name, c->other, r->name);
    return true;
}

/* Is the file at the path still the source, as far as it was counted? */
static bool check_file(const struct forget *f, struct err *e)
{
    struct source src;
    const struct source_options options = {
        .line_max = (size_t)f->config->limits.line_max, .last_line = LAST_LINE_LEAVE, .stop = f->stop};
    if (source_open_at(&src, f->path, &f->position->range, &options, e)) {
        source_close(&src);
        return true;
    }
    const struct err found = *e;
    if (strcmp(f->path, f->position->range.label) != 0 || (e->code != EX_NOINPUT && e->code != EX_DATAERR))
        return false;
    return err_set(e, found.code, "%s; `tallyd forget --file PATH` says where its lines are now", found.text);
}

/* The recount of a file. */
struct recounting {
    struct store *store;
    const struct known *known;
    struct forget *forget;
    struct input *input;
    struct reader *reader;
    struct worker *worker;
    struct books *books;  /* the result */
    struct piece *pieces; /* as far as it was recounted, in order */
    size_t piece_count, piece_capacity;
};

/* The offset at which a piece begins. */
static int64_t start_of(const struct recounting *rc, size_t piece)
{
    return piece > 0 ? rc->pieces[piece - 1].to : 0;
}

/* Note what the shard has as a piece, and hand its cells to the store. */
static bool end_piece(struct recounting *rc, const struct stretch *in, struct err *e)
{
    struct shard *shard = rc->worker->lane.shard;
    struct piece piece = {.to = reader_offset(rc->reader), .in = in};
    piece.tail_hash = identity_tail(reader_tail(rc->reader), &piece.tail_len);
    books_init(&piece.books, rc->store->report_count);
    shard_take_books(shard, &piece.books);
    books_add(rc->books, &piece.books);
    rc->pieces = xgrow(rc->pieces, &rc->piece_capacity, rc->piece_count + 1, sizeof *rc->pieces);
    rc->pieces[rc->piece_count++] = piece;
    struct part *part = shard_seal(shard);
    const struct batch batch = {.parts = &part, .part_count = 1};
    bool good = store_forget(rc->store, &batch, rc->known->takes, e);
    shard_give_back(shard, part);
    return good;
}

/* Does the piece that is recounted end here? Each is a batch of a server's store, so it has at most as much
 * input as a batch of an import. */
static bool is_piece_full(const struct recounting *rc)
{
    int64_t bytes = reader_offset(rc->reader) - start_of(rc, rc->piece_count);
    return shard_is_full(rc->worker->lane.shard) ||
           (store_forgets_by_stripes(rc->store) && bytes >= rc->forget->config->aggregate.batch_bytes);
}

/* Recount up to an offset. `in`: the stretch in which all of that lies; NULL: none. `whole`: as one piece. */
static bool recount_to(struct recounting *rc, int64_t to, const struct stretch *in, bool whole, struct err *e)
{
    const int64_t latest_ms = in != NULL ? in->latest_ms : INT64_MAX;
    enum reader_result result;
    reader_end_at(rc->reader, to);
    while ((result = reader_next(rc->reader, &rc->worker->block, WAIT_MS, e)) != READER_END) {
        if (result == READER_FAILED)
            return err_prefix(e, "%s", rc->forget->path);
        if (atomic_load(rc->forget->stop))
            return err_set(e, EX_TEMPFAIL,
                           whole ? "interrupted: run the same command again, which resumes"
                                 : "interrupted; nothing was changed");
        if (result == READER_BLOCK)
            worker_count(rc->worker, latest_ms);
        if (!whole && is_piece_full(rc) && !end_piece(rc, in, e))
            return false;
    }
    return whole || reader_offset(rc->reader) == start_of(rc, rc->piece_count) || end_piece(rc, in, e);
}

/* Is the end of what was recounted the end that is known? */
static bool check_end(const struct recounting *rc, int64_t to, uint64_t tail_hash, uint32_t tail_len,
                      struct err *e)
{
    uint32_t len;
    uint64_t hash = identity_tail(reader_tail(rc->reader), &len);
    return (reader_offset(rc->reader) == to && len == tail_len && hash == tail_hash) ||
           err_set(e, EX_DATAERR, "%s has changed before byte %" PRId64 " since it was counted",
                   rc->forget->path, to);
}

/* Recount all stretches: those with events in the future, and those between them. */
static bool recount_all(struct recounting *rc, struct err *e)
{
    const struct range *range = rc->known->range;
    for (size_t i = 0; i < rc->known->stretch_count; i++) {
        const struct stretch *s = &rc->known->stretches[i];
        if (s->from < reader_offset(rc->reader) || s->to > range->to)
            return err_set(e, EX_DATAERR, "its books contradict each other: verify the store");
        if (!recount_to(rc, s->from, NULL, false, e) || !recount_to(rc, s->to, s, false, e))
            return false;
    }
    return recount_to(rc, range->to, NULL, false, e) &&
           check_end(rc, range->to, range->tail_hash, range->tail_len, e);
}

/* Recount one piece again, and have the store take it out. */
static bool take_piece(struct recounting *rc, size_t i, struct err *e)
{
    const struct piece *piece = &rc->pieces[i], *before = i > 0 ? &rc->pieces[i - 1] : NULL;
    const int64_t from = start_of(rc, i);
    struct range range = *rc->known->range;
    struct books books;
    range.from = piece->to;
    range.to = from;
    range.tail_hash = before != NULL ? before->tail_hash : 0;
    range.tail_len = before != NULL ? before->tail_len : 0;
    range.latest_from = piece->in != NULL ? piece->in->from : -1;
    range.latest_ms = piece->in != NULL ? piece->in->latest_ms : range.latest_ms;
    books_init(&books, rc->store->report_count);
    bool good = (from == 0 || reader_skip(rc->reader, from, e)) &&
                recount_to(rc, piece->to, piece->in, true, e) &&
                check_end(rc, piece->to, piece->tail_hash, piece->tail_len, e);
    shard_take_books(rc->worker->lane.shard, &books);
    if (good && memcmp(books.entries, piece->books.entries,
                       books_count(books.report_count) * sizeof *books.entries) != 0)
        good = err_set(e, EX_DATAERR, "%s has changed meanwhile", rc->forget->path);
    struct part *part = shard_seal(rc->worker->lane.shard);
    const struct batch batch = {
        .ranges = &range, .books = &books, .range_count = 1, .parts = &part, .part_count = 1};
    good = good && store_forget_stripe(rc->store, &batch, rc->known->takes, e);
    shard_give_back(rc->worker->lane.shard, part);
    books_fini(&books);
    return good;
}

/* Take out a source of which nothing was counted, or nothing that is still there. */
static bool take_nothing(struct recounting *rc, struct err *e)
{
    struct range range = *rc->known->range;
    struct books books;
    const struct batch batch = {.ranges = &range, .books = &books, .range_count = 1};
    range.from = range.to;
    range.to = 0;
    range.latest_from = -1;
    books_init(&books, rc->store->report_count);
    bool good = store_forget_stripe(rc->store, &batch, rc->known->takes, e);
    books_fini(&books);
    return good;
}

static bool open_reader(struct recounting *rc, struct err *e)
{
    struct input *in = input_open(rc->forget->path, e);
    if (in == NULL)
        return false;
    input_stop_by(in, rc->forget->stop);
    rc->input = in;
    rc->reader = reader_new(in, (size_t)rc->forget->config->limits.line_max, LAST_LINE_TAKE);
    if (decode_heeds_directives(rc->forget->decode))
        reader_heed_directives(rc->reader);
    return true;
}

static void close_reader(struct recounting *rc)
{
    reader_free(rc->reader);
    input_close(rc->input);
    rc->reader = NULL;
    rc->input = NULL;
}

static bool recount_file(struct recounting *rc, struct err *e)
{
    if (!open_reader(rc, e))
        return false;
    bool good = recount_all(rc, e);
    close_reader(rc);
    return good;
}

/* Take out the pieces, from the last one to the first. */
static bool take_pieces(struct recounting *rc, struct err *e)
{
    bool good = rc->piece_count > 0 || take_nothing(rc, e);
    for (size_t i = rc->piece_count; good && i-- > 0;) {
        good = open_reader(rc, e);
        if (good) {
            good = take_piece(rc, i, e);
            close_reader(rc);
        }
    }
    return good;
}

/* `fn`: what is done with a worker. */
static bool with_worker(struct recounting *rc, bool (*fn)(struct recounting *rc, struct err *e),
                        struct err *e)
{
    const struct config *c = rc->forget->config;
    const struct pipeline_options options = setup_pipeline(c, 1);
    const atomic_bool abandon = false;
    struct worker worker;
    struct lanes lanes;
    lanes_init(&lanes, options.clock);
    const struct worker_options own = {.decode = rc->forget->decode,
                                       .line_max = options.line_max,
                                       .shard = options.shard,
                                       .abandon = &abandon};
    worker_init(&worker, 0, &lanes, rc->store->reports, rc->store->report_count, &own);
    worker_set_decode(&worker, rc->forget->decode, rc->forget->constants);
    shard_set_source(worker.lane.shard, &rc->forget->position->range, NULL);
    rc->worker = &worker;
    bool good = fn(rc, e);
    worker_fini(&worker);
    lanes_fini(&lanes);
    rc->worker = NULL;
    return good;
}

static bool differs(const struct forget *f, const char *report, const char *entry, int64_t stored,
                    int64_t recounted, struct err *e)
{
    return err_set(e, EX_CONFIG,
                   "%s was counted with another configuration: the books%s%s say %s %" PRId64
                   ", the recount says %" PRId64 ". Give the configuration of then by -c, or the steps by "
                   "--decode. Nothing was changed",
                   f->position->range.label, report[0] != '\0' ? " of report " : "", report, entry, stored,
                   recounted);
}

/* Do the recount's books equal those of the store? */
static bool check_books(const struct forget *f, const struct known *k, struct err *e)
{
    char name[BOOK_NAME_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        if (k->books.entries[i] != f->books.entries[i])
            return differs(f, "", books_source_name(i, name), k->books.entries[i], f->books.entries[i], e);
    }
    for (size_t r = 0; r < k->store->report_count; r++) {
        for (int i = 0; i < BOOK_REPORT_COUNT && k->takes[r]; i++) {
            size_t at = BOOK_SOURCE_COUNT + r * BOOK_REPORT_COUNT + (size_t)i;
            if (k->books.entries[at] != f->books.entries[at])
                return differs(f, k->store->reports[r].name, books_report_name(i), k->books.entries[at],
                               f->books.entries[at], e);
        }
    }
    return true;
}

static bool take_file(struct recounting *rc, struct err *e)
{
    struct forget *f = rc->forget;
    if (!recount_file(rc, e) || !check_books(f, rc->known, e))
        return false;
    if (f->dry_run)
        return true;
    return store_forgets_by_stripes(rc->store) ? take_pieces(rc, e)
                                               : store_forget_end(rc->store, rc->known->range, e);
}

/* Without reports nothing was counted that is still there, and nothing is counted again. */
static bool take(struct recounting *rc, struct err *e)
{
    if (rc->store->report_count > 0)
        return with_worker(rc, take_file, e);
    if (rc->forget->dry_run)
        return true;
    return store_forgets_by_stripes(rc->store) ? take_nothing(rc, e)
                                               : store_forget_end(rc->store, rc->known->range, e);
}

static bool know(struct known *k, struct forget *f, struct store *st, struct err *e)
{
    bool good = read_known(k, st, &f->position->range, e);
    for (size_t r = 0; good && r < st->report_count; r++)
        good = check_report(k, r, e);
    return good;
}

/* The books are read once more: beside a server another writer may have changed them before it began. */
static bool take_out(struct forget *f, struct store *st, struct err *e)
{
    struct known k;
    struct recounting rc = {.store = st, .known = &k, .forget = f, .books = &f->books};
    if (!store_forget_begin(st, &f->position->range, e)) {
        store_forget_undo(st);
        return false;
    }
    bool good = know(&k, f, st, e) && take(&rc, e);
    if (!good || f->dry_run)
        store_forget_undo(st);
    for (size_t i = 0; i < rc.piece_count; i++)
        books_fini(&rc.pieces[i].books);
    free(rc.pieces);
    free_known(&k);
    return good;
}

bool forget_file(struct forget *f, struct store *st, struct err *e)
{
    struct known k;
    books_init(&f->books, st->report_count);
    bool good = know(&k, f, st, e) && check_file(f, e);
    free_known(&k);
    return good && take_out(f, st, e);
}
