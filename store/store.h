/* store.h - a handle to stored counts, and the promise of every kind of store: SQLite, MongoDB, memory. A
 * handle has some of four tables of operations. Its callers use them through writer.h (counting), reader.h
 * (queries, checks), jobs.h (jobs) and fill.h (copies). Every function with a struct err may fail (see
 * Errors).
 *
 * Promise: store_apply() is durable, and exact whatever crashes. A batch's deltas, offsets and books are all
 *          stored, or none is. In a server, readers may see them arrive one by one, and the next writer
 *          finishes what a crashed writer began. A batch is applied only if each of its ranges continues the
 *          stored position (`from` equals the partition's `next`), so nothing is counted twice. A new
 *          partition may begin anywhere, but in a server a new file begins at 0: it may have been taken out
 *          since its position was read.
 * Series : a handle names each series of a report by a number, from 1, for as long as it is open. A number
 *          is valid only after a call has returned it. Number 0 is the series `other`: it takes the counts of
 *          new series once `report.series_max` exist.
 * Expiry : old time buckets are deleted behind watermarks, and scans before those are refused (watermarks.h).
 * Threads: a handle belongs to one thread. A file has one STORE_WRITE handle (a second one is refused); in a
 *          server a source belongs to the writer that claimed it last. Any number of STORE_READ handles may
 *          read beside it, each call from one snapshot. STORE_WORK is for servers: it reads as a writer does,
 *          and carries out jobs beside any number of others. STORE_FILL is the one writer of an empty store
 *          that becomes a copy of another (fill.h).
 * Spans  : resolutions are minutes to months. A report may count seconds, too (report_cell()); a store may
 *          refuse such a report.
 * Errors : EX_TEMPFAIL + retryable: another process holds the lock. EX_TEMPFAIL: another writer took over,
 *          and the batch was dropped; resume from the positions of store_claim(). EX_IOERR: disk full, I/O
 *          error (retryable). EX_DATAERR: damaged, or a range that does not continue. EX_CONFIG: another
 *          definition of a report under the same name and generation, or another writer beside which this
 *          one must not count. (EX_TEMPFAIL while it is opened: the other writer may end.) EX_NOINPUT: the
 *          store to read does not exist. EX_UNAVAILABLE + retryable, from a scan: a watermark was moved past
 *          its begin; call store_watermarks() again.
 */
#pragma once

#include "aggregate/dimension.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/quota.h"
#include "store/prealloc.h"

struct watermarks; /* reader.h */

enum store_mode { STORE_READ, STORE_WRITE, STORE_WORK, STORE_FILL };

#define STORE_SERIES_OTHER 0
#define STORE_OTHER_KEY    DIMENSION_OTHER /* the key shown for the series `other` */

/* The server's answer to damaged documents from other programs. */
enum store_validation { VALIDATION_OFF, VALIDATION_WARN, VALIDATION_ERROR };

/* Identity of a writer, for other writers to the same server. Borrowed until the store is closed. */
struct store_writer {
    const char *group, *instance; /* Kafka consumer group and instance; NULL: none */
    const char *topics[RAW_SOURCES_MAX];
    size_t topic_count;
    bool backfills; /* all its batches backfill: store/backfill.h */
};

/* Options of a writer, which some stores support; zeros: none. Readers heed `clock`, too. */
struct store_options {
    const struct clock *clock; /* NULL: the system's; borrowed until the store is closed */
    int64_t wait_max_ms; /* longest wait for a server, for its connection or one answer; 0: store's choice */
    struct store_writer writer;
    enum store_validation validation;
    int64_t rollup_delay_ms; /* how long documents of months may lack a batch; 0: store's choice */
    size_t connections;      /* connections to a server over which a batch is applied; 0: store's choice */
    bool without_indexes;    /* whether to make only the indexes that the store itself needs */
    bool with_unsafe_writes; /* whether the server may lose acknowledged writes; else that is EX_CONFIG */
    bool ttl;                /* whether the server expires documents. MongoDB only: EX_CONFIG elsewhere */
    bool weeks;              /* whether documents of weeks are wanted */
    enum weekday week_start; /* first day of the weeks */
    struct prealloc_options prealloc;
    /* By source number: the raw events to store beside the counts; NULL: none. Borrowed. MongoDB only:
     * EX_CONFIG elsewhere. */
    const struct raw *raws[RAW_SOURCES_MAX];
    size_t raw_count;
    const struct watermarks *watermarks; /* STORE_FILL: those of each report; NULL: none */
};

/* A writer's batches that documents of longer periods lack yet, and what it wrote since it was opened:
 * mongo/writer/longer.h. Other stores: zeros. */
struct longer_figures {
    uint64_t batches, log_bytes;
    int64_t since_ms; /* when the first of them was committed, by the monotonic clock, if there are any */
    uint64_t fine_updates, longer_updates; /* of documents of the shortest period, and of longer ones */
};

struct store {
    const struct store_reader_ops *reader;
    const struct store_writer_ops *writer; /* NULL: the handle is not a STORE_WRITE one */
    const struct store_jobs_ops *jobs;     /* NULL: batches do the work of jobs, or it is a STORE_READ one */
    const struct store_fill_ops *fill;     /* NULL: the handle is not a STORE_FILL one */
    void (*close)(struct store *st);
    const struct report *reports; /* reports in the store, each in its current generation; owned */
    size_t report_count;
    const struct clock *clock;
    struct deadline *deadline; /* scans and walks fail once it is over; NULL: none. Set by the caller */
    struct share *memory;      /* of the question that reads; NULL: no limit. Set by the caller */
    bool is_shared;            /* whether writers of other partitions may count beside this one */
    struct prealloc_figures prealloc; /* a writer's figures after its last batch */
    struct longer_figures longer;     /* a writer's figures, as they are now */
    struct raw_figures *raws; /* a writer's figures of each source with raw events, after its last batch */
    size_t raw_count;
};

void store_close(struct store *st);

/* The index of a report by its name; -1: there is none. */
int store_find_report(const struct store *st, struct slice name);
