#include "stats/status.h"

#include "base/civil.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* If a source pauses for longer than this, its rate falls. */
#define PAUSE_MS 3000

const int64_t status_latencies_ms[STATUS_LATENCIES] = {1,   2,   5,    10,   20,   50,   100,
                                                       200, 500, 1000, 2000, 5000, 10000};

static const char *const states[] = {"opening", "starting", "waiting", "counting", "ended", "stopping"};

void status_init(struct status *s, const struct status_options *options)
{
    *s = (struct status){.options = *options};
    s->begun_ms = s->noted_ms = clock_mono_ms(options->clock);
    s->begun_wall_ms = clock_wall_ms(options->clock);
    books_init(&s->books, options->report_count);
    s->late = xcalloc(options->report_count + 1, sizeof *s->late);
    pthread_mutex_init(&s->lock, NULL);
}

void status_fini(struct status *s)
{
    for (size_t i = 0; i < s->partition_count; i++)
        free(s->partitions[i].source);
    free(s->partitions);
    free(s->late);
    books_fini(&s->books);
    pthread_mutex_destroy(&s->lock);
}

static void forget_steps(struct status *s, int64_t before_ms)
{
    size_t gone = 0;
    while (gone < s->step_count && s->steps[gone].at_ms < before_ms)
        gone++;
    if (gone == 0 && s->step_count == STATUS_STEPS_MAX)
        gone = 1;
    s->step_count -= gone;
    memmove(s->steps, s->steps + gone, s->step_count * sizeof *s->steps);
}

static int64_t consumed(const struct status *s)
{
    return s->books.entries[BOOK_CONSUMED];
}

void status_note(struct status *s, const struct status_figures *figures)
{
    pthread_mutex_lock(&s->lock);
    int64_t now_ms = clock_mono_ms(s->options.clock), before = consumed(s);
    s->figures = *figures;
    s->figures.books = &s->books;
    books_clear(&s->books);
    books_add(&s->books, figures->books);
    forget_steps(s, now_ms - STATUS_RATE_MS);
    if (s->step_count == 0 || consumed(s) != before)
        s->steps[s->step_count++] = (struct status_step){now_ms, consumed(s)};
    s->noted_ms = now_ms;
    pthread_mutex_unlock(&s->lock);
}

void status_note_batch(struct status *s, const struct status_batch *batch)
{
    size_t bucket = 0;
    while (bucket < STATUS_LATENCIES && batch->apply_us > status_latencies_ms[bucket] * 1000)
        bucket++;
    pthread_mutex_lock(&s->lock);
    s->last_batch = *batch;
    for (size_t i = 0; i < batch->raw_count; i++)
        s->raws[i] = batch->raws[i];
    s->batches++;
    s->cells += (uint64_t)batch->cells;
    s->latencies[bucket]++;
    s->apply_us += batch->apply_us;
    pthread_mutex_unlock(&s->lock);
}

void status_note_rollup(struct status *s, uint64_t documents)
{
    pthread_mutex_lock(&s->lock);
    s->months_rolled++;
    s->documents_rolled += documents;
    pthread_mutex_unlock(&s->lock);
}

void status_note_ranking(struct status *s)
{
    pthread_mutex_lock(&s->lock);
    s->periods_ranked++;
    pthread_mutex_unlock(&s->lock);
}

void status_note_jobs(struct status *s, uint64_t waiting)
{
    pthread_mutex_lock(&s->lock);
    s->jobs_waiting = waiting;
    if (waiting <= STATUS_JOBS_WAITING)
        s->jobs_behind_ms = 0;
    else if (s->jobs_behind_ms == 0)
        s->jobs_behind_ms = clock_mono_ms(s->options.clock);
    pthread_mutex_unlock(&s->lock);
}

void status_note_longer(struct status *s, const struct longer_figures *longer)
{
    pthread_mutex_lock(&s->lock);
    s->longer = *longer;
    pthread_mutex_unlock(&s->lock);
}

