/* The ingest thread of a follower. */
#include "base/log.h"
#include "base/mem.h"
#include "daemon/file/follow_internal.h"
#include "ingest/file/identity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define GROW_MAX        4   /* a batch grows to GROW_MAX × flush_ms while the writer is busy */
#define BLOCKS_IN_A_ROW 16  /* of one file, while others wait */
#define FATE_MS         200 /* between two looks at what has a file's place; with many files it is longer */
#define FILES_PER_MS    3   /* with many files, the pause grows so that looking at idle ones stays cheap */

bool follow_is_ending(const struct follow *fo)
{
    return engine_is_stopping(fo->engine) || atomic_load(&fo->end) || atomic_load(&fo->abandon);
}

void follow_fail(struct follow *fo, const struct err *why)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    if (!fo->read_failed)
        fo->error = *why;
    fo->read_failed = true;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    atomic_store(&fo->end, true);
}

enum followed_state followed_get_state(struct follow *fo, const struct followed *f)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    enum followed_state state = f->state;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    return state;
}

void followed_set_state(struct follow *fo, struct followed *f, enum followed_state state)
{
    struct lanes *ls = fo->feed.lane.lanes;
    pthread_mutex_lock(&ls->lock);
    f->state = state;
    pthread_cond_signal(&ls->sealed);
    pthread_mutex_unlock(&ls->lock);
}

/* The lane's reject function. */
static void note_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    struct follow *fo = context;
    struct record of_file = *r;
    of_file.topic = slice_text(fo->current->range.label);
    of_file.partition = RECORD_NO_PARTITION;
    if (fo->current->handed != NULL)
        samples_add(&fo->current->handed->samples, bytes, r->offset, why);
    feed_note_reject(&fo->feed, &fo->current->of->config->decode, &of_file, bytes, why);
    if (fo->feed.shared->has_dead_letters)
        dead_letters_add(&fo->feed.open.dead_letters, &of_file, bytes, why);
}

/* The feed calls it before it seals. */
static void finish_ranges(void *context)
{
    struct follow *fo = context;
    for (size_t i = 0; i < fo->feed.open.range_count; i++) {
        if (fo->open[i] != NULL)
            fo->open[i]->is_in_batch = false;
    }
    fo->has_ends = false;
    struct followed **used = fo->sealed;
    size_t used_capacity = fo->sealed_capacity;
    fo->sealed = fo->open;
    fo->sealed_capacity = fo->open_capacity;
    fo->open = used;
    fo->open_capacity = used_capacity;
}

void follow_init_feed(struct follow *fo, uint32_t number, struct heartbeat *heartbeat)
{
    feed_init(&fo->feed, &fo->engine->feeds, number, &fo->abandon, heartbeat, note_reject, finish_ranges, fo);
    fo->feed.grow_max = GROW_MAX;
    block_init(&fo->block, fo->engine->feeds.line_max);
}

void follow_fini_feed(struct follow *fo)
{
    feed_fini(&fo->feed);
    block_fini(&fo->block);
    free(fo->open);
    free(fo->sealed);
}

/* Put a range into the open batch, which begins with its first one. */
static size_t put_range(struct follow *fo, const struct range *r, struct followed *of)
{
    if (fo->feed.open.range_count == 0)
        feed_begin(&fo->feed, follow_now_ms(fo));
    bool is_configured = of != NULL && of->handed == NULL;
    size_t index = feed_add_range(&fo->feed, r, is_configured ? of->of->config : NULL);
    fo->open = xgrow(fo->open, &fo->open_capacity, index + 1, sizeof(struct followed *));
    fo->open[index] = of;
    return index;
}

static bool has_range_of(const struct follow *fo, const char *source)
{
    bool has = false;
    for (size_t i = 0; i < fo->feed.open.range_count && !has; i++)
        has = strcmp(fo->feed.open.ranges[i].source, source) == 0;
    return has;
}

