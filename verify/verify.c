#include "verify/verify.h"

#include "aggregate/batch.h"
#include "aggregate/sample.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/show.h"
#include "ingest/file/reader.h"

#include <inttypes.h>
#include <stdlib.h>

void verify_init(struct verify *v, const struct config *config, struct store *store, FILE *out)
{
    *v = (struct verify){.config = config, .store = store, .out = out};
    v->recounts = xcalloc(store->report_count, sizeof *v->recounts);
    v->missing = xcalloc(store->report_count, sizeof *v->missing);
    for (size_t r = 0; r < store->report_count; r++)
        recount_init(&v->recounts[r], &store->reports[r], (size_t)config->limits.dimension_bytes_max);
}

void verify_fini(struct verify *v)
{
    for (size_t r = 0; r < v->store->report_count; r++)
        recount_fini(&v->recounts[r]);
    free(v->recounts);
    free(v->missing);
}

bool verify_differs(struct verify *v)
{
    if (v->differences++ == VERIFY_PRINTED_MAX)
        fputs("… and more\n", v->out);
    return v->differences <= VERIFY_PRINTED_MAX;
}

static void add_stretch(struct verify_part *b, struct verify_stretch s)
{
    b->stretches = xgrow(b->stretches, &b->stretch_capacity, b->stretch_count + 1, sizeof *b->stretches);
    b->stretches[b->stretch_count++] = s;
}

static void read_source_entry(struct verify_part *b, const char *entry, int64_t value)
{
    char name[BOOK_NAME_BYTES];
    struct verify_stretch s = {.report = -1, .to = value};
    if (sscanf(entry, "latest.%" SCNd64 ".%" SCNd64, &s.from, &s.latest_ms) == 2)
        add_stretch(b, s);
    if (strcmp(entry, "since") == 0)
        b->begun = value;
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        if (strcmp(entry, books_source_name(i, name)) == 0)
            *books_source(&b->stored, i) = value;
    }
}

static void read_report_entry(struct verify_part *b, int report, const char *entry, int64_t value)
{
    struct verify_stretch s = {.report = report, .to = value};
    if (strcmp(entry, "since") == 0)
        b->since[report] = value;
    else if (strcmp(entry, "until") == 0)
        b->until[report] = value;
    else if (sscanf(entry, "gap.%" SCNd64, &s.from) == 1)
        add_stretch(b, s);
    else if (sscanf(entry, "filled.%" SCNd64 ".%" SCNd64 ".%" SCNd64, &s.from, &s.filled.from_ms,
                    &s.filled.to_ms) == 3) {
        s.is_filled = true;
        add_stretch(b, s);
    } else if (sscanf(entry, "kept.%" SCNd64 ".%" SCNd64 ".%" SCNd64, &s.from, &s.filled.from_ms,
                      &s.filled.to_ms) == 3) {
        s.is_kept = true;
        add_stretch(b, s);
    }
    for (int i = 0; i < BOOK_REPORT_COUNT; i++) {
        if (strcmp(entry, books_report_name(i)) == 0)
            *books_report(&b->stored, (size_t)report, i) = value;
    }
}

static bool read_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct verify_part *b = context;
    if (strcmp(source, b->range->source) != 0 || strcmp(partition, b->range->partition) != 0)
        return true;
    int n = store_find_report(b->v->store, slice_text(report));
    if (report[0] == '\0')
        read_source_entry(b, entry, value);
    else if (n >= 0)
        read_report_entry(b, n, entry, value);
    return true;
}

static const struct verify_stretch *find_stretch(const struct verify_part *b, int report, int64_t offset)
{
    for (size_t i = 0; i < b->stretch_count; i++) {
        const struct verify_stretch *s = &b->stretches[i];
        if (s->report == report && !s->is_filled && !s->is_kept && offset >= s->from && offset < s->to)
            return s;
    }
    return NULL;
}

/* Does the report count records at this offset? */
static bool is_counted(const struct verify_part *b, size_t r, int64_t offset)
{
    return b->since[r] >= 0 && offset >= b->since[r] && offset < b->until[r] &&
           find_stretch(b, (int)r, offset) == NULL;
}

/* Does it count an event of this time at this offset? */
static bool is_event_counted(const struct verify_part *b, size_t r, int64_t offset, int64_t at_ms)
{
    bool is = is_counted(b, r, offset);
    for (size_t i = 0; i < b->stretch_count; i++) {
        const struct verify_stretch *s = &b->stretches[i];
        if (s->report != (int)r || offset < s->from || offset >= s->to || at_ms < s->filled.from_ms ||
            at_ms >= s->filled.to_ms)
            continue;
        if (s->is_kept)
            return false;
        is = is || s->is_filled;
    }
    return is;
}

/* Was an event in the future when it was counted? If the batch had no such event, this one was not. Before
 * the books of the source begin, the record's own time judges. */
