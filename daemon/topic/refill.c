#include "daemon/topic/refill.h"

#include "base/clock.h"
#include "base/units.h"
#include "daemon/count/lane.h"
#include "daemon/lend.h"
#include "daemon/setup.h"
#include "daemon/topic/compare.h"
#include "daemon/topic/reread.h"
#include "daemon/topic/topic.h"

#include <inttypes.h>
#include <stdlib.h>

#define MESSAGES_MAX       1024
#define POLL_MS            100
#define COMPARE_TIMEOUT_MS 10000
/* Holes between records that stay uncounted in a stretch. Each takes a batch, an entry of the books and a new
 * fetch, so there must not be any number of them. */
#define HOLES_MAX          20

/* A stretch that is being counted. */
struct filling {
    const struct refill *r;
    struct kafka *kafka, *reader;
    struct lane lane;
    struct chain *chain;
    struct books books;
    struct pipeline_progress progress;

    struct backfill_stretch *stretch;
    struct backfill_filter filter;
    const struct config_source *source;
    struct partition partition; /* its number, and its witnesses */
    int64_t next;               /* offset of the next record */
    int64_t hole;               /* first offset behind `next` that has a record; 0: `next` may have one */
    int64_t left, passed;       /* offsets without a record: those left uncounted, and passed over */
    size_t holes;               /* holes between records that are left uncounted */
    const struct config_source *asked; /* the source that `policy` is of */
    enum kafka_policy policy;
    int64_t silent_ms;
};

static void ignore_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    (void)context, (void)r, (void)bytes, (void)why;
}

int64_t refill_left(const struct backfill_plan *plan)
{
    int64_t offsets = 0;
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        if (plan->positions[s->position].range.partition[0] != '\0')
            offsets += s->to - s->from;
    }
    return offsets;
}

/* ---- telling */

static const struct range *range_of(const struct filling *f)
{
    return &f->r->plan->positions[f->stretch->position].range;
}

/* Add a line: the stretch's offsets [from, to), and `what`. */
static void say(const struct filling *f, int64_t from, int64_t to, const char *what)
{
    char a[UNITS_NUMBER_BYTES], b[UNITS_NUMBER_BYTES];
    const struct range *range = range_of(f);
    text_printf(f->r->said, "%s/%s: offsets %s to %s: %s\n", range->source, range->partition,
                units_number(from, a), units_number(to, b), what);
}

static void say_left(const struct filling *f, const char *why)
{
    say(f, f->stretch->from, f->stretch->to, why);
}

/* Several times a second. */
static bool go_on(struct filling *f, struct err *e)
{
    return f->r->go_on(f->r->context, &f->progress) ||
           err_set_retryable(e, EX_TEMPFAIL,
                             "interrupted: what was counted stays, run the same command again to resume");
}

/* ---- is it the topic that was counted? */

/* Compare a counted record. *is_same false: it is another, or none is left. */
static bool prove(struct filling *f, bool *is_same, struct err *e)
{
    const struct partition *p = &f->partition;
    struct comparison c = {.topic = f->source->topic,
                           .partition = p->number,
                           .witnesses = &p->witnesses.at[p->first_witness],
                           .left = p->witnesses.count - p->first_witness};
    *is_same = p->witnesses.count == 0; /* it was begun, and nothing of it was counted yet */
    if (*is_same || c.left == 0)
        return true;
    if (!compare(f->reader, &c, 1, COMPARE_TIMEOUT_MS, e))
        return false;
    *is_same = c.result == COMPARISON_SAME;
    return true;
}

/* Find the partition in Kafka, and the first of the stretch's offsets that it still has. *is_there false: it
 * cannot be read, and `said` has the reason. */