void status_note_job_failure(struct status *s)
{
    pthread_mutex_lock(&s->lock);
    s->job_failures++;
    pthread_mutex_unlock(&s->lock);
}

void status_note_late(struct status *s, size_t report, enum span span, int64_t events)
{
    pthread_mutex_lock(&s->lock);
    s->late[report][span] += events;
    pthread_mutex_unlock(&s->lock);
}

void status_note_expired(struct status *s, uint64_t rows, uint64_t bytes, int64_t ahead_ms)
{
    pthread_mutex_lock(&s->lock);
    s->expired_rows += rows;
    s->expired_bytes += bytes;
    s->expired_ahead_ms = ahead_ms;
    s->expired_wall_ms = clock_wall_ms(s->options.clock);
    pthread_mutex_unlock(&s->lock);
}

void status_note_store(struct status *s, const char *error)
{
    pthread_mutex_lock(&s->lock);
    s->store_is_away = error != NULL;
    s->store_errors += error != NULL;
    snprintf(s->store_error, sizeof s->store_error, "%s", error != NULL ? error : "");
    pthread_mutex_unlock(&s->lock);
}

void status_note_schemas(struct status *s, int64_t waiting, int64_t failures, const char *error)
{
    pthread_mutex_lock(&s->lock);
    s->schemas_waiting = waiting;
    s->schema_failures = failures;
    snprintf(s->schema_error, sizeof s->schema_error, "%s", error);
    pthread_mutex_unlock(&s->lock);
}

int status_add_partition(struct status *s, const char *source, int32_t number)
{
    int index = -1;
    pthread_mutex_lock(&s->lock);
    if (s->partition_count < STATUS_PARTITIONS_MAX) {
        s->partitions =
            xgrow(s->partitions, &s->partition_capacity, s->partition_count + 1, sizeof *s->partitions);
        index = (int)s->partition_count++;
        s->partitions[index] = (struct status_partition){xstrdup(source), number, 0, -1, true, 0, 0};
    }
    pthread_mutex_unlock(&s->lock);
    return index;
}

void status_note_partition(struct status *s, int index, int64_t next, int64_t end)
{
    if (index < 0)
        return;
    pthread_mutex_lock(&s->lock);
    ASSERT((size_t)index < s->partition_count);
    s->partitions[index].next = next;
    s->partitions[index].end = end;
    s->partitions[index].is_here = true;
    pthread_mutex_unlock(&s->lock);
}

void status_note_transaction(struct status *s, int index, int64_t seconds)
{
    pthread_mutex_lock(&s->lock);
    ASSERT(index >= 0 && (size_t)index < s->partition_count);
    s->partitions[index].transaction_s = seconds;
    pthread_mutex_unlock(&s->lock);
}

void status_note_empty(struct status *s, int index, int64_t offsets)
{
    pthread_mutex_lock(&s->lock);
    ASSERT(index >= 0 && (size_t)index < s->partition_count);
    s->partitions[index].empty = offsets;
    pthread_mutex_unlock(&s->lock);
}

void status_drop_partition(struct status *s, int index)
{
    status_note_partition(s, index, 0, -1);
    pthread_mutex_lock(&s->lock);
    s->partitions[index].is_here = false;
    pthread_mutex_unlock(&s->lock);
}

void status_note_stuck(struct status *s, const char *thread)
{
    pthread_mutex_lock(&s->lock);
    s->stuck = thread;
    pthread_mutex_unlock(&s->lock);
}

void status_set_lag_max(struct status *s, int64_t lag_max)
{
    pthread_mutex_lock(&s->lock);
    s->options.lag_max = lag_max;
    pthread_mutex_unlock(&s->lock);
}

static double rate(const struct status *s)
{
    if (s->step_count == 0)
        return 0;
    const struct status_step *first = &s->steps[0], *last = &s->steps[s->step_count - 1];
    int64_t now_ms = clock_mono_ms(s->options.clock);
    int64_t end_ms = now_ms - last->at_ms > PAUSE_MS ? now_ms : last->at_ms;
    if (end_ms <= first->at_ms)
        return 0;
    return (double)(last->consumed - first->consumed) * 1000 / (double)(end_ms - first->at_ms);
}

