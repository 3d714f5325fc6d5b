#include "daemon/count/feed.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

void feed_init(struct feed *f, struct feeds *shared, uint32_t number, const atomic_bool *abandon,
               struct heartbeat *heartbeat, lane_reject_fn *reject, void (*before_seal)(void *),
               void *context)
{
    *f = (struct feed){.lane = {.lanes = &shared->lanes,
                                .abandon = abandon,
                                .heartbeat = heartbeat,
                                .reject = reject,
                                .context = context},
                       .shared = shared,
                       .before_seal = before_seal};
    f->lane.shard = shard_new(number, shared->reports, shared->report_count, &shared->shard);
}

static void delivery_fini(struct delivery *d)
{
    for (size_t i = 0; i < d->range_capacity; i++)
        books_fini(&d->books[i]);
    free(d->ranges);
    free(d->books);
    free(d->rejects);
    text_fini(&d->samples);
    dead_letters_fini(&d->dead_letters);
}

void feed_fini(struct feed *f)
{
    shard_free(f->lane.shard);
    derive_release(f->data);
    delivery_fini(&f->open);
    delivery_fini(&f->sealed);
}

void feed_begin(struct feed *f, int64_t now_ms)
{
    ASSERT(f->open.range_count == 0);
    f->begun_ms = now_ms;
    derive_release(f->data);
    f->data = derive_hold(f->shared->derive);
    f->lane.future_max_ms = atomic_load(&f->shared->future_max_ms);
    f->lane.latest_ms = record_clock_latest(clock_wall_ms(f->shared->lanes.clock), f->lane.future_max_ms);
}

size_t feed_add_range(struct feed *f, const struct range *r, const struct config_source *source)
{
    struct delivery *d = &f->open;
    size_t before = d->range_capacity;
    d->ranges = xgrow(d->ranges, &d->range_capacity, d->range_count + 1, sizeof *d->ranges);
    if (d->range_capacity > before)
        d->books = xrealloc(d->books, d->range_capacity * sizeof *d->books);
    for (size_t i = before; i < d->range_capacity; i++)
        books_init(&d->books[i], f->shared->report_count);
    d->rejects = xgrow(d->rejects, &d->rejects_capacity, d->range_count + 1, sizeof *d->rejects);
    d->ranges[d->range_count] = *r;
    d->rejects[d->range_count] = (struct range_rejects){.source = source};
    books_clear(&d->books[d->range_count]);
    return d->range_count++;
}

void feed_count_by(struct feed *f, struct chain *chain, size_t range)
{
    ASSERT(range < f->open.range_count);
    derived_set_data(chain_derived(chain), f->data);
    f->range = range;
    f->open.ranges[range].builds = derived_builds(chain_derived(chain));
}

void feed_take_books(struct feed *f)
{
    struct books *b = &f->open.books[f->range];
    struct range_rejects *rr = &f->open.rejects[f->range];
    int64_t parsed = b->entries[BOOK_PARSED];
    int64_t before = books_rejected(b) - b->entries[BOOK_REJECTED + REJECT_TOMBSTONE];
    shard_take_books(f->lane.shard, b);
    rr->records += books_rejected(b) - b->entries[BOOK_REJECTED + REJECT_TOMBSTONE] - before;
    if (b->entries[BOOK_PARSED] > parsed)
        rr->records = 0, rr->len = 0;
}

/* An empty line says nothing of the format, nor does a tombstone. */
static void sample_range(struct feed *f, struct slice record, enum reject_reason reason)
{
    struct delivery *d = &f->open;
    struct range_rejects *rr = &d->rejects[f->range];
    if (rr->len > 0 || reason == REJECT_EMPTY || reason == REJECT_TOMBSTONE ||
        record.len > REJECTS_FIT_BYTES || record.len > FEED_SAMPLES_BYTES - d->samples.len)
        return;
    rr->at = d->samples.len;
    rr->len = record.len;
    text_add(&d->samples, record.ptr, record.len);
}

