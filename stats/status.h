/* status.h - the status of the daemon: the counting threads note it, and the HTTP server, the log and systemd
 * show it. Only status_add_partition() can fail.
 *
 *   status_note()            several times a second: the state, and the books since the start
 *   status_note_batch()      after every batch applied
 *   status_note_store()      after every attempt to apply one: did the store take it?
 *   status_note_partition()  the position in a partition, and its end
 *
 * Alive   : the counting threads note something several times a second. Silence for STATUS_SILENCE_MS means
 *           that they hang; so does status_note_stuck(). An unreachable store does not: it is retried, and
 *           noted. While the store is being opened, silence is normal.
 * Ready   : the daemon consumes, no message waits for its schema, the store takes its batches, and the lag is
 *           within lag_max.
 * Rate    : over the last STATUS_RATE_MS, between two batches. Lines are noted in steps of a flush, so a
 *           window cut by the clock would hold now more steps, now fewer.
 * Limits  : STATUS_PARTITIONS_MAX; further partitions are not shown.
 * Threads : any; every call takes the lock. Notes allocate nothing.
 */
#pragma once

#include "aggregate/books.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/prealloc.h"
#include "store/store.h"

#include <pthread.h>

#define STATUS_SILENCE_MS       30000 /* longer than the timeout of any call of the store or of Kafka */
#define STATUS_RATE_MS          10000
#define STATUS_STEPS_MAX        64
#define STATUS_PARTITIONS_MAX   4096
#define STATUS_LATENCIES        13
#define STATUS_ERROR_BYTES      256
#define STATUS_JOBS_WAITING     48 /* so many periods may wait for jobs: two days of hours */
#define STATUS_JOBS_BEHIND_MS   HOUR_MS
/* So long may documents of months lack a batch. */
#define STATUS_LONGER_BEHIND_MS (5 * (int64_t)MINUTE_MS)

/* Upper ends of the histogram's buckets in ms, inclusive; the last bucket has none. */
extern const int64_t status_latencies_ms[STATUS_LATENCIES];

enum status_state {
    STATUS_OPENING,  /* the daemon waits for the store, or opens it */
    STATUS_STARTING, /* not consuming yet: no partition is assigned */
    STATUS_WAITING,  /* no file has a line yet */
    STATUS_COUNTING, /* counting, or waiting for more */
    STATUS_ENDED,    /* standard input has ended, and there is no other source; queries are still answered */
    STATUS_STOPPING  /* draining */
};

struct status_figures {
    enum status_state state;
    const struct books *books;      /* books of all sources since the start; copied */
    int64_t messages;               /* consumed since the start; lines of files are included */
    int64_t dead_letters;           /* written since the start */
    int64_t partitions, rebalances; /* consumed here; times that a group assigned some, since the start */
    int64_t unproven;               /* times that counting went on though no witness could be compared */
    int64_t files_lost;             /* followed files whose rest was not found, since the start */
    int64_t offset, stored;         /* sums over files: bytes read; bytes that are durable in the store */
    int64_t shard_bytes;            /* memory of the ingest threads' shards */
    int64_t queue_bytes;            /* memory of messages fetched ahead for the ingest threads */
    int64_t memory_budget_bytes;    /* limit of shards and queues together; 0: none */
    int64_t flush_interval_ms;      /* time that events are gathered before a flush; 0: unknown */
};

struct status_batch {
    int64_t events, cells; /* numbers of events and cells in the batch */
    int64_t apply_us;      /* time until it was durable */
    /* Figures of the store since its handle was opened, including this batch: */
    struct prealloc_figures prealloc;
    const struct raw_figures *raws; /* by source; copied */
    size_t raw_count;
};

/* All of a partition's records before `next` are counted. */
struct status_partition {
    char *source; /* the topic */
    int32_t number;
    int64_t next;
    int64_t end;           /* Kafka's high watermark, exclusive; -1: not known yet */
    bool is_here;          /* this daemon consumes it; else it is not shown */
    int64_t transaction_s; /* seconds that an open transaction has held back later records; 0: none */
    int64_t empty;         /* offsets before `next` that had no record, since the start */
};

struct status_step {
    int64_t at_ms, consumed;
};

struct status_options {
    const struct clock *clock;
    const char *store, *source;   /* names to show; borrowed */
    const struct report *reports; /* borrowed; in the order of the books */
    size_t report_count;
    int64_t lag_max; /* messages; 0: no limit */
};

