#include "daemon/topic/topic.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/reader.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPARE_TIMEOUT_MS 10000
#define HEARD_MAX          16 /* other daemons' partitions that are compared */

static void name_source(struct topic *t)
{
    if (t->incarnation == 1)
        snprintf(t->source, sizeof t->source, "kafka:%s", t->name);
    else
        snprintf(t->source, sizeof t->source, "kafka:%s~%d", t->name, t->incarnation);
}

struct topic *topics_new(const struct config *c, const char *const accepted[], size_t accepted_count,
                         size_t *topic_count)
{
    struct topic *topics = xcalloc(c->source_count, sizeof *topics);
    *topic_count = 0;
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].type != SOURCE_KAFKA)
            continue;
        struct topic *t = &topics[(*topic_count)++];
        *t = (struct topic){.config = &c->sources[i], .name = c->sources[i].topic, .incarnation = 1};
        name_source(t);
        for (size_t k = 0; k < accepted_count; k++) {
            enum topic_accept accept = topic_accepts(t->name, accepted[k]);
            t->is_accepted = t->is_accepted || accept != ACCEPT_NOT;
            t->is_renewed = t->is_renewed || accept == ACCEPT_RENEWED;
        }
    }
    return topics;
}

enum topic_accept topic_accepts(const char *topic, const char *word)
{
    size_t n = strlen(topic);
    if (strncmp(topic, word, n) != 0)
        return ACCEPT_NOT;
    return word[n] == '\0' ? ACCEPT_TOPIC : strcmp(word + n, "~") == 0 ? ACCEPT_RENEWED : ACCEPT_NOT;
}

void topics_free(struct topic *topics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(topics[i].partitions);
    free(topics);
}

static void set_count(struct topic *t, int32_t count)
{
    if (count > t->capacity) {
        t->partitions = xrealloc(t->partitions, (size_t)count * sizeof *t->partitions);
        for (; t->capacity < count; t->capacity++)
            t->partitions[t->capacity] = (struct partition){
                .number = t->capacity, .status_index = -1, .unproven = {.offset = -1}, .settled_offset = -1};
    }
    t->count = count;
    for (int32_t i = 0; i < count; i++)
        t->partitions[i].topic = t; /* topics never move, their array of partitions may */
}

void topic_renew(struct topic *t)
{
    t->incarnation++;
    name_source(t);
    t->is_known = true; /* count it from its beginning, whatever `start` says */
    t->policy_was_asked = false;
    for (int32_t i = 0; i < t->count; i++)
        t->partitions[i].is_known = t->partitions[i].check_tail = false;
    log_warn("topic_recreated", "topic=%s source=%s", t->name, t->source);
}

int topic_incarnation(const char *topic, const char *source)
{
    char first[RANGE_SOURCE_BYTES];
    int n = snprintf(first, sizeof first, "kafka:%s", topic);
    if (strncmp(source, first, (size_t)n) != 0)
        return 0;
    if (source[n] == '\0')
        return 1;
    return source[n] == '~' ? atoi(source + n + 1) : 0;
}

/* A search of the store's positions for topics. */
struct search {
    struct topic *topics;
    size_t count;
    struct topic *changed; /* a topic with a newer incarnation than intakes are counting */
};

static bool find_incarnation(void *context, const struct position *position)
{
    struct search *s = context;
    for (size_t i = 0; i < s->count; i++) {
        struct topic *t = &s->topics[i];
        int incarnation = topic_incarnation(t->name, position->range.source);
        t->is_known = t->is_known || incarnation > 0;
        if (incarnation <= t->incarnation)
            continue;
        if (t->is_fixed) {
            s->changed = t;
            continue;
        }
        t->incarnation = incarnation;
        name_source(t);
    }
    return true;
}

static bool find_known(void *context, const struct position *position)
{
    struct search *s = context;
    for (size_t i = 0; i < s->count; i++) {
        struct topic *t = &s->topics[i];
        int number = atoi(position->range.partition);
        if (strcmp(t->source, position->range.source) == 0 && number >= t->known)
            t->known = number + 1;
    }
    return true;
}