_Static_assert(REJECT_COUNT <= 64, "noted_rejects has a bit for each reason");

void feed_note_reject(struct feed *f, const struct decode *decode, const struct record *r, struct slice bytes,
                      struct reject why)
{
    const uint64_t bit = UINT64_C(1) << why.reason;
    sample_range(f, r->value, why.reason);
    if ((f->noted_rejects & bit) != 0)
        return;
    f->noted_rejects |= bit;
    rejects_note(f->shared->rejects, decode, r, bytes, why);
}

void feed_look_at_first(const struct decode *decode, struct slice bytes, const char *label)
{
    char quoted_label[LOG_QUOTE_BYTES], quoted_fits[LOG_QUOTE_BYTES];
    struct text fits = {0};
    struct fit_format found = {0};
    struct slice line = slice_cut(&bytes, '\n');
    if (line.len <= REJECTS_FIT_BYTES && fit_moved(decode, line, &found)) {
        fit_print(&found, &fits);
        log_limited(LOG_LEVEL_WARN, "fields_moved",
                    "source=%s decode=%s fits=%s next=\"counting it all the same\"",
                    log_quote(label, quoted_label), clf_format_name(decode->steps[0].format),
                    log_quote(fits.ptr, quoted_fits));
    }
    text_fini(&found.steps);
    text_fini(&fits);
}

/* Hand the open batch over. Pre: the previous sealed part was taken back, and the books were taken. */
static void seal(struct feed *f)
{
    struct lanes *ls = f->lane.lanes;
    struct part *part = shard_seal(f->lane.shard);
    if (f->before_seal != NULL)
        f->before_seal(f->lane.context);
    pthread_mutex_lock(&ls->lock);
    struct delivery used = f->sealed;
    lane_hand_over(&f->lane, part);
    f->sealed = f->open;
    f->open = used;
    pthread_cond_signal(&ls->sealed);
    pthread_mutex_unlock(&ls->lock);
    f->open.range_count = 0;
    f->open.messages = 0;
    f->noted_rejects = 0;
    f->lane.is_full_of_raw = false;
    dead_letters_clear(&f->open.dead_letters);
    text_clear(&f->open.samples);
    failpoint(FAILPOINT_SEAL);
}

bool feed_drain(struct feed *f, int64_t until_ms)
{
    if (f->open.range_count > 0) {
        if (!lane_take_back(&f->lane, until_ms))
            return false;
        seal(f);
    }
    return lane_take_back(&f->lane, until_ms);
}

bool feed_is_full(const struct feed *f)
{
    return f->lane.is_full_of_raw || f->open.dead_letters.bytes.len >= DEAD_LETTERS_BYTES_MAX;
}

bool feed_seal_if_due(struct feed *f, int64_t now_ms)
{
    if (f->open.range_count == 0)
        return true;
    int64_t flush_ms = atomic_load(&f->shared->flush_ms), age_ms = now_ms - f->begun_ms;
    bool must_wait = shard_is_full(f->lane.shard) || feed_is_full(f) ||
                     (f->grow_max > 0 && age_ms >= f->grow_max * flush_ms);
    if (!must_wait && !(age_ms >= flush_ms && lane_is_free(&f->lane)))
        return true;
    if (!lane_take_back(&f->lane, LANE_FOREVER_MS))
        return false;
    seal(f);
    return !shard_must_wait(f->lane.shard) || lane_take_back(&f->lane, LANE_FOREVER_MS);
}

struct batch feed_batch(struct feed *f, struct part **part)
{
    ASSERT(lane_needs_applying(&f->lane));
    *part = f->lane.part;
    return (struct batch){.ranges = f->sealed.ranges,
                          .books = f->sealed.books,
                          .range_count = f->sealed.range_count,
                          .parts = part,
                          .part_count = 1};
}
