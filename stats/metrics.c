#include "stats/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static void add_head(struct text *out, const char *name, const char *type, const char *help)
{
    text_printf(out, "# HELP tallyd_%s %s\n# TYPE tallyd_%s %s\n", name, help, name, type);
}

static void add_one(struct text *out, const char *name, const char *type, int64_t value, const char *help)
{
    add_head(out, name, type, help);
    text_printf(out, "tallyd_%s %" PRId64 "\n", name, value);
}

static void add_seconds(struct text *out, int64_t us)
{
    text_printf(out, "%" PRId64 ".%06" PRId64, us / 1000000, us % 1000000);
}

/* Adds a label's value; escapes backslash, double quote and line feed. */
static void add_label(struct text *out, const char *value)
{
    text_putc(out, '"');
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"')
            text_putc(out, '\\');
        if (*value == '\n')
            text_puts(out, "\\n");
        else
            text_putc(out, *value);
    }
    text_putc(out, '"');
}

static void add_rejects(const struct status *s, struct text *out)
{
    add_head(out, "lines_rejected_total", "counter", "Records rejected, by reason.");
    for (int i = 0; i < REJECT_COUNT; i++)
        text_printf(out, "tallyd_lines_rejected_total{reason=\"%s\"} %" PRId64 "\n",
                    reject_name((enum reject_reason)i), s->books.entries[BOOK_REJECTED + i]);
}

static void add_reports(struct status *s, struct text *out)
{
    static const struct {
        const char *name, *help;
        int entry;
    } rows[] = {
        {"events_counted_total", "Events counted, by report.", BOOK_COUNTED},
        {"events_filtered_total", "Events that did not match a report's conditions.", BOOK_FILTERED},
        {"events_late_total", "Events whose time had expired in every resolution of a report.", BOOK_LATE}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        add_head(out, rows[i].name, "counter", rows[i].help);
        for (size_t r = 0; r < s->options.report_count; r++) {
            text_printf(out, "tallyd_%s{report=", rows[i].name);
            add_label(out, s->options.reports[r].name);
            text_printf(out, "} %" PRId64 "\n", *books_report(&s->books, r, rows[i].entry));
        }
    }
}

/* Adds resolutions that this daemon expires, and those with late events: another daemon may expire more. */
static void add_late(const struct status *s, struct text *out)
{
    add_head(out, "events_expired_total", "counter",
             "Events whose time bucket of this resolution had expired: only longer resolutions count them.");
    for (size_t r = 0; r < s->options.report_count; r++) {
        const struct report *report = &s->options.reports[r];
        for (int span = 0; span < SPAN_MONTH; span++) {
            if (report->keep_ms[span] == 0 && s->late[r][span] == 0)
                continue;
            text_puts(out, "tallyd_events_expired_total{report=");
            add_label(out, report->name);
            text_printf(out, ",span=\"%s\"} %" PRId64 "\n", span_name((enum span)span), s->late[r][span]);
        }
    }
}

static int64_t lag_of(const struct status_partition *p)
{
    return p->end > p->next ? p->end - p->next : 0;
}

static int64_t next_of(const struct status_partition *p)
{
    return p->next;
}

static int64_t end_of(const struct status_partition *p)
{
    return p->end;
}

static int64_t transaction_of(const struct status_partition *p)
{
    return p->transaction_s;
}

static int64_t empty_of(const struct status_partition *p)
{
    return p->empty;
}

