/* topic.h - topics and their partitions as the store knows them: where each is to be gone on with.
 *
 *   never seen                     from `start`: earliest, latest or a time
 *   a new partition of a known one from its beginning: nothing of it was there when the others were begun
 *   seen                           from the store's `next`, once a counted record before it, a witness, has
 *                                  been read again and is the same
 *   ends before `next`, or the     it was re-created, or lost its end. Refused; accepted, it is a new
 *   newest witness left is another incarnation, "kafka:access~2", counted from its beginning; records that
 *                                  retention deleted from that before it was seen are told as lost
 *   begins behind `next`           records were deleted before they were counted. Refused; accepted, they are
 *                                  skipped
 *   no witness is left             compaction, or another topic: refused. `--accept access` goes on with it,
 *                                  `--accept access~` counts it as a new incarnation
 *   retention deleted all of them, but nothing that was not counted: goes on, with a warning
 *
 * Why     : offsets are all that says what was counted. Only a record's content can tell that they are still
 *           those of the same topic: librdkafka 2.0 shows neither topic ids nor leader epochs.
 * Gaps    : compaction and transactions leave offsets out, so ranges are by offset, never by number.
 * Later   : while partitions are counted, recheck.h compares again.
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
    bool begins;        /* topics_begin() is to find out where */
    bool is_known;      /* the store has a position of it; what follows is that */
    int64_t next;       /* the first offset that is not counted */
    int64_t lost;       /* accepted: this many offsets before `next` are deleted and were never counted */
    uint64_t tail_hash; /* of the last record counted, … */
    uint32_t tail_len;  /* … which is so far before `next`; 0: none was */
    struct witnesses witnesses; /* counted records before `next` */
    uint32_t first_witness;     /* of those that retention has not deleted */
    bool check_tail;            /* witnesses are to be compared before anything is counted */
    int status_index;           /* in the daemon's status */
    int32_t broker;             /* its last record came from there … */
    int64_t troubles;           /* … after so many troubles: of the intake */

    /* The writer's: */
    int64_t stored;                    /* all before is counted and durable */
    struct witnesses stored_witnesses; /* before `stored` */
    struct witness unproven;           /* stored after this one without comparing it; offset -1: none */
    int64_t settled_offset;            /* of a witness that expired, as was found out; -1: none */
    int64_t checked_ms;                /* a witness was compared; monotonic */

    int64_t latest_ms, latest_from; /* of its last range; 0: none yet */
    size_t range;                   /* its place in its intake's open batch, if it has one there */
    struct kafka *kafka;            /* who consumes it; NULL: nobody here; see intake.h */

    /* Of the last transaction in Kafka that is open: consume_note_stand()'s. */
    int64_t stable;            /* where it begins, … */
    bool stand_is_told;        /* … which the log has said */
    _Atomic int64_t stands_ms; /* nothing behind it can be read since then (monotonic); 0: there is none */
};

struct topic {
    const struct config_source *config;
    const char *name;
    char source[RANGE_SOURCE_BYTES]; /* of the newest incarnation */
    int incarnation;                 /* from 1 */
    bool is_known;                   /* the store has some partition of it */
    bool is_accepted;                /* --accept names it, … */
    bool is_renewed;                 /* … with a "~": where it cannot be told, it is another one */
    bool is_copy;                    /* only looked at: its losses are refused elsewhere */
    bool is_fixed;                   /* intakes read it: only its partitions that begin may change */
    bool is_outdated;                /* … so the session is to end: */
    int refuted;                     /* this incarnation is not what Kafka has; 0: none is known not to be */
    struct partition *partitions;
    int32_t count, capacity;
    int64_t unproven; /* so often it was gone on with though no record was left to compare */
    int32_t known;    /* so many, at least, the store has seen */
};

/* Of every source of type kafka. `accepted`: topics named by --accept. */
struct topic *topics_new(const struct config *c, const char *const accepted[], size_t accepted_count,
                         size_t *topic_count);
void topics_free(struct topic *topics, size_t count);

/* Which topics the store knows, in which incarnation, and how many partitions they have. Nobody may be
 * reading them. */
bool topics_look(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                 struct err *e) MUST_CHECK;
/* Of all partitions with `begins`: claim them, decide where each goes on, and compare the last records
 * counted. EX_DATAERR: a topic is refused. */
bool topics_begin(struct topic *topics, size_t count, struct store *store, struct kafka *k,
                  struct kafka *reader, struct err *e) MUST_CHECK;
/* Are the logs of all partitions with `begins` those that were counted? `copy` is of topic_copy(). False, and
 * `t` outdated: it is another topic, which is accepted. */
bool topic_prove(struct topic *t, struct topic *copy, struct kafka *reader, struct err *e) MUST_CHECK;
/* With partitions of its own, none of which begins. The caller frees them. */
struct topic topic_copy(const struct topic *t);
/* The first partition with `begins`, or the next after one; NULL: there is no other. */
struct partition *topics_next(struct topic *topics, size_t count, const struct partition *after);
/* One partition's decision, apart from Kafka: it has the records of [low, high), and is to begin at `start`
 * if nothing is known. False: refused; *recreated tells that it is another topic, else some records are lost.
 */
bool partition_begin(struct partition *p, int64_t low, int64_t high, int64_t start, bool *recreated,
                     struct err *e) MUST_CHECK;
/* The other way: the partition stands where a store says. r->to -1: it is new. */
void partition_place(struct partition *p, const struct range *r);
/* The range of nothing, or of what is lost, up to `next`: names it. */
void partition_range(const struct partition *p, struct range *r);
/* Does this word of --accept mean this topic? */
enum topic_accept { ACCEPT_NOT, ACCEPT_TOPIC, ACCEPT_RENEWED };
enum topic_accept topic_accepts(const char *topic, const char *word);
/* The incarnation of `topic` that a store's source is; 0: none. */
int topic_incarnation(const char *topic, const char *source);
/* The topic was re-created, and that is accepted: it is another source from now on. */
void topic_renew(struct topic *t);