struct partition *topics_next(struct topic *topics, size_t count, const struct partition *after)
{
    size_t i = after != NULL ? (size_t)(after->topic - topics) : 0;
    for (int32_t n = after != NULL ? after->number + 1 : 0; i < count; i++, n = 0) {
        for (; n < topics[i].count; n++) {
            if (topics[i].partitions[n].begins)
                return &topics[i].partitions[n];
        }
    }
    return NULL;
}

/* The remaining witnesses begin at p->first_witness. */
static bool refuse_recreated(const struct partition *p, int64_t at, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "topic %s, partition %d: it is counted up to offset %" PRId64 ", but the record at %" PRId64
        " is another than the one counted: the topic was re-created, or a broker lost its last records and "
        "accepted others. Bring the old topic back, or run `tallyd run --accept %s`: it counts this topic "
        "from its beginning as a new one (old records that are still in it are then counted twice)",
        p->topic->name, p->number, p->next, at, p->topic->name);
}

static bool refuse_unproven(const struct partition *p, struct err *e)
{
    const char *name = p->topic->name;
    return err_set(
        e, EX_DATAERR,
        "topic %s, partition %d: it is counted up to offset %" PRId64
        ", and none of the %u counted records to compare (%" PRId64 " to %" PRId64
        ") is there: the topic was compacted or re-created. `tallyd run --accept %s` resumes at %" PRId64
        "; `tallyd run --accept %s~` counts it from its beginning as a new topic",
        name, p->number, p->next, p->witnesses.count - p->first_witness,
        p->witnesses.at[p->first_witness].offset, witnesses_newest(&p->witnesses)->offset, name, p->next,
        name);
}

static bool warn_unproven(const struct partition *p, const char *why)
{
    p->topic->unproven++;
    log_limited(LOG_LEVEL_WARN, "topic_unproven",
                "topic=%s partition=%d next=%" PRId64
                " reason=\"%s\" note=\"no counted record is left to compare: it cannot be proved that this "
                "is the same topic\"",
                p->topic->name, p->number, p->next, why);
    return true;
}

static bool refuse_shorter(const struct partition *p, int64_t high, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "topic %s, partition %d: it is counted up to offset %" PRId64 ", but ends at %" PRId64
        ": the topic was re-created, or its last records were lost. `tallyd run --accept %s` counts it from "
        "its beginning as a new topic (old records that are still in it are then counted twice)",
        p->topic->name, p->number, p->next, high, p->topic->name);
}

static bool refuse_lost(const struct partition *p, int64_t low, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "topic %s, partition %d: it is counted up to offset %" PRId64 ", but begins at %" PRId64
                   ": the records of %" PRId64 " offsets were deleted before they were counted (retention). "
                   "`tallyd run --accept %s` continues without them",
                   p->topic->name, p->number, p->next, low, low - p->next, p->topic->name);
}

bool partition_begin(struct partition *p, int64_t low, int64_t high, int64_t start, bool *recreated,
                     struct err *e)
{
    *recreated = false;
    p->check_tail = false;
    p->first_witness = 0;
    p->lost = 0;
    if (!p->is_known) {
        p->next = p->topic->is_known ? low : start;
        p->tail_hash = 0;
        p->tail_len = 0;
        p->witnesses.count = 0;
        return true;
    }
    if (p->next > high) {
        *recreated = true;
        return refuse_shorter(p, high, e);
    }
    if (p->next < low) {
        if (!p->topic->is_accepted && !p->topic->is_copy)
            return refuse_lost(p, low, e);
        p->lost = low - p->next;
        p->next = low;
        p->tail_len = 0;
        p->witnesses.count = 0;
        return true;
    }
    while (p->first_witness < p->witnesses.count && p->witnesses.at[p->first_witness].offset < low)
        p->first_witness++;
    p->check_tail = p->first_witness < p->witnesses.count;
    /* Without witnesses, the position is that of a first start, and nothing was counted yet. */
    return p->check_tail || p->witnesses.count == 0 || warn_unproven(p, "expired: retention");
}

