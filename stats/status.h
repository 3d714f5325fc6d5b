/* status.h - how the counting goes, told by those who count and read by those who serve.
 *
 *   status_note()            several times a second: where it stands, and the books since the start
 *   status_note_batch()      after every batch applied
 *   status_note_store()      after every attempt: did the store take it?
 *   status_note_partition()  how far a partition is, and how long
 *
 * Alive   : whoever counts notes something several times a second; silence for STATUS_SILENCE_MS means that
 *           it hangs, and so does a thread that is told to be stuck. A store that is away is neither: it is
 *           tried again, and noted. While the store is opened, however long that takes, it is alive.
 * Ready   : it consumes, the store takes what it is given, and the lag is within lag_max.
 * Rate    : over the last STATUS_RATE_MS, between batches: they come in steps of a flush, and a window cut
 *           by the clock would see now more of them, now fewer.
 * Limits  : STATUS_PARTITIONS_MAX; further ones are not shown.
 * Threads : any; every call takes the lock. Notes allocate nothing.
 */
#pragma once

#include "aggregate/books.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/prealloc.h"

#include <pthread.h>

#define STATUS_SILENCE_MS     30000 /* longer than any one call of the store or of Kafka is waited for */
#define STATUS_RATE_MS        10000
#define STATUS_STEPS_MAX      64
#define STATUS_PARTITIONS_MAX 4096
#define STATUS_LATENCIES      13
#define STATUS_ERROR_BYTES    256

/* In milliseconds: upper ends of the histogram's buckets, inclusive; the last bucket has none. */
extern const int64_t status_latencies_ms[STATUS_LATENCIES];

enum status_state {
    STATUS_OPENING,  /* the store is waited for, or opened */
    STATUS_STARTING, /* not consuming yet: no partition is assigned */
    STATUS_WAITING,  /* the source is still empty */
    STATUS_COUNTING, /* and waiting for more */
    STATUS_ENDED,    /* the source has ended; what was counted is served */
    STATUS_STOPPING  /* draining */
};

struct status_figures {
    enum status_state state;
    const struct books *books;      /* since the start, of all sources; copied */
    int64_t messages;               /* consumed since the start; of a source that has none, lines */
    int64_t dead_letters;           /* rejected records written elsewhere, since the start */
    int64_t partitions, rebalances; /* consumed here; how often a group gave some since the start */
    int64_t unproven;               /* gone on with though no counted record could be compared */
    int64_t offset, stored;         /* of a file: read, durable */
    int64_t shard_bytes;            /* what the ingest threads hold, … */
    int64_t queue_bytes;            /* … and what was fetched ahead for them */
    int64_t memory_budget_bytes;    /* for both; 0: none */
    int64_t flush_interval_ms;      /* how long it gathers before it writes; 0: not told */
};

struct status_batch {
    int64_t events, cells; /* in it */
    int64_t apply_us;      /* how long it took to become durable */
    /* Of the store since its handle was opened, with this batch. */
    struct prealloc_figures prealloc;
    const struct raw_figures *raws; /* copied */
    size_t raw_count;
};

/* All of a partition's records before `next` are counted. */
struct status_partition {
    char *source; /* the topic */
    int32_t number;
    int64_t next;
    int64_t end;           /* of what there is, exclusive (the high watermark); -1: not known yet */
    bool is_here;          /* else another daemon has it now: it is not shown */
    int64_t transaction_s; /* for so long an open transaction has held back what is behind it; 0: none does */
};

struct status_step {
    int64_t at_ms, consumed;
};

struct status_options {
    const struct clock *clock;
    const char *store, *source;   /* borrowed; for people */
    const struct report *reports; /* borrowed; their order is that of the books */
    size_t report_count;
    int64_t lag_max; /* messages; 0: no limit */
};

struct status {
    pthread_mutex_t lock;
    struct status_options options;
    int64_t begun_ms, noted_ms; /* monotonic */
    int64_t begun_wall_ms;
    struct status_figures figures; /* its books are these: */
    struct books books;
    struct status_partition *partitions;
    size_t partition_count, partition_capacity;
    struct status_batch last_batch; /* its figures of raw events are these: */
    struct raw_figures raws[RAW_SOURCES_MAX];
    uint64_t batches, store_errors, cells;
    uint64_t latencies[STATUS_LATENCIES + 1];
    uint64_t expired_rows, expired_bytes; /* deleted since the start, as they were let go */
    int64_t (*late)[SPAN_COUNT];          /* by report; see status_note_late() */
    int64_t expired_wall_ms;              /* when it was last looked for such; 0: never */
    int64_t expired_ahead_ms;             /* by how much the clock was ahead of the newest events then */
    int64_t apply_us;                     /* of all batches */
    uint64_t months_rolled, documents_rolled, periods_ranked, job_failures;
    bool store_is_away;
    char store_error[STATUS_ERROR_BYTES];
    const char *stuck;                          /* borrowed: the thread that makes no turn; NULL: none */
    struct status_step steps[STATUS_STEPS_MAX]; /* of the rate, oldest first */
    size_t step_count;
};

void status_init(struct status *s, const struct status_options *options);
void status_fini(struct status *s);

void status_note(struct status *s, const struct status_figures *figures);
void status_note_batch(struct status *s, const struct status_batch *batch);
/* What was just looked for and deleted because nobody needs to keep it. */
/* Events of a report that came when their slots of the span had expired. */
void status_note_late(struct status *s, size_t report, enum span span, int64_t events);
void status_note_expired(struct status *s, uint64_t rows, uint64_t bytes, int64_t ahead_ms);
/* `error` is NULL where the store took it, else why not. */
void status_note_store(struct status *s, const char *error);
/* A month of a report was rolled up; a period was ranked; a job failed. */
void status_note_rollup(struct status *s, uint64_t documents);
void status_note_ranking(struct status *s);
void status_note_job_failure(struct status *s);
/* Returns what status_note_partition() takes; -1 where there is no room. */
int status_add_partition(struct status *s, const char *source, int32_t number);
void status_note_partition(struct status *s, int index, int64_t next, int64_t end);
void status_note_transaction(struct status *s, int index, int64_t seconds);
void status_drop_partition(struct status *s, int index);
/* `thread` is borrowed for ever; NULL: none is stuck. */
void status_note_stuck(struct status *s, const char *thread);
void status_set_lag_max(struct status *s, int64_t lag_max);

/* Has the source been found, and is it read? */
bool status_is_consuming(struct status *s);
/* How many records were read since the start, none of which was understood, and why most were not; else 0. */
int64_t status_all_rejected(struct status *s, enum reject_reason *most);
/* Is somebody counting? `why`, if not, for an operator. */
bool status_is_alive(struct status *s, struct text *why);
/* Alive, and can it do its work? */
bool status_is_ready(struct status *s, struct text *why);
/* "counting 1234 lines/s, lag 17" */
void status_line(struct status *s, char *buf, size_t bytes);
/* Adds all of it as a JSON object. */
void status_write(struct status *s, struct text *out);
/* Under the lock, for metrics.h: messages that are there and not counted, of all partitions whose end is
 * known; and as status_is_ready(). */
int64_t status_lag_locked(const struct status *s);
bool status_is_ready_locked(const struct status *s, struct text *why);