static void add_partitions(const struct status *s, struct text *out)
{
    static const struct {
        const char *name, *help;
        int64_t (*value)(const struct status_partition *p);
        bool needs_end, is_counter;
    } rows[] = {
        {"partition_next_offset", "Next offset to count of a partition: all before it is counted and stored.",
         next_of, false, false},
        {"partition_end_offset", "Offset of the end of a partition.", end_of, true, false},
        {"partition_lag_messages", "Offsets of a partition that are not counted yet.", lag_of, true, false},
        {"partition_open_transaction_seconds",
         "How long an open transaction in Kafka has held back the messages behind it.", transaction_of, true,
         false},
        {"partition_offsets_without_record_total",
         "Offsets of a partition that were passed over, since they had no record: those of "
         "transactions, of aborted records, and of records that compaction deleted before they were "
         "counted.",
         empty_of, false, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        add_head(out, rows[i].name, rows[i].is_counter ? "counter" : "gauge", rows[i].help);
        for (size_t k = 0; k < s->partition_count; k++) {
            const struct status_partition *p = &s->partitions[k];
            if (!p->is_here || (rows[i].needs_end && p->end < 0))
                continue;
            text_printf(out, "tallyd_%s{source=", rows[i].name);
            add_label(out, p->source);
            text_printf(out, ",partition=\"%" PRId32 "\"} %" PRId64 "\n", p->number, rows[i].value(p));
        }
    }
}

static void add_latencies(const struct status *s, struct text *out)
{
    static const char name[] = "apply_duration_seconds";
    uint64_t sum = 0;
    add_head(out, name, "histogram", "Time the store took to commit a batch.");
    for (size_t i = 0; i < STATUS_LATENCIES; i++) {
        sum += s->latencies[i];
        text_printf(out, "tallyd_%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                    (double)status_latencies_ms[i] / 1000, sum);
    }
    text_printf(out, "tallyd_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, s->batches);
    text_printf(out, "tallyd_%s_sum ", name);
    add_seconds(out, s->apply_us);
    text_printf(out, "\ntallyd_%s_count %" PRIu64 "\n", name, s->batches);
}

static void add_interval(const struct status *s, struct text *out)
{
    add_head(out, "flush_interval_seconds", "gauge",
             "Interval at which batches are written; it grows if the store is slow.");
    text_puts(out, "tallyd_flush_interval_seconds ");
    add_seconds(out, s->figures.flush_interval_ms * 1000);
    text_putc(out, '\n');
}

/* For MongoDB. Coverage is used / begun. Waste is at least unused / made, at most (made - used) / made. */
static void add_prealloc(const struct status *s, struct text *out)
{
    const struct prealloc_figures *f = &s->last_batch.prealloc;
    add_one(out, "documents_begun_total", "counter", f->begun,
            "Documents that got their first count, in periods after that of the daemon's start.");
    add_one(out, "documents_preallocated_total", "counter", f->made,
            "Documents that this daemon created before anything was counted in them.");
    add_one(out, "documents_preallocated_used_total", "counter", f->used,
            "Preallocated documents that got their first count.");
    add_one(out, "documents_preallocated_unused_total", "counter", f->unused,
            "Preallocated documents whose series was next counted in a later period.");
    add_head(
        out, "preallocation_spike", "gauge",
        "Documents created in the busiest minute of the UTC day so far, divided by the average minute's.");
    text_printf(out, "tallyd_preallocation_spike %" PRId64 ".%03" PRId64 "\n", f->spike_milli / 1000,
                f->spike_milli % 1000);
}

/* For sources with raw events. */
static void add_raws(const struct status *s, struct text *out)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } rows[] = {
        {"raw_stored_total", "Raw events stored, by source.", offsetof(struct raw_figures, stored)},
        {"raw_refused_total", "Raw events that the server refused.", offsetof(struct raw_figures, refused)},
        {"raw_expired_total", "Raw events not stored, since their period had been dropped.",
         offsetof(struct raw_figures, expired)}};
    for (size_t i = 0; i < COUNT_OF(rows) && s->last_batch.raw_count > 0; i++) {
        add_head(out, rows[i].name, "counter", rows[i].help);
        for (size_t k = 0; k < s->last_batch.raw_count; k++) {
            int64_t value;
            if (s->raws[k].source == NULL)
                continue;
            memcpy(&value, (const char *)&s->raws[k] + rows[i].offset, sizeof value);
            text_printf(out, "tallyd_%s{source=", rows[i].name);
            add_label(out, s->raws[k].source);
            text_printf(out, "} %" PRId64 "\n", value);
        }
    }
}

static void add_store(const struct status *s, struct text *out)
{
    add_one(out, "batches_applied_total", "counter", (int64_t)s->batches, "Batches committed.");
    add_one(out, "cells_applied_total", "counter", (int64_t)s->cells,
            "Cells in committed batches: one per series and minute.");
    add_one(out, "last_batch_events", "gauge", s->last_batch.events, "Events in the last committed batch.");
    add_one(out, "last_batch_cells", "gauge", s->last_batch.cells, "Cells in the last committed batch.");
    add_latencies(s, out);
    add_interval(s, out);
    add_prealloc(s, out);
    add_raws(s, out);
    add_one(out, "expired_rows_total", "counter", (int64_t)s->expired_rows,
            "Rows and documents that expired and were deleted, or whose shorter time buckets were.");
    add_one(out, "expired_bytes_total", "counter", (int64_t)s->expired_bytes,
            "Bytes of expired rows and documents that were deleted.");
    if (s->expired_wall_ms > 0) {
        add_one(out, "expire_last_run_seconds", "gauge", s->expired_wall_ms / 1000,
                "Time of the last expiry run, in seconds since 1970.");
        add_one(out, "expire_clock_ahead_seconds", "gauge", s->expired_ahead_ms / 1000,
                "How far the clock was ahead of the newest events at the last expiry run.");
    }
    add_one(out, "store_errors_total", "counter", (int64_t)s->store_errors,
            "Failed attempts to commit a batch.");
    add_one(out, "store_reachable", "gauge", !s->store_is_away,
            "1 if the last attempt to commit succeeded, else 0.");
    add_one(out, "schemas_waiting", "gauge", s->schemas_waiting,
            "Schemas that the registry does not give, and for which messages wait.");
    add_one(out, "schema_failures_total", "counter", s->schema_failures,
            "Failed requests for a schema; they are retried.");
}

/* For a store that has jobs. */
static void add_jobs(const struct status *s, struct text *out)
{
    add_one(out, "rollup_months_total", "counter", (int64_t)s->months_rolled,
            "Months of a report that this daemon rolled up into documents of years.");
    add_one(out, "rollup_documents_total", "counter", (int64_t)s->documents_rolled,
            "Documents of months that this daemon rolled up.");
    add_one(out, "top_periods_total", "counter", (int64_t)s->periods_ranked,
            "Hours, days and months of a report that this daemon ranked.");
    add_one(out, "job_periods_waiting", "gauge", (int64_t)s->jobs_waiting,
            "Periods of all reports that are over, and not rolled up or ranked yet, by any daemon.");
    add_one(out, "rollup_batches_waiting", "gauge", (int64_t)s->longer.batches,
            "Batches of this daemon that documents of months lack yet.");
    add_one(out, "rollup_log_bytes_waiting", "gauge", (int64_t)s->longer.log_bytes, "Bytes of their logs.");
    add_one(out, "document_updates_total", "counter", (int64_t)s->longer.fine_updates,
            "Updates that batches made, of documents of the shortest period of a report.");
    add_one(out, "rollup_updates_total", "counter", (int64_t)s->longer.longer_updates,
            "Updates that roll-ups made, of documents of longer periods.");
    add_one(out, "rollup_delay_seconds", "gauge", status_longer_late_locked(s) / 1000,
            "For how long the oldest of these batches has waited.");
    add_one(out, "job_failures_total", "counter", (int64_t)s->job_failures,
            "Failed runs of jobs; they are retried.");
}

/* The process' resident memory that is not of files: memory limits apply to it. -1: not known. */
static int64_t anonymous_bytes(void)
{
    char line[128];
    int64_t kib = -1;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "RssAnon: %" SCNd64 " kB", &kib) == 1)
            break;
    }
    fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