void partition_place(struct partition *p, const struct range *r)
{
    p->is_known = r->to >= 0;
    p->next = p->is_known ? r->to : 0;
    p->tail_hash = r->tail_hash;
    p->tail_len = r->tail_len;
    p->witnesses = r->witnesses;
    /* If a version without witnesses wrote the position last, its tail is the newest witness. */
    if (p->is_known && p->tail_len > 0)
        witnesses_add(&p->witnesses, p->next - p->tail_len, p->tail_hash);
    while (p->witnesses.count > 0 && witnesses_newest(&p->witnesses)->offset >= p->next)
        p->witnesses.count--; /* tallyd never stores this: witnesses are before `next` */
}

void partition_range(const struct partition *p, struct range *r)
{
    *r = (struct range){.from = p->next - p->lost,
                        .to = p->next,
                        .tail_hash = p->tail_hash,
                        .tail_len = p->tail_len,
                        .witnesses = p->witnesses};
    memcpy(r->source, p->topic->source, sizeof r->source);
    snprintf(r->partition, sizeof r->partition, "%d", p->number);
    snprintf(r->label, sizeof r->label, "topic %s, partition %d", p->topic->name, p->number);
}

/* First offset, end, and first-start offset of each partition that begins. */
struct bounds {
    struct partition **partitions;
    struct kafka_offset *low, *high, *start;
    size_t count;
};

static void list_bounds(struct topic *t, struct bounds *b)
{
    size_t count = (size_t)t->count;
    b->partitions = xcalloc(count, sizeof(struct partition *));
    b->low = xcalloc(3 * count, sizeof *b->low);
    b->high = b->low + count;
    b->start = b->high + count;
    for (int32_t i = 0; i < t->count; i++) {
        if (!t->partitions[i].begins)
            continue;
        int32_t number = t->partitions[i].number;
        b->low[b->count] = (struct kafka_offset){t->name, number, KAFKA_EARLIEST};
        b->high[b->count] = (struct kafka_offset){t->name, number, KAFKA_LATEST};
        b->start[b->count] = (struct kafka_offset){t->name, number, t->config->start_ms};
        b->partitions[b->count++] = &t->partitions[i];
    }
}

static bool ask_bounds(const struct topic *t, struct kafka *k, const struct bounds *b, struct err *e)
{
    bool has_new = false;
    for (size_t i = 0; i < b->count; i++)
        has_new = has_new || !b->partitions[i]->is_known;
    return kafka_offsets(k, b->low, b->count, e) && kafka_offsets(k, b->high, b->count, e) &&
           (!has_new || t->is_known || kafka_offsets(k, b->start, b->count, e));
}

static bool begin_partitions(const struct bounds *b, bool *recreated, struct err *e)
{
    for (size_t i = 0; i < b->count; i++) {
        struct partition *p = b->partitions[i];
        if (!partition_begin(p, b->low[i].offset, b->high[i].offset, b->start[i].offset, recreated, e))
            return false;
    }
    return true;
}

/* Log lost records. A new partition of a known topic was added, or the topic was re-created, after this group
 * began: then records that were gone before its first look are lost, too. */
static void log_lost(const struct topic *t)
{
    for (int32_t i = 0; i < t->count; i++) {
        const struct partition *p = &t->partitions[i];
        int64_t lost = !p->is_known && t->is_known ? p->next : p->lost;
        if (p->begins && lost > 0)
            log_warn("records_lost", "topic=%s partition=%d from=%" PRId64 " to=%" PRId64, t->name, p->number,
                     p->next - lost, p->next);
    }
}

/* *other: the topic if it was re-created. */
static bool begin_topic(struct topic *t, struct kafka *k, struct topic **other, struct err *e)
{
    struct bounds b = {0};
    bool recreated = false;
    list_bounds(t, &b);
    bool good = ask_bounds(t, k, &b, e) && begin_partitions(&b, &recreated, e);
    *other = recreated ? t : NULL;
    free(b.partitions);
    free(b.low);
    return good;
}

static bool renew(struct topic *t, struct err *e)
{
    if (!t->is_fixed) {
        topic_renew(t);
        return true;
    }
    t->refuted = t->incarnation;
    t->is_outdated = true;
    return err_set_retryable(e, EX_UNAVAILABLE, "topic %s was re-created", t->name);
}

/* ---- comparing records that were counted */