/* Put the ends of files into the open batch. */
static void put_ends(struct follow *fo, struct followed *f)
{
    for (size_t i = 0; i < f->answer.ending_count; i++) {
        if (!has_range_of(fo, f->answer.endings[i].source))
            (void)put_range(fo, &f->answer.endings[i], NULL);
    }
    fo->has_ends |= f->answer.ending_count > 0;
    f->answer.ending_count = 0;
}

/* Make sure that the open batch has a range of the file. With its first one, the files before it end. */
static void add_range(struct follow *fo, struct followed *f)
{
    if (f->is_in_batch)
        return;
    put_ends(fo, f);
    f->range.from = f->range.to;
    f->index = put_range(fo, &f->range, f);
    range_set_latest(&fo->feed.open.ranges[f->index], &f->latest, fo->feed.lane.latest_ms);
    f->pending++;
    f->is_in_batch = true;
    f->range.state = RANGE_UNCHANGED;
}

/* A young log tells more of its first bytes as it grows. */
static void extend_head(struct followed *f)
{
    char head[IDENTITY_PREFIX_BYTES_MAX];
    if (f->head.len == 0 || f->head.len == IDENTITY_PREFIX_BYTES_MAX)
        return;
    size_t len = input_head(f->source.in, head, sizeof head);
    if (len <= f->head.len || !identity_matches(f->head, slice_of(head, len)))
        return;
    f->head = identity_of(slice_of(head, len));
    source_set_head(&f->range, f->head);
}

/* Move the end of the file's range to where the reader is. */
static void advance(struct follow *fo, struct followed *f)
{
    struct range *r = &fo->feed.open.ranges[f->index];
    extend_head(f);
    r->witnesses = f->range.witnesses;
    f->range.to = r->to = reader_offset(f->source.reader);
    r->tail_hash = identity_tail(reader_tail(f->source.reader), &r->tail_len);
    f->read_to = r->to;
}

static void count_block(struct follow *fo, struct followed *f, int64_t at_ms)
{
    struct shard *shard = fo->feed.lane.shard;
    add_range(fo, f);
    fo->current = f;
    shard_set_source(shard, &f->range, &f->of->config->raw);
    feed_count_by(&fo->feed, f->of->chain, f->index);
    chain_set_constants(f->of->chain, f->handed != NULL ? &f->handed->constants : &f->constants);
    if (f->consumed == 0)
        feed_look_at_first(&f->of->config->decode, slice_of(fo->block.data, fo->block.len), f->range.label);
    lane_block(&fo->feed.lane, f->of->chain, &fo->block, fo->feed.shared->line_max);
    struct books *books = &fo->feed.open.books[f->index];
    int64_t before = books->entries[BOOK_CONSUMED];
    feed_take_books(&fo->feed);
    f->consumed += books->entries[BOOK_CONSUMED] - before;
    if (f->handed != NULL) {
        f->handed->consumed = f->consumed;
        f->handed->offset = fo->block.to;
        f->handed->raw_offset = reader_raw_offset(f->source.reader);
    }
    fo->feed.open.messages += books->entries[BOOK_CONSUMED] - before;
    fo->feed.bytes = (int64_t)shard_bytes(shard);
    f->block_ms = at_ms;
    advance(fo, f);
}

/* Is a rotated file complete? A server may still write to the newest one. */
static bool is_rotated_left(const struct follow *fo, const struct followed *f, int64_t at_ms)
{
    int64_t now_ms = clock_wall_ms(fo->feed.shared->lanes.clock);
    return f->answer.is_final || now_ms - input_changed_ms(f->source.in) >= RENAMED_QUIET_MS ||
           at_ms - f->opened_ms >= RENAMED_MAX_MS;
}

/* Another file has the log's place. Only now the folder shows whether others came between. */
static void see_next(struct followed *f)
{
    if (f->has_seen_next || input_held_fd(f->source.in) < 0)
        return;
    f->has_seen_next = true;
    f->came_next = survey_came_next(f->path, f->of->config->olddir, f->source.in, f->head);
}