static bool was_future(const struct verify_part *b, int64_t at_ms, const struct record *r)
{
    const struct verify_stretch *s = find_stretch(b, -1, r->offset);
    if (r->offset < b->begun)
        return r->timestamp_ms >= 0 &&
               at_ms > record_latest(r, INT64_MIN, b->v->config->limits.future_max_ms);
    return s != NULL && at_ms > record_latest(r, s->latest_ms, b->v->config->limits.future_max_ms);
}

/* Recount a line that has no event, and is not a reject. */
static void recount_directive(struct verify_part *b, int64_t offset)
{
    struct verify *v = b->v;
    v->events++;
    ++*books_source(&b->recounted, BOOK_CONSUMED);
    ++*books_source(&b->recounted, BOOK_PARSED);
    for (size_t r = 0; r < v->store->report_count; r++) {
        if (!is_counted(b, r, offset))
            continue;
        ++*books_report(&b->recounted, r, BOOK_REPORT_PARSED);
        ++*books_report(&b->recounted, r, BOOK_FILTERED);
    }
}

/* Recount one event; `ev` is NULL for a reject, and `why` its reason. */
static void recount_one(struct verify_part *b, const struct event *ev, struct reject why,
                        const struct record *record)
{
    struct verify *v = b->v;
    int64_t offset = record->offset;
    if (ev != NULL && was_future(b, ev->at_ms, record)) {
        why.reason = REJECT_FUTURE;
        ev = NULL;
    }
    v->events++;
    if (offset >= b->begun) {
        ++*books_source(&b->recounted, BOOK_CONSUMED);
        ++*books_source(&b->recounted, ev != NULL ? BOOK_PARSED : BOOK_REJECTED + (int)why.reason);
    }
    for (size_t r = 0; ev != NULL && r < v->store->report_count; r++) {
        if (!is_event_counted(b, r, offset, ev->at_ms))
            continue;
        ++*books_report(&b->recounted, r, BOOK_REPORT_PARSED);
        ++*books_report(&b->recounted, r,
                        recount_add(&v->recounts[r], ev, &b->origin) ? BOOK_COUNTED : BOOK_FILTERED);
    }
}

void verify_record(struct verify_part *b, struct chain *chain, const struct record *r)
{
    struct event ev;
    struct reject why = {0};
    struct slice bytes;
    chain_start(chain, r);
    uint32_t element = 0;
    for (enum chain_result what; (what = chain_next(chain, &ev, &why, &bytes)) != CHAIN_END; element++) {
        ev.order = record_order(r->offset, element);
        if (what == CHAIN_DIRECTIVE)
            recount_directive(b, r->offset);
        else
            recount_one(b, what == CHAIN_EVENT ? &ev : NULL, why, r);
    }
    chain_flush(chain);
}

static void recount_block(struct verify_part *b, struct chain *chain, const struct block *block)
{
    if (chain_heeds_directives(chain))
        chain_set_directive(chain, text_slice(&block->directive));
    for (const char *p = block->data, *end; p < block->data + block->len; p = end + 1) {
        struct record r = {
            .partition = RECORD_NO_PARTITION, .offset = block->from + (p - block->data), .timestamp_ms = -1};
        end = memchr(p, '\n', (size_t)(block->data + block->len - p));
        r.value = slice_of(p, (size_t)(end - p));
        if (r.offset >= b->range->to)
            continue;
        if (r.value.len > (size_t)b->v->config->limits.line_max && !chain_heeds_directives(chain))
            recount_one(b, NULL, (struct reject){REJECT_TOO_LONG, 0}, &r);
        else
            verify_record(b, chain, &r);
    }
}

/* Are there lines behind what was counted? If its rest cannot be read, nothing says that it has lines. */
static bool has_more(struct reader *rd, struct block *block, int64_t to)
{
    struct err ignored;
    return reader_offset(rd) > to || reader_next(rd, block, -1, &ignored) == READER_BLOCK;
}

static bool recount_file(struct verify_part *b, const char *path, const struct decode *decode,
                         const struct constants *constants, bool *more, struct err *e)
{
    size_t line_max = (size_t)b->v->config->limits.line_max;
    struct input *in = input_open(path, e);
    struct block block;
    enum reader_result result = READER_BLOCK;
    if (in == NULL)
        return false;
    struct reader *rd = reader_new(in, line_max, LAST_LINE_TAKE);
    if (decode_heeds_directives(decode))
        reader_heed_directives(rd);
    struct chain *chain = chain_new(decode, line_max);
    chain_set_constants(chain, constants);
    block_init(&block, line_max);
    while (reader_offset(rd) < b->range->to && (result = reader_next(rd, &block, -1, e)) == READER_BLOCK)
        recount_block(b, chain, &block);
    *more = result == READER_BLOCK && has_more(rd, &block, b->range->to);
    block_fini(&block);
    chain_free(chain);
    reader_free(rd);
    input_close(in);
    return result != READER_FAILED || err_prefix(e, "%s", path);
}