static size_t list_comparisons(struct topic *topics, size_t count, struct comparison **comparisons)
{
    size_t found = 0, capacity = 0;
    *comparisons = NULL;
    for (struct partition *p = NULL; (p = topics_next(topics, count, p)) != NULL;) {
        if (!p->check_tail)
            continue;
        *comparisons = xgrow(*comparisons, &capacity, found + 1, sizeof **comparisons);
        (*comparisons)[found++] = (struct comparison){.topic = p->topic->name,
                                                      .partition = p->number,
                                                      .witnesses = &p->witnesses.at[p->first_witness],
                                                      .left = p->witnesses.count - p->first_witness};
    }
    return found;
}

/* Judge an answer. False: the partition is refused; *recreated as of partition_begin(). */
static bool judge(const struct partition *p, const struct comparison *c, bool *recreated, struct err *e)
{
    const struct topic *t = p->topic;
    const struct witness *newest = witnesses_newest(&p->witnesses);
    switch (c->result) {
    case COMPARISON_SAME:
        if (c->offset != newest->offset)
            log_limited(LOG_LEVEL_WARN, "witness_gone",
                        "topic=%s partition=%d offset=%" PRId64 " same_before=%" PRId64
                        " note=\"a counted record is gone, probably by compaction; the records between the "
                        "two offsets cannot be compared\"",
                        t->name, p->number, newest->offset, c->offset);
        return true;
    case COMPARISON_OTHER:
        *recreated = true;
        return refuse_recreated(p, c->offset, e);
    case COMPARISON_GONE:
        *recreated = t->is_renewed;
        if (t->is_accepted && !t->is_renewed)
            return warn_unproven(p, "compacted, and accepted");
        return refuse_unproven(p, e);
    default:
        return err_set_retryable(e, EX_UNAVAILABLE, "topic %s, partition %d: it has no offset %" PRId64,
                                 t->name, p->number, c->offset);
    }
}

/* *other: the topic if the failure is that it was re-created. */
static bool compare_topics(struct topic *topics, size_t count, struct kafka *reader, struct topic **other,
                           struct err *e)
{
    struct comparison *comparisons;
    size_t open = list_comparisons(topics, count, &comparisons), i = 0;
    *other = NULL;
    bool good = compare(reader, comparisons, open, COMPARE_TIMEOUT_MS, e);
    for (struct partition *p = NULL; good && (p = topics_next(topics, count, p)) != NULL;) {
        bool recreated = false;
        if (!p->check_tail)
            continue;
        good = judge(p, &comparisons[i++], &recreated, e);
        *other = recreated ? p->topic : NULL;
    }
    free(comparisons);
    return good;
}

struct topic topic_copy(const struct topic *t)
{
    struct topic copy = {.config = t->config,
                         .name = t->name,
                         .incarnation = t->incarnation,
                         .is_accepted = t->is_accepted,
                         .is_renewed = t->is_renewed,
                         .is_copy = true};
    memcpy(copy.source, t->source, sizeof copy.source);
    return copy;
}

bool topic_prove(struct topic *t, struct topic *copy, struct kafka *reader, struct err *e)
{
    struct topic *other;
    bool good = begin_topic(copy, reader, &other, e) && compare_topics(copy, 1, reader, &other, e);
    t->unproven += copy->unproven;
    if (!good && other != NULL && t->is_accepted)
        (void)!renew(t, e);
    return good;
}

/* ---- other daemons' partitions, compared as witnesses */

struct heard {
    struct topic topic; /* a copy with its own partitions: intakes are reading the original's */
    size_t count;
};

static bool add_witness(void *context, const struct position *position)
{
    struct heard *w = context;
    const struct range *r = &position->range;
    int number = atoi(r->partition);
    if (strcmp(w->topic.source, r->source) == 0 && number < w->topic.count && r->tail_len > 0) {
        struct partition *p = &w->topic.partitions[number];
        partition_place(p, r);
        p->begins = true;
        w->count++;
    }
    return w->count < HEARD_MAX;
}

/* Do the partitions that begin have no witness to prove the topic? They have no counted records, or these are
 * deleted by now. */
static bool needs_witnesses(const struct topic *t)
{
    bool has_any = false;
    for (int32_t i = 0; i < t->count; i++) {
        if (t->partitions[i].begins && t->partitions[i].check_tail)
            return false;
        has_any = has_any || t->partitions[i].begins;
    }
    return has_any && t->is_known;
}