static bool look(struct filling *f, bool *is_there, struct err *e)
{
    const struct range *range = range_of(f);
    struct partition *p = &f->partition;
    const char *topic = f->source->topic;
    int32_t count;
    *is_there = false;
    *p = (struct partition){.number = atoi(range->partition)};
    partition_place(p, range);
    if (!kafka_find_topic(f->kafka, topic, &count, e))
        return false;
    if (p->number >= count) {
        say_left(f, count == 0 ? "the topic is deleted" : "the topic has no such partition");
        return true;
    }
    struct kafka_offset low = {topic, p->number, KAFKA_EARLIEST}, high = {topic, p->number, KAFKA_LATEST};
    if (!kafka_offsets(f->kafka, &low, 1, e) || !kafka_offsets(f->kafka, &high, 1, e))
        return false;
    while (p->first_witness < p->witnesses.count && p->witnesses.at[p->first_witness].offset < low.offset)
        p->first_witness++;
    if (low.offset > f->stretch->from) {
        int64_t to = low.offset < f->stretch->to ? low.offset : f->stretch->to;
        say(f, f->stretch->from, to, "the topic does not hold them any more");
    }
    f->next = low.offset > f->stretch->from ? low.offset : f->stretch->from;
    if (f->next >= f->stretch->to)
        return true;
    if (high.offset < range->to)
        say_left(f, "another topic has this name now, or its end is lost");
    else if (!prove(f, is_there, e))
        return false;
    else if (!*is_there)
        say_left(f,
                 "no counted record is left that is as it was counted: another topic has this name now, or "
                 "all of them are gone");
    return true;
}

/* ---- offsets without a record */

static void ask_policy(struct filling *f)
{
    if (f->asked != f->source)
        f->policy = kafka_policy(f->kafka, f->source->topic);
    f->asked = f->source;
}

/* Note that [next, to) has no record. In a topic that compacts, the source may have counted records there:
 * the batch ends here, and the offsets stay uncounted. True: the rest of what was polled is read again. */
static bool is_hole(struct filling *f, int64_t to)
{
    if (to == f->next)
        return false;
    if (f->policy == KAFKA_COMPACTS && f->stretch->begun == 0 &&
        (f->next == f->stretch->from || f->holes < HOLES_MAX)) {
        f->holes += f->next > f->stretch->from;
        f->hole = to;
        return true;
    }
    f->passed += to - f->next;
    return false;
}

/* All records before the hole are applied. The next one to read is behind it. */
static void skip_hole(struct filling *f)
{
    f->left += f->hole - f->next;
    f->progress.raw_offset += f->hole - f->next;
    f->stretch->from = f->next = f->hole;
    f->hole = 0;
}

static void say_empty(const struct filling *f, int64_t from)
{
    char number[UNITS_NUMBER_BYTES], what[UNITS_NUMBER_BYTES + 200];
    if (f->left > 0) {
        snprintf(what, sizeof what, "the topic is compacted, and does not hold %s of them any more",
                 units_number(f->left, number));
        say(f, from, f->stretch->to, what);
    }
    if (f->passed == 0 || f->policy == KAFKA_DELETES || f->stretch->begun > 0)
        return;
    snprintf(what, sizeof what, "%s of them have no record, and are passed over: %s",
             units_number(f->passed, number),
             f->policy == KAFKA_COMPACTS ? "the topic is compacted in too many places"
                                         : "they are of transactions, or compacted away; this user may not "
                                           "read the topic's cleanup.policy");
    say(f, from, f->stretch->to, what);
}

/* ---- counting */

static bool fail_at(const struct filling *f, const char *why, struct err *e)
{
    return err_set_retryable(e, EX_UNAVAILABLE,
                             "topic %s, partition %d, offset %" PRId64 ": %s: run it again", f->source->topic,
                             f->partition.number, f->next, why);
}