int64_t status_lag_locked(const struct status *s)
{
    int64_t lag = 0;
    for (size_t i = 0; i < s->partition_count; i++) {
        const struct status_partition *p = &s->partitions[i];
        lag += p->end > p->next ? p->end - p->next : 0;
    }
    return lag;
}

bool status_is_consuming(struct status *s)
{
    pthread_mutex_lock(&s->lock);
    bool consuming = s->figures.state > STATUS_STARTING;
    pthread_mutex_unlock(&s->lock);
    return consuming;
}

void status_count_rejects(struct status *s, int64_t counts[REJECT_COUNT])
{
    pthread_mutex_lock(&s->lock);
    memcpy(counts, &s->books.entries[BOOK_REJECTED], REJECT_COUNT * sizeof *counts);
    pthread_mutex_unlock(&s->lock);
}

static bool is_alive(const struct status *s, struct text *why)
{
    int64_t silent_ms = clock_mono_ms(s->options.clock) - s->noted_ms;
    if (silent_ms > STATUS_SILENCE_MS && s->figures.state != STATUS_OPENING)
        text_printf(why, "nothing was read or stored for %" PRId64 " s: a thread hangs\n", silent_ms / 1000);
    else if (s->stuck != NULL)
        text_printf(why, "a thread hangs: %s\n", s->stuck);
    else
        return true;
    return false;
}

bool status_is_alive(struct status *s, struct text *why)
{
    pthread_mutex_lock(&s->lock);
    bool alive = is_alive(s, why);
    pthread_mutex_unlock(&s->lock);
    return alive;
}

bool status_is_ready_locked(const struct status *s, struct text *why)
{
    int64_t lag = status_lag_locked(s), lag_max = s->options.lag_max;
    if (!is_alive(s, why))
        return false;
    if (s->figures.state == STATUS_OPENING)
        text_printf(why, "waiting for the store%s%s\n", s->store_is_away ? ": " : "", s->store_error);
    else if (s->figures.state == STATUS_STARTING)
        text_puts(why, "not consuming yet: no partition is assigned\n");
    else if (s->figures.state == STATUS_STOPPING)
        text_puts(why, "stopping\n");
    else if (s->store_is_away)
        text_printf(why, "the store does not take what it is given: %s\n", s->store_error);
    else if (s->schemas_waiting > 0)
        text_printf(why, "messages wait for their schema: %s\n", s->schema_error);
    else if (lag_max > 0 && lag > lag_max)
        text_printf(why, "the lag is %" PRId64 " messages, above http.lag_max, %" PRId64 "\n", lag, lag_max);
    else
        return true;
    return false;
}

bool status_is_ready(struct status *s, struct text *why)
{
    pthread_mutex_lock(&s->lock);
    bool ready = status_is_ready_locked(s, why);
    pthread_mutex_unlock(&s->lock);
    return ready;
}

int64_t status_longer_late_locked(const struct status *s)
{
    return s->longer.batches > 0 ? clock_mono_ms(s->options.clock) - s->longer.since_ms : 0;
}

void status_warn(struct status *s, struct text *out)
{
    pthread_mutex_lock(&s->lock);
    int64_t ms = s->jobs_behind_ms > 0 ? clock_mono_ms(s->options.clock) - s->jobs_behind_ms : 0;
    if (ms >= STATUS_JOBS_BEHIND_MS)
        text_printf(out,
                    "warning: %" PRIu64 " periods wait to be rolled up or ranked, more than %d for %" PRId64
                    " minutes: counts are right, `tallyd job list` says what waits\n",
                    s->jobs_waiting, STATUS_JOBS_WAITING, ms / MINUTE_MS);
    const int64_t late_ms = status_longer_late_locked(s);
    if (late_ms >= STATUS_LONGER_BEHIND_MS)
        text_printf(out,
                    "warning: documents of months lack what was counted in the last %" PRId64
                    " minutes: answers are right, but the server is too busy to roll %" PRIu64
                    " batches up\n",
                    late_ms / MINUTE_MS, s->longer.batches);
    pthread_mutex_unlock(&s->lock);
}