/* Compare other daemons' partitions. Otherwise records would be counted as the old incarnation, and again as
 * the new one once another daemon finds out. */
static bool hear_witnesses(struct topic *t, struct store *store, struct kafka *k, struct kafka *reader,
                           struct topic **other, struct err *e)
{
    /* Losses and missing proof of these partitions are for their own daemons to refuse. */
    struct heard w = {.topic = topic_copy(t)};
    *other = NULL;
    w.topic.is_accepted = true;
    w.topic.is_renewed = false;
    set_count(&w.topic, t->count);
    bool good = store_positions(store, add_witness, &w, e) &&
                (w.count == 0 ||
                 (begin_topic(&w.topic, k, other, e) && compare_topics(&w.topic, 1, reader, other, e)));
    free(w.topic.partitions);
    *other = *other != NULL ? t : NULL;
    return good;
}

bool topic_prove_by_others(struct topic *t, struct store *store, struct kafka *reader, struct err *e)
{
    struct topic *other;
    bool good = hear_witnesses(t, store, reader, reader, &other, e);
    if (!good && other != NULL && t->is_accepted)
        (void)!renew(t, e);
    return good;
}

/* ---- all topics */

static bool look(struct topic *t, struct kafka *k, struct err *e)
{
    int32_t count;
    if (!kafka_partitions(k, t->name, &count, e))
        return false;
    if (count < t->known && !t->is_accepted)
        return err_set(e, EX_DATAERR,
                       "topic %s has %d partitions, but %d were counted: it was re-created. `tallyd run "
                       "--accept %s` counts it from its beginning as a new topic",
                       t->name, count, t->known, t->name);
    set_count(t, count);
    /* Another daemon may have begun the next incarnation already: then use that one, and do not begin one
     * more. */
    if (t->refuted == t->incarnation || count < t->known)
        topic_renew(t);
    return true;
}

bool topics_look(struct topic *topics, size_t count, struct store *store, struct kafka *k, struct err *e)
{
    struct search s = {.topics = topics, .count = count};
    for (size_t i = 0; i < count; i++) {
        topics[i].is_fixed = topics[i].is_outdated = false;
        topics[i].known = 0;
    }
    if (!store_positions(store, find_incarnation, &s, e) || !store_positions(store, find_known, &s, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!look(&topics[i], k, e))
            return false;
    }
    return true;
}

/* Claim partitions, and take the store's positions: nobody else can move them now. */
static bool claim(struct topic *topics, size_t count, struct store *store, struct err *e)
{
    struct range *ranges = NULL;
    size_t found = 0, capacity = 0, i = 0;
    for (struct partition *p = NULL; (p = topics_next(topics, count, p)) != NULL;) {
        p->next = p->lost = 0;
        ranges = xgrow(ranges, &capacity, found + 1, sizeof *ranges);
        partition_range(p, &ranges[found++]);
    }
    bool good = store_claim(store, ranges, found, e);
    for (struct partition *p = NULL; good && (p = topics_next(topics, count, p)) != NULL; i++) {
        partition_place(p, &ranges[i]);
        p->latest = (struct latest){0};
    }
    free(ranges);
    return good;
}

static bool begin_once(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                       struct kafka *reader, struct topic **other, struct err *e)
{
    *other = NULL;
    if (!claim(topics, count, store, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!begin_topic(&topics[i], k, other, e) ||
            (needs_witnesses(&topics[i]) && !hear_witnesses(&topics[i], store, k, reader, other, e)))
            return false;
    }
    return compare_topics(topics, count, reader, other, e);
}

bool topics_begin(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                  struct kafka *reader, struct err *e)
{
    struct search s = {.topics = topics, .count = count};
    struct topic *other;
    if (!store_positions(store, find_incarnation, &s, e))
        return false;
    if (s.changed != NULL) {
        s.changed->is_outdated = true;
        return err_set_retryable(e, EX_UNAVAILABLE,
                                 "topic %s was re-created, and another tallyd has accepted that",
                                 s.changed->name);
    }
    while (!begin_once(topics, count, store, k, reader, &other, e)) {
        if (other == NULL || !other->is_accepted || !renew(other, e))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        log_lost(&topics[i]);
    return true;
}