struct status {
    pthread_mutex_t lock;
    struct status_options options;
    int64_t begun_ms, noted_ms; /* monotonic */
    int64_t begun_wall_ms;
    struct status_figures figures; /* figures.books points to `books` */
    struct books books;
    struct status_partition *partitions;
    size_t partition_count, partition_capacity;
    struct status_batch last_batch;           /* its figures of raw events are copied to `raws` */
    struct raw_figures raws[RAW_SOURCES_MAX]; /* by source */
    uint64_t batches, store_errors, cells;
    uint64_t latencies[STATUS_LATENCIES + 1]; /* number of batches by status_latencies_ms */
    uint64_t expired_rows, expired_bytes;     /* rows (documents) and bytes expired since the start */
    int64_t (*late)[SPAN_COUNT];              /* by report; see status_note_late() */
    int64_t expired_wall_ms;                  /* time of the last expiry run; 0: never */
    int64_t expired_ahead_ms;                 /* how far the wall clock was ahead of the newest events then */
    int64_t apply_us;                         /* sum over all batches */
    uint64_t months_rolled, documents_rolled, periods_ranked, job_failures;
    struct longer_figures longer;
    uint64_t jobs_waiting; /* periods that are over, and not rolled up or ranked yet */
    int64_t
        jobs_behind_ms; /* since when more than STATUS_JOBS_WAITING wait, monotonic; 0: not so many wait */
    bool store_is_away;
    char store_error[STATUS_ERROR_BYTES];
    int64_t schemas_waiting; /* schemas for which messages wait */
    int64_t schema_failures; /* failed requests for schemas since the start */
    char schema_error[STATUS_ERROR_BYTES];
    const char *stuck;                          /* name of the thread that is stuck, borrowed; NULL: none */
    struct status_step steps[STATUS_STEPS_MAX]; /* for the rate, oldest first */
    size_t step_count;
};

void status_init(struct status *s, const struct status_options *options);
void status_fini(struct status *s);

void status_note(struct status *s, const struct status_figures *figures);
void status_note_batch(struct status *s, const struct status_batch *batch);
/* Notes events of a report that came when their time buckets of this resolution had expired. */
void status_note_late(struct status *s, size_t report, enum span span, int64_t events);
/* Notes an expiry run. `ahead_ms`: how far the wall clock was ahead of the newest events. */
void status_note_expired(struct status *s, uint64_t rows, uint64_t bytes, int64_t ahead_ms);
/* `error`: why the store did not take a batch; NULL: it did. */
void status_note_store(struct status *s, const char *error);
/* A month of a report was rolled up; a period was ranked; a job failed. */
void status_note_rollup(struct status *s, uint64_t documents);
void status_note_ranking(struct status *s);
void status_note_job_failure(struct status *s);
/* Notes how many periods wait for the jobs of all daemons. */
void status_note_jobs(struct status *s, uint64_t waiting);
void status_note_longer(struct status *s, const struct longer_figures *longer);
/* `error`: the first schema for which messages wait, and why; "": none. */
void status_note_schemas(struct status *s, int64_t waiting, int64_t failures, const char *error);
/* Returns the index for status_note_partition(); -1: there is no room. */
int status_add_partition(struct status *s, const char *source, int32_t number);
void status_note_partition(struct status *s, int index, int64_t next, int64_t end);
void status_note_transaction(struct status *s, int index, int64_t seconds);
/* `offsets`: those that had no record, since the start. */
void status_note_empty(struct status *s, int index, int64_t offsets);
void status_drop_partition(struct status *s, int index);
/* `thread` is borrowed for ever; NULL: none is stuck. */
void status_note_stuck(struct status *s, const char *thread);
void status_set_lag_max(struct status *s, int64_t lag_max);

/* Has the source been found, and is it read? */
bool status_is_consuming(struct status *s);
/* Gets the numbers of records rejected since the start, by reason. */
void status_count_rejects(struct status *s, int64_t counts[REJECT_COUNT]);
/* Is the daemon alive? If not, `why` gets the reason for an operator. */
bool status_is_alive(struct status *s, struct text *why);
/* Is the daemon alive and ready? If not, `why` gets the reason for an operator. */
bool status_is_ready(struct status *s, struct text *why);
/* Adds a line for each condition that an operator should know, though the daemon counts well: jobs that fall
 * behind. */
void status_warn(struct status *s, struct text *out);
/* "counting 1234 lines/s, lag 17" */
void status_line(struct status *s, char *buf, size_t bytes);
/* Adds the status as a JSON object. */
void status_write(struct status *s, struct text *out);
/* For metrics.c, which holds the lock. The lag: messages not counted yet, in all partitions whose end is
 * known. */
int64_t status_lag_locked(const struct status *s);
/* For how long the oldest batch has waited that documents of months lack; 0: none waits. */
int64_t status_longer_late_locked(const struct status *s);
/* Like status_is_ready(), under the lock. */
bool status_is_ready_locked(const struct status *s, struct text *why);