static void add_memory(const struct status *s, struct text *out)
{
    const struct status_figures *f = &s->figures;
    int64_t anonymous = anonymous_bytes();
    add_one(out, "memory_shards_bytes", "gauge", f->shard_bytes,
            "Memory in use by the ingest threads' tables.");
    add_one(out, "memory_queue_bytes", "gauge", f->queue_bytes, "Memory in use by messages fetched ahead.");
    if (f->memory_budget_bytes > 0)
        add_one(out, "memory_budget_bytes", "gauge", f->memory_budget_bytes,
                "Memory that the configuration allows for tables and messages fetched ahead.");
    if (anonymous >= 0)
        add_one(out, "memory_anonymous_bytes", "gauge", anonymous,
                "Resident memory of the process that is not backed by files.");
}

static void add_state(const struct status *s, struct text *out)
{
    struct text why = {0};
    add_head(out, "build_info", "gauge", "Always 1; the version is a label.");
    text_puts(out, "tallyd_build_info{version=\"" TALLYD_VERSION "\"} 1\n");
    add_head(out, "start_time_seconds", "gauge", "Start time of the daemon, in seconds since 1970.");
    text_printf(out, "tallyd_start_time_seconds %" PRId64 ".%03" PRId64 "\n", s->begun_wall_ms / 1000,
                s->begun_wall_ms % 1000);
    add_one(out, "ready", "gauge", status_is_ready_locked(s, &why), "1 if /readyz answers 200, else 0.");
    text_fini(&why);
}