/* `less_may_be`: only part of what was counted is recounted. */
static void compare_entry(struct verify_part *b, const char *report, const char *entry, int64_t stored,
                          int64_t recounted, bool less_may_be)
{
    struct verify *v = b->v;
    char label[SHOW_BYTES];
    v->compared++;
    v->bounded += less_may_be && recounted != stored;
    if (stored != recounted && !(less_may_be && recounted < stored) && verify_differs(v))
        fprintf(v->out, "%s: books%s%s: %s is %" PRId64 ", recounted %" PRId64 "%s\n",
                show(b->range->label, label), report[0] != '\0' ? " of " : "", report, entry, stored,
                recounted, less_may_be ? " of what is left" : "");
}

/* Note missing events. Late events were not counted, but may be recounted: no time bucket can be held to
 * them. */
static void note_missing(struct verify_part *b, size_t report)
{
    struct verify_missing *missing = &b->v->missing[report];
    int64_t late = *books_report(&b->stored, report, BOOK_LATE);
    int64_t events = *books_report(&b->stored, report, BOOK_COUNTED) + late -
                     *books_report(&b->recounted, report, BOOK_COUNTED);
    missing->events = value_add(missing->events, events > 0 ? events : 0);
    missing->late = value_add(missing->late, late);
}

static void compare_report_books(struct verify_part *b, size_t r, bool less_may_be)
{
    const char *name = b->v->store->reports[r].name;
    /* An event wrongly called late would show in the time buckets. */
    int64_t late = *books_report(&b->stored, r, BOOK_LATE);
    if (less_may_be)
        note_missing(b, r);
    int64_t counted = *books_report(&b->recounted, r, BOOK_COUNTED);
    late = less_may_be && counted < late ? counted : late;
    *books_report(&b->recounted, r, BOOK_LATE) += late;
    *books_report(&b->recounted, r, BOOK_COUNTED) -= late;
    for (int i = 0; i < BOOK_REPORT_COUNT; i++)
        compare_entry(b, name, books_report_name(i), *books_report(&b->stored, r, i),
                      *books_report(&b->recounted, r, i), less_may_be);
}

static void compare_books(struct verify_part *b, bool less_may_be)
{
    struct verify *v = b->v;
    char name[BOOK_NAME_BYTES], label[SHOW_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++)
        compare_entry(b, "", books_source_name(i, name), *books_source(&b->stored, i),
                      *books_source(&b->recounted, i), less_may_be);
    for (size_t r = 0; r < v->store->report_count; r++)
        compare_report_books(b, r, less_may_be);
    if (!books_balance(&b->stored) && verify_differs(v))
        fprintf(v->out, "%s: the books do not balance\n", show(b->range->label, label));
}

bool verify_begin(struct verify_part *b, struct verify *v, const struct position *position, struct err *e)
{
    size_t count = v->store->report_count;
    *b = (struct verify_part){.v = v,
                              .range = &position->range,
                              .origin = {sample_salt(position->range.source, position->range.partition),
                                         position->range.source, position->range.partition}};
    b->since = xcalloc(count, sizeof *b->since);
    b->until = xcalloc(count, sizeof *b->until);
    for (size_t r = 0; r < count; r++)
        b->since[r] = -1;
    books_init(&b->stored, count);
    books_init(&b->recounted, count);
    if (store_books(v->store, read_book, b, e))
        return true;
    (void)verify_end(b, VERIFY_NOTHING);
    return false;
}

int64_t verify_end(struct verify_part *b, enum verify_extent extent)
{
    int64_t missing = *books_source(&b->stored, BOOK_CONSUMED) - *books_source(&b->recounted, BOOK_CONSUMED);
    if (extent != VERIFY_NOTHING)
        compare_books(b, extent == VERIFY_REST && missing > 0);
    books_fini(&b->recounted);
    books_fini(&b->stored);
    free(b->since);
    free(b->until);
    free(b->stretches);
    return missing;
}

bool verify_gone(struct verify *v, const struct position *position, int64_t *missing, struct err *e)
{
    struct verify_part b;
    if (!verify_begin(&b, v, position, e))
        return false;
    *missing = verify_end(&b, VERIFY_REST);
    return true;
}

bool verify_file(struct verify *v, const char *path, const struct decode *decode,
                 const struct constants *constants, const struct position *position, bool *more,
                 struct err *e)
{
    struct verify_part b;
    if (!verify_begin(&b, v, position, e))
        return false;
    bool good = recount_file(&b, path, decode, constants, more, e);
    (void)verify_end(&b, good ? VERIFY_WHOLE : VERIFY_NOTHING);
    return good;
}