void status_line(struct status *s, char *buf, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    int n = snprintf(buf, bytes, "%s, %.0f lines/s", states[s->figures.state], rate(s));
    if (s->partition_count > 0 && n > 0 && (size_t)n < bytes)
        n += snprintf(buf + n, bytes - (size_t)n, ", lag %" PRId64, status_lag_locked(s));
    if (s->schemas_waiting > 0 && n > 0 && (size_t)n < bytes)
        n += snprintf(buf + n, bytes - (size_t)n, ", messages wait for their schema");
    if (s->store_is_away && n > 0 && (size_t)n < bytes)
        snprintf(buf + n, bytes - (size_t)n, ", the store is away");
    pthread_mutex_unlock(&s->lock);
}

static void write_partitions(const struct status *s, struct text *out)
{
    size_t shown = 0;
    text_puts(out, ",\"partitions\":[");
    for (size_t i = 0; i < s->partition_count; i++) {
        const struct status_partition *p = &s->partitions[i];
        if (!p->is_here)
            continue;
        text_puts(out, shown++ > 0 ? ",{\"source\":" : "{\"source\":");
        text_json(out, slice_text(p->source));
        text_printf(out, ",\"partition\":%" PRId32 ",\"next\":%" PRId64, p->number, p->next);
        if (p->end >= 0)
            text_printf(out, ",\"end\":%" PRId64, p->end);
        if (p->transaction_s > 0)
            text_printf(out, ",\"open_transaction_s\":%" PRId64, p->transaction_s);
        text_putc(out, '}');
    }
    text_putc(out, ']');
}

static void write_ready(const struct status *s, struct text *out)
{
    struct text why = {0};
    bool ready = status_is_ready_locked(s, &why);
    text_printf(out, ",\"ready\":%s", ready ? "true" : "false");
    if (!ready) {
        text_puts(out, ",\"not_ready\":");
        text_json(out, slice_of(why.ptr, why.len - 1)); /* without its line feed */
    }
    text_fini(&why);
}

void status_write(struct status *s, struct text *out)
{
    char now[CIVIL_ISO_BYTES];
    pthread_mutex_lock(&s->lock);
    const struct status_figures *f = &s->figures;
    int64_t mono_ms = clock_mono_ms(s->options.clock), wall_ms = clock_wall_ms(s->options.clock);
    bool is_silent = mono_ms - s->noted_ms > STATUS_SILENCE_MS && f->state != STATUS_OPENING;
    const char *state = is_silent ? "silent" : states[f->state];
    text_printf(out,
                "{\"version\":\"" TALLYD_VERSION "\",\"state\":\"%s\",\"now\":\"%s\",\"now_ms\":%" PRId64,
                state, civil_iso(wall_ms, now), wall_ms);
    text_printf(out, ",\"uptime_ms\":%" PRId64 ",\"store\":", mono_ms - s->begun_ms);
    text_json(out, slice_text(s->options.store));
    text_puts(out, ",\"source\":");
    text_json(out, slice_text(s->options.source));
    text_printf(out, ",\"messages\":%" PRId64 ",\"consumed\":%" PRId64 ",\"rejected\":%" PRId64, f->messages,
                consumed(s), books_rejected(&s->books));
    text_printf(out, ",\"dead_letters\":%" PRId64 ",\"rate\":%.1f,\"lag\":%" PRId64, f->dead_letters, rate(s),
                status_lag_locked(s));
    text_printf(out, ",\"offset\":%" PRId64 ",\"stored\":%" PRId64, f->offset, f->stored);
    text_printf(out, ",\"batches\":%" PRIu64 ",\"store_errors\":%" PRIu64, s->batches, s->store_errors);
    write_ready(s, out);
    write_partitions(s, out);
    text_puts(out, "}\n");
    pthread_mutex_unlock(&s->lock);
}
