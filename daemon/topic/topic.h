/* topic.h - topics and their partitions as the store knows them, and the offset at which each is resumed.
 * Sessions call it when they begin.
 *
 *   never seen                     from `start`: earliest, latest or a time
 *   a new partition of a known     from its beginning: it had no records when the other partitions were begun
 *   topic                          (if retention deleted some before it was seen, they are logged as lost)
 *   seen                           from the store's `next`, once a witness (a counted record before it) has
 *                                  been read again and is the same
 *   ends before `next`, or the     it was re-created, or lost its end. Refused; accepted, it is a new
 *   newest witness left differs    incarnation, "kafka:access~2", counted from its beginning; if retention
 *                                  deleted records of it before it was seen, they are logged as lost
 *   begins behind `next`           records were deleted before they were counted. Refused; accepted, they are
 *                                  skipped
 *   no witness is left             compaction, or another topic: refused. `--accept access` resumes it,
 *                                  `--accept access~` counts it as a new incarnation
 *   retention deleted all          every deleted record was counted: it is resumed, with a warning
 *   witnesses
 *
 * Why     : only offsets say what was counted. Only a record's content can tell whether offsets still belong
 *           to the same topic: librdkafka 2.0 shows neither topic ids nor leader epochs.
 * Gaps    : compaction and transactions leave offsets out, so ranges are by offset, never by number.
 * Later   : while partitions are counted, recheck.h compares again.
 * Errors  : EX_DATAERR: a topic is refused. EX_UNAVAILABLE + retryable: Kafka does not answer, or a topic
 *           changed.
 * Threads : one at a time.
 */
#pragma once

#include "aggregate/batch.h"
#include "config/config.h"
#include "daemon/topic/compare.h"
#include "ingest/kafka/kafka.h"
#include "store/store.h"

struct topic;

struct partition {
    struct topic *topic;
    int32_t number;
    bool begins;   /* topics_begin() must find out where it begins */
    bool is_known; /* the store has a position; the next members hold it */
    int64_t next;  /* first offset that is not counted */
    /* number of offsets before `next` that are deleted and were never counted; accepted */
    int64_t lost;
    uint64_t tail_hash;         /* hash of the last record counted */
    uint32_t tail_len;          /* `next` minus that record's offset; 0: no such record, or too far */
    struct witnesses witnesses; /* counted records before `next` */
    uint32_t first_witness;     /* index of the first witness that retention has not deleted */
    bool check_tail;            /* witnesses must be compared before anything is counted */
    int status_index;           /* index in the daemon's status; -1: none */
    int32_t broker;             /* broker that sent its last record */
    int64_t troubles;           /* intake's `troubles` when that record came */

    /* The writer's: */
    int64_t stored;                    /* offset before which everything is counted and durable */
    struct witnesses stored_witnesses; /* witnesses before `stored` */
    int64_t empty;                     /* offsets before `stored` that had no record, since the start */
    /* first witness after which records were stored without comparing it; offset -1: none */
    struct witness unproven;
    /* offset of a witness that was found to be gone, and is not asked again */
    int64_t settled_offset;
    int64_t checked_ms; /* monotonic time of the last comparison */

    struct latest latest;
    bool was_seen;       /* the feed has looked at its first record (feed_look_at_first()) */
    size_t range;        /* index in its intake's open batch, if it is there */
    bool is_held;        /* its records wait for a schema (held.h) */
    struct kafka *kafka; /* consumer that reads it; NULL: none here; see intake.h */

    /* The last open transaction in Kafka, for consume_note_stand(). */
    int64_t stable;            /* offset at which the transaction begins */
    bool stand_is_told;        /* the log has told of this transaction */
    _Atomic int64_t stands_ms; /* monotonic time since which it holds records back; 0: there is none */
};

struct topic {
    const struct config_source *config;
    const char *name;
    char source[RANGE_SOURCE_BYTES]; /* source name of the newest incarnation */
    int incarnation;                 /* number of the incarnation, from 1 */
    bool is_known;                   /* the store has a partition of it */
    bool is_accepted;                /* --accept names it */
    /* --accept names it with a "~": if no witness is left, it is a new incarnation */
    bool is_renewed;
    bool is_copy;     /* made by topic_copy(): its losses are refused elsewhere */
    bool is_fixed;    /* intakes read it: only partitions with `begins` may change */
    bool is_outdated; /* the topic changed, so the session must end */
    int refuted;      /* incarnation that Kafka turned out not to have; 0: none */
    struct partition *partitions;
    int32_t count, capacity;
    bool policy_was_asked; /* its cleanup policy was asked for; that it compacts is logged */
    int64_t unproven;      /* times it was resumed although no record was left to compare */
    int32_t known;         /* number of partitions that the store has seen, at least */
};

/* Makes a topic for each source of type kafka. `accepted`: topics named by --accept. */
struct topic *topics_new(const struct config *c, const char *const accepted[], size_t accepted_count,
                         size_t *topic_count);
void topics_free(struct topic *topics, size_t count);

/* Find out which topics the store knows, in which incarnation, and how many partitions they have. Pre: no
 * intake reads them. */
bool topics_look(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                 struct err *e) MUST_CHECK;
/* Claim all partitions with `begins`, decide where each is resumed, and compare their witnesses. EX_DATAERR:
 * a topic is refused. */
bool topics_begin(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                  struct kafka *reader, struct err *e) MUST_CHECK;
/* Are the logs of all partitions with `begins` those that were counted? `copy` comes from topic_copy(). False
 * with `t` outdated: it is another topic, which is accepted. */
bool topic_prove(struct topic *t, struct topic *copy, struct kafka *reader, struct err *e) MUST_CHECK;
/* The same by the witnesses of all its partitions in the store, for one that has none. True, too, if there
 * are none yet. */
bool topic_prove_by_others(struct topic *t, struct store *store, struct kafka *reader,
                           struct err *e) MUST_CHECK;
/* Copy a topic without its partitions. The caller adds its own, and frees them. */
struct topic topic_copy(const struct topic *t);
/* The first partition with `begins`, or the next one behind `after`; NULL: there is none. */
struct partition *topics_next(struct topic *topics, size_t count, const struct partition *after);
/* Decide where one partition begins, without asking Kafka. It has the records of [low, high); an unknown one
 * begins at `start`. False: refused. *recreated: it is another topic; else some records are lost. */
bool partition_begin(struct partition *p, int64_t low, int64_t high, int64_t start, bool *recreated,
                     struct err *e) MUST_CHECK;
/* Set the partition to a position of the store. r->to -1: it is new. */
void partition_place(struct partition *p, const struct range *r);
/* The range that names the partition, up to `next`: empty, or the lost records. */
void partition_range(const struct partition *p, struct range *r);
/* Does this word of --accept mean this topic? */
enum topic_accept { ACCEPT_NOT, ACCEPT_TOPIC, ACCEPT_RENEWED };
enum topic_accept topic_accepts(const char *topic, const char *word);
/* The incarnation of `topic` that a source of the store is; 0: none. */
int topic_incarnation(const char *topic, const char *source);
/* Make the topic a new incarnation, which is another source: it was re-created, and that is accepted. */
void topic_renew(struct topic *t);
