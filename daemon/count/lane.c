#include "daemon/count/lane.h"

#include "base/check.h"
#include "base/clock.h"

void lanes_init(struct lanes *ls, const struct clock *clock)
{
    ls->clock = clock;
    pthread_mutex_init(&ls->lock, NULL);
    clock_cond_init(&ls->sealed);
    clock_cond_init(&ls->applied);
}

void lanes_fini(struct lanes *ls)
{
    pthread_cond_destroy(&ls->applied);
    pthread_cond_destroy(&ls->sealed);
    pthread_mutex_destroy(&ls->lock);
}

void lanes_abandon(struct lanes *ls, atomic_bool *abandon)
{
    pthread_mutex_lock(&ls->lock);
    atomic_store(abandon, true);
    pthread_cond_broadcast(&ls->applied);
    pthread_mutex_unlock(&ls->lock);
}

/* Drop events that the filter does not want. */
static void filter_events(struct lane *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->event_count; i++) {
        if (backfill_wants(l->filter, l->events[i].at_ms))
            l->events[kept++] = l->events[i];
    }
    l->event_count = kept;
}

void lane_add(struct lane *l)
{
    if (UNLIKELY(l->filter != NULL))
        filter_events(l);
    shard_add(l->shard, l->events, l->event_count);
    l->event_count = 0;
    l->is_full_of_raw = shard_is_full_of_raw(l->shard);
}

void lane_reject(struct lane *l, struct chain *chain, const struct record *r, struct slice bytes,
                 struct reject why)
{
    struct record shown = *r;
    shard_reject(l->shard, why.reason);
    chain_hide(chain, &shown, &bytes, &why);
    l->reject(l->context, &shown, bytes, why);
}

void lane_record(struct lane *l, struct chain *chain, const struct record *r)
{
    const int64_t latest_ms = record_latest(r, l->latest_ms, l->future_max_ms);
    enum chain_result what;
    struct reject why;
    struct slice bytes;
    uint32_t element = 0;
    chain_start(chain, r);
    for (;; element++) {
        struct event *ev = &l->events[l->event_count];
        what = chain_next(chain, ev, &why, &bytes);
        if (what == CHAIN_END)
            break;
        if (UNLIKELY(what == CHAIN_DIRECTIVE)) {
            /* It has no time: it counts with all events that are left, not with those of some times. */
            if (l->filter == NULL || backfill_has_all(&l->filter->only))
                shard_note_directive(l->shard);
            continue;
        }
        if (what == CHAIN_EVENT && UNLIKELY(ev->at_ms > latest_ms)) {
            what = CHAIN_REJECT;
            why = (struct reject){REJECT_FUTURE, 1};
        }
        if (UNLIKELY(what == CHAIN_REJECT)) {
            lane_reject(l, chain, r, bytes, why);
            continue;
        }
        ev->order = record_order(r->offset, element);
        if (++l->event_count == SHARD_EVENTS_MAX)
            lane_add(l);
    }
    /* The chain's memory can be reused once no event needs it and the chain has nothing more to say of the
     * record. */
    if (element != 1 || chain_holds_much(chain))
        lane_add(l);
    if (l->event_count == 0)
        chain_flush(chain);
}

void lane_block(struct lane *l, struct chain *chain, const struct block *b, size_t line_max)
{
    struct decoder *decoder = chain_decoder(chain); /* NULL: records are no plain lines */
    const char *p = b->data, *end = p + b->len;
    bool sees_all = chain_heeds_directives(chain);
    chain_flush(chain);
    if (sees_all)
        chain_set_directive(chain, text_slice(&b->directive));
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        ASSERT(newline != NULL);
        const struct slice line = slice_of(p, (size_t)(newline - p));
        const int64_t offset = b->from + (p - b->data);
        struct reject why = {REJECT_TOO_LONG, line_max + 1};
        bool is_short = line.len <= line_max;
        p = newline + 1;
        if (LIKELY(decoder != NULL && is_short && lane_line(l, decoder, line, offset, &why)))
            continue;
        const struct record r = {
            .value = line, .partition = RECORD_NO_PARTITION, .offset = offset, .timestamp_ms = -1};
        if (decoder == NULL && (is_short || sees_all))
            lane_record(l, chain, &r);
        else
            lane_reject(l, chain, &r, line, why);
    }
    lane_add(l); /* the events' slices point into the block */
}

void lane_hand_over(struct lane *l, struct part *part)
{
    ASSERT(l->part == NULL);
    l->part = part;
    l->is_applied = false;
}

void lane_note_applied(struct lane *l)
{
    ASSERT(lane_needs_applying(l));
    l->is_applied = true;
    pthread_cond_broadcast(&l->lanes->applied);
}

bool lane_is_free(struct lane *l)
{
    pthread_mutex_lock(&l->lanes->lock);
    bool is_free = !lane_needs_applying(l);
    pthread_mutex_unlock(&l->lanes->lock);
    return is_free;
}

bool lane_take_back(struct lane *l, int64_t until_ms)
{
    struct lanes *ls = l->lanes;
    bool has_time = true;
    if (l->part == NULL) /* only this thread hands parts over */
        return true;
    pthread_mutex_lock(&ls->lock);
    while (!l->is_applied && !atomic_load(l->abandon) && has_time) {
        heartbeat_rest(l->heartbeat);
        has_time = clock_wait(ls->clock, &ls->applied, &ls->lock, until_ms);
        heartbeat_turn(l->heartbeat);
    }
    struct part *part = l->is_applied ? l->part : NULL;
    if (part != NULL)
        l->part = NULL;
    pthread_mutex_unlock(&ls->lock);
    if (part != NULL)
        shard_give_back(l->shard, part);
    return part != NULL;
}