/* Is the file complete, so that its end is final? */
static bool is_left(const struct follow *fo, struct followed *f, int64_t at_ms)
{
    if (f->answer.what == SURVEY_ROTATED)
        return is_rotated_left(fo, f, at_ms);
    if (at_ms < f->fate_ms)
        return false;
    f->fate_ms = at_ms + FATE_MS + (int64_t)fo->turn_count;
    enum input_fate fate = reader_fate(f->source.reader);
    f->was_truncated = fate == INPUT_TRUNCATED;
    see_next(f);
    if (fate != INPUT_RENAMED) {
        f->renamed_ms = 0;
        return fate != INPUT_STANDS;
    }
    if (f->renamed_ms == 0)
        f->renamed_ms = at_ms;
    int64_t since_ms = f->block_ms > f->renamed_ms ? f->block_ms : f->renamed_ms;
    return at_ms - since_ms >= RENAMED_QUIET_MS || at_ms - f->renamed_ms >= RENAMED_MAX_MS;
}

/* Leave a file. Its last byte may be the line feed of a line that was counted: that belongs to a range,
 * too. */
static void leave(struct follow *fo, struct followed *f, enum followed_state state)
{
    if (reader_offset(f->source.reader) > f->range.to) {
        add_range(fo, f);
        advance(fo, f);
    }
    followed_set_state(fo, f, state);
}

static void tell_caught_up(struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (!f->has_caught_up)
        log_info("caught_up", "source=%s offset=%" PRId64 " consumed=%" PRId64,
                 log_quote(f->range.label, label), reader_offset(f->source.reader), f->consumed);
    f->has_caught_up = true;
}

/* Standard input alone is waited for by its reader, so that its lines are taken at once. */
static bool waits_itself(const struct follow *fo)
{
    return fo->turn_count == 1 && followed_is_stdin(fo->turn[0]);
}

/* Put a file that is new to the store into a batch before it has a line: from then on the store knows
 * that it is followed. */
static void put_new(struct follow *fo, struct followed *f)
{
    if (f->range.state == RANGE_UNCHANGED || f->is_in_batch || f->answer.what == SURVEY_NOTHING)
        return;
    add_range(fo, f);
    advance(fo, f);
}

/* End a file that was handed over, and cannot be read to its end. */
static void fail_handed(struct follow *fo, struct followed *f, const struct err *why)
{
    f->failure = xcalloc(1, sizeof *f->failure);
    *f->failure = *why;
    leave(fo, f, FOLLOWED_ENDED);
}

/* Read one file for a while. False: end the thread. *read: something was read. */
static bool read_file(struct follow *fo, struct followed *f, bool *read)
{
    struct err e;
    if (f->must_turn) {
        f->has_turned = true;
        leave(fo, f, FOLLOWED_LEFT);
        return true;
    }
    if (fo->has_ends && !f->is_in_batch && has_range_of(fo, f->source.range.source))
        return feed_seal_if_due(&fo->feed, follow_now_ms(fo)); /* it has come back: after this batch */
    if (f->handed != NULL && atomic_load(&f->handed->is_left)) {
        err_set_retryable(&e, EX_TEMPFAIL, "the importer has gone");
        fail_handed(fo, f, &e);
        return true;
    }
    put_new(fo, f);
    for (int i = 0; i < BLOCKS_IN_A_ROW; i++) {
        int64_t at_ms = follow_now_ms(fo);
        heartbeat_turn(fo->feed.lane.heartbeat);
        switch (reader_next(f->source.reader, &fo->block, waits_itself(fo) ? FOLLOW_WAIT_MS : 0, &e)) {
        case READER_BLOCK:
            *read = true;
            count_block(fo, f, at_ms);
            break;
        case READER_WAIT:
            return feed_seal_if_due(&fo->feed, at_ms);
        case READER_END:
            if (followed_is_stdin(f) || f->handed != NULL)
                leave(fo, f, FOLLOWED_ENDED);
            else if (is_left(fo, f, at_ms))
                leave(fo, f, FOLLOWED_LEFT);
            else
                tell_caught_up(f);
            return feed_seal_if_due(&fo->feed, at_ms);
        case READER_FAILED:
            if (f->handed != NULL) {
                fail_handed(fo, f, &e);
                return true;
            }
            f->is_damaged = e.code == EX_DATAERR && f->answer.what == SURVEY_ROTATED;
            if (f->is_damaged)
                leave(fo, f, FOLLOWED_LEFT);
            else if (!e.retryable || !follow_is_ending(fo)) /* else the stop interrupted it */
                follow_fail(fo, &e);
            return true;
        }
        if (!feed_seal_if_due(&fo->feed, at_ms))
            return false;
        if (follow_is_ending(fo))
            break;
    }
    return true;
}