static void add_sources(struct rejects *rj, struct text *out)
{
    pthread_mutex_lock(&rj->lock);
    for (int is_rejects = 0; is_rejects < 2; is_rejects++) {
        const char *name = is_rejects ? "source_rejected_total" : "source_consumed_total";
        add_head(out, name, "counter",
                 is_rejects ? "Records rejected, by source of the configuration."
                            : "Records consumed, by source of the configuration.");
        for (size_t i = 0; i < rj->source_count; i++) {
            const struct rejects_source *of = &rj->sources[i];
            text_printf(out, "tallyd_%s{source=", name);
            add_label(out, of->name);
            text_printf(out, "} %" PRId64 "\n", is_rejects ? of->rejected : of->consumed);
        }
    }
    pthread_mutex_unlock(&rj->lock);
}

void metrics_write(struct status *s, struct rejects *rj, struct text *out)
{
    add_sources(rj, out);
    pthread_mutex_lock(&s->lock);
    add_state(s, out);
    add_one(out, "messages_consumed_total", "counter", s->figures.messages, "Messages consumed.");
    add_one(out, "lines_consumed_total", "counter", s->books.entries[BOOK_CONSUMED],
            "Records consumed: lines, or the records in messages.");
    add_one(out, "events_parsed_total", "counter", s->books.entries[BOOK_PARSED], "Events parsed.");
    add_rejects(s, out);
    add_one(out, "dead_letters_written_total", "counter", s->figures.dead_letters,
            "Rejected records written to the dead-letter queue.");
    add_reports(s, out);
    add_late(s, out);
    add_partitions(s, out);
    add_one(out, "partitions", "gauge", s->figures.partitions, "Partitions that this daemon consumes.");
    add_one(out, "rebalances_total", "counter", s->figures.rebalances,
            "Times the consumer group assigned partitions to this daemon.");
    add_one(out, "files_lost_total", "counter", s->figures.files_lost,
            "Followed files whose uncounted rest was not found, or was damaged.");
    add_one(out, "unproven_total", "counter", s->figures.unproven,
            "Times counting continued although no counted record was left to compare with its topic.");
    add_one(out, "lag_messages", "gauge", status_lag_locked(s),
            "Messages that are not counted yet, over all partitions.");
    add_store(s, out);
    add_jobs(s, out);
    add_memory(s, out);
    pthread_mutex_unlock(&s->lock);
}