static bool take_message(struct filling *f, rd_kafka_message_t *m, struct err *e)
{
    struct record record;
    const struct backfill_stretch *s = f->stretch;
    bool is_record = m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (f->next >= s->to || f->hole > 0)
        return true;
    if (!kafka_is_readable(m, f->source->topic, e))
        return false;
    if (!is_record && m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return !kafka_is_lost(m->err) || fail_at(f, rd_kafka_err2str(m->err), e);
    if (!is_record && m->offset < s->to)
        return fail_at(f, "the partition ends before what was counted of it", e);
    if (is_record && m->offset < f->next)
        return fail_at(f, "its records came in another order", e);
    if (is_hole(f, m->offset < s->to ? m->offset : s->to))
        return true;
    if (m->offset >= s->to) {
        f->next = s->to;
        return true;
    }
    f->next = m->offset + 1;
    f->progress.books.entries[BOOK_CONSUMED]++;
    kafka_record(m, f->source->topic, &record);
    if (!reread_await_schema(f->r->config, f->chain, &record, e))
        return false;
    f->lane.latest_ms = s->begun == 0 || record.timestamp_ms < 0 ? s->latest_ms : INT64_MIN;
    lane_record(&f->lane, f->chain, &record);
    return true;
}

static bool poll(struct filling *f, struct err *e)
{
    rd_kafka_message_t *messages[MESSAGES_MAX];
    bool good = true;
    size_t n = kafka_poll(f->kafka, messages, MESSAGES_MAX, POLL_MS);
    kafka_wake(f->kafka);
    f->silent_ms = n > 0 ? 0 : f->silent_ms + POLL_MS;
    if (f->silent_ms > REREAD_SILENCE_MS)
        good = err_set_retryable(
            e, EX_TEMPFAIL, "the cluster has sent nothing for %d s: check that its brokers are reachable",
            REREAD_SILENCE_MS / 1000);
    for (size_t i = 0; i < n && good; i++)
        good = take_message(f, messages[i], e);
    lane_add(&f->lane); /* events point into the messages */
    chain_flush(f->chain);
    for (size_t i = 0; i < n; i++)
        rd_kafka_message_destroy(messages[i]);
    return good;
}

/* Apply what was read up to f->next. */
static bool apply(struct filling *f, struct part *part, struct err *e)
{
    struct backfill_stretch *s = f->stretch;
    struct range range = *range_of(f);
    const struct batch batch = {.ranges = &range,
                                .books = &f->books,
                                .range_count = 1,
                                .parts = &part,
                                .part_count = 1,
                                .backfills = true,
                                .report = f->r->number,
                                .only_from_ms = f->r->plan->only.from_ms,
                                .only_to_ms = f->r->plan->only.to_ms,
                                .begun = s->begun};
    bool is_same;
    range.from = s->from;
    range.to = f->next;
    range.state = RANGE_UNCHANGED;
    range.builds = derived_builds(chain_derived(f->chain));
    if (!prove(f, &is_same, e))
        return false;
    if (!is_same)
        return fail_at(f, "the topic has become another one", e);
    if (!f->r->apply(f->r->store, &batch, e))
        return false;
    f->progress.raw_offset += range.to - range.from;
    f->progress.offset = f->progress.raw_offset;
    s->from = range.to;
    return true;
}

static bool count_batch(struct filling *f, struct err *e)
{
    int64_t until_ms = clock_mono_ms(&clock_system) + f->r->batch_ms;
    bool good = true;
    do {
        good = poll(f, e) && go_on(f, e);
    } while (good && f->next < f->stretch->to && f->hole == 0 && !shard_is_full(f->lane.shard) &&
             clock_mono_ms(&clock_system) < until_ms);
    books_clear(&f->books);
    shard_take_books(f->lane.shard, &f->books);
    struct part *part = shard_seal(f->lane.shard);
    good = good && (f->next == f->stretch->from || apply(f, part, e));
    shard_give_back(f->lane.shard, part);
    return good;
}

/* Count up to the end of the stretch, or to a hole. */
static bool count_piece(struct filling *f, struct err *e)
{
    const struct backfill_stretch *s = f->stretch;
    const struct kafka_offset from = {f->source->topic, f->partition.number, f->next};
    if (!kafka_read(f->kafka, &from, 1, e))
        return false;
    bool good = true;
    while (good && s->from < s->to && f->hole == 0)
        good = count_batch(f, e);
    kafka_read_end(f->kafka);
    return good;
}

static bool count_stretch(struct filling *f, struct err *e)
{
    struct backfill_stretch *s = f->stretch;
    int64_t begun = f->next, before = f->progress.books.entries[BOOK_CONSUMED];
    char number[UNITS_NUMBER_BYTES], what[UNITS_NUMBER_BYTES + 32];
    f->progress.raw_offset += f->next - s->from;
    s->from = f->next;
    f->silent_ms = f->left = f->passed = f->hole = 0;
    f->holes = 0;
    f->filter = backfill_filter(f->r->plan, s);
    f->lane.filter = &f->filter;
    shard_set_source(f->lane.shard, range_of(f), NULL);
    f->chain = chain_new(&f->source->decode, (size_t)f->r->config->limits.line_max);
    bool good = true;
    while (good && s->from < s->to) {
        good = count_piece(f, e);
        if (good && f->hole > 0)
            skip_hole(f);
    }
    chain_free(f->chain);
    snprintf(what, sizeof what, "%s records read",
             units_number(f->progress.books.entries[BOOK_CONSUMED] - before, number));
    if (good)
        say(f, begun, s->to, what);
    if (good)
        say_empty(f, begun);
    return good;
}

static bool fill(struct filling *f, struct err *e)
{
    const struct refill *r = f->r;
    bool is_newest, is_there;
    const struct backfill_plan *plan = r->plan;
    f->source =
        reread_source(r->config, plan->positions, plan->position_count, range_of(f)->source, &is_newest);
    if (f->source == NULL || !is_newest) {
        say_left(f, f->source == NULL ? "no source of the configuration is this topic"
                                      : "another topic has this name now");
        return true;
    }
    if (f->kafka == NULL) {
        struct kafka_options options = setup_kafka(r->config);
        options.group = NULL;
        options.queue_bytes = BACKFILL_QUEUE_BYTES / 2;
        options.fetch_bytes = BACKFILL_QUEUE_BYTES / 4;
        f->kafka = kafka_open(&options, e);
        f->reader = f->kafka != NULL ? kafka_open(&options, e) : NULL;
    }
    if (f->reader == NULL || !look(f, &is_there, e))
        return false;
    if (is_there)
        ask_policy(f);
    return !is_there || count_stretch(f, e); /* what is not there stays uncounted */
}

bool refill_topics(const struct refill *r, struct err *e)
{
    struct filling f = {.r = r};
    bool good = true;
    f.lane = (struct lane){.reject = ignore_reject, .future_max_ms = r->config->limits.future_max_ms};
    f.lane.shard = shard_new(r->shard_number, r->report, 1, &r->shard);
    books_init(&f.books, 1);
    books_init(&f.progress.books, 1);
    for (size_t i = 0; good && i < r->plan->stretch_count; i++) {
        f.stretch = &r->plan->stretches[i];
        if (range_of(&f)->partition[0] != '\0' && f.stretch->from < f.stretch->to)
            good = fill(&f, e);
    }
    kafka_close(f.reader);
    kafka_close(f.kafka);
    shard_free(f.lane.shard);
    books_fini(&f.books);
    books_fini(&f.progress.books);
    return good;
}

/* ---- beside a daemon */

struct beside {
    const struct desk_backfill *desk;
    const struct pipeline_progress *progress; /* the last one told */
    int64_t records;                          /* of it */
};

static bool tell(void *context, const struct pipeline_progress *progress)
{
    struct beside *b = context;
    b->progress = progress;
    b->records = progress->books.entries[BOOK_CONSUMED];
    return b->desk->go_on(b->desk->context, progress);
}

/* The engine's wait function. */
static bool may_wait(void *context)
{
    const struct beside *b = context;
    return b->desk->go_on(b->desk->context, b->progress);
}

bool refill_beside(const struct desk_backfill *d, struct text *said, int64_t *records, struct err *e)
{
    const struct engine *en = d->engine;
    const struct config *c = en->options.config;
    struct backfill_plan plan;
    struct beside b = {.desk = d};
    struct lend lend = {.engine = d->engine, .may_wait = may_wait, .context = &b};
    size_t stored;
    if (!desk_find_report(d, &lend.report, &stored, e))
        return false;
    bool good = backfill_plan(&plan, d->positions, stored, &d->only, e);
    lend_init(&lend);
    struct refill r = {.config = c,
                       .report = &en->options.store->reports[lend.report],
                       .number = lend.report,
                       .plan = &plan,
                       .shard = backfill_limits(c),
                       .shard_number = (uint32_t)en->options.threads,
                       .batch_ms = DESK_BACKFILL_MS,
                       .apply = lend_apply,
                       .store = &lend,
                       .go_on = tell,
                       .context = &b,
                       .said = said};
    r.shard.late_ms = &en->late_ms[lend.report];
    good = good && refill_topics(&r, e);
    *records = b.records;
    lend_fini(&lend);
    backfill_plan_fini(&plan);
    return good;
}