/* Only this thread takes a file out of the open state. */
static bool is_open(struct follow *fo, const struct followed *f)
{
    return followed_get_state(fo, f) == FOLLOWED_OPEN;
}

/* Copy the list of logs: the writer may change it meanwhile. It frees no log of the copy before the next. */
static void take_list(struct follow *fo)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    if (fo->seen_version != fo->version) {
        fo->turn = xgrow(fo->turn, &fo->turn_capacity, fo->count + 1, sizeof(struct followed *));
        memcpy(fo->turn, fo->list, fo->count * sizeof(struct followed *));
        fo->turn_count = fo->count;
        fo->seen_version = fo->version;
    }
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
}

/* Put the ends of files into a batch although no file comes after them. */
static void put_endings(struct follow *fo, struct followed *f)
{
    put_ends(fo, f);
    followed_set_state(fo, f, FOLLOWED_CLOSED);
}

static void pause_reading(const struct follow *fo)
{
    int64_t ms = (int64_t)fo->turn_count / FILES_PER_MS;
    ms = ms > FOLLOW_WAIT_MS ? ms : FOLLOW_WAIT_MS;
    ms = ms < FOLLOW_WAIT_MAX_MS ? ms : FOLLOW_WAIT_MAX_MS;
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Read each file that is open. False: end the thread. */
static bool turn(struct follow *fo)
{
    bool read = false;
    heartbeat_turn(fo->feed.lane.heartbeat);
    take_list(fo);
    for (size_t i = 0; i < fo->turn_count && !follow_is_ending(fo); i++) {
        enum followed_state state = followed_get_state(fo, fo->turn[i]);
        if (state == FOLLOWED_ENDING)
            put_endings(fo, fo->turn[i]);
        else if (state == FOLLOWED_OPEN && !read_file(fo, fo->turn[i], &read))
            return false;
    }
    /* With many files, some have lines at every turn: they are read together after each pause. */
    if (!(waits_itself(fo) && is_open(fo, fo->turn[0])) &&
        (!read || fo->turn_count > FOLLOW_WAIT_MS * FILES_PER_MS))
        pause_reading(fo);
    return feed_seal_if_due(&fo->feed, follow_now_ms(fo));
}

void *follow_read(void *context)
{
    struct follow *fo = context;
    struct lanes *ls = fo->feed.lane.lanes;
    while (!follow_is_ending(fo) && turn(fo))
        continue;
    take_list(fo);
    for (size_t i = 0; i < fo->turn_count; i++) {
        if (is_open(fo, fo->turn[i]))
            put_new(fo, fo->turn[i]);
        else if (followed_get_state(fo, fo->turn[i]) == FOLLOWED_ENDING)
            put_endings(fo, fo->turn[i]);
    }
    (void)!feed_drain(&fo->feed, LANE_FOREVER_MS);
    heartbeat_rest(fo->feed.lane.heartbeat);
    pthread_mutex_lock(&ls->lock);
    fo->has_ended = true;
    pthread_cond_signal(&ls->sealed);
    pthread_mutex_unlock(&ls->lock);
    return NULL;
}
