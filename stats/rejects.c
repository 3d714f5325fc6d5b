#include "stats/rejects.h"

#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

void rejects_init(struct rejects *rj, const struct clock *clock, size_t line_max)
{
    *rj = (struct rejects){.clock = clock, .fit = fit_new(line_max)};
    pthread_mutex_init(&rj->lock, NULL);
}

static void end_streak(struct rejects *rj, struct rejects_streak *s)
{
    free(s->label);
    text_fini(&s->sample);
    *s = rj->streaks[--rj->streak_count];
}

void rejects_fini(struct rejects *rj)
{
    for (size_t i = 0; i < REJECT_COUNT; i++) {
        for (size_t k = 0; k < REJECTS_EACH; k++) {
            text_fini(&rj->list[i][k].source);
            text_fini(&rj->list[i][k].line);
            text_fini(&rj->list[i][k].fits);
        }
    }
    while (rj->streak_count > 0)
        end_streak(rj, &rj->streaks[0]);
    free(rj->sources);
    fit_free(rj->fit);
    pthread_mutex_destroy(&rj->lock);
}

static void print_source(const struct record *r, struct text *out)
{
    text_clear(out);
    text_add(out, r->topic.ptr, r->topic.len);
    if (r->partition != RECORD_NO_PARTITION)
        text_printf(out, "/%" PRId32, r->partition);
}

static void print_fit(struct rejects *rj, const struct decode *decode, struct slice value,
                      enum reject_reason reason, struct text *out)
{
    struct fit_format found = {0};
    text_clear(out);
    if (value.len <= REJECTS_FIT_BYTES && fit_reject(rj->fit, decode, value, reason, &found))
        fit_print(&found, out);
    text_fini(&found.steps);
}

void rejects_note(struct rejects *rj, const struct decode *decode, const struct record *r, struct slice bytes,
                  struct reject why)
{
    pthread_mutex_lock(&rj->lock);
    struct rejects_sample *s = &rj->list[why.reason][rj->noted[why.reason]++ % REJECTS_EACH];
    s->why = why;
    s->at_ms = clock_wall_ms(rj->clock);
    s->offset = r->offset;
    s->is_cut = bytes.len > REJECTS_LINE_BYTES;
    print_source(r, &s->source);
    text_clear(&s->line);
    text_add(&s->line, bytes.ptr, s->is_cut ? REJECTS_LINE_BYTES : bytes.len);
    print_fit(rj, decode, r->value, why.reason, &s->fits);
    pthread_mutex_unlock(&rj->lock);
}

static void write_sample(const struct rejects_sample *s, struct text *out)
{
    char at[CIVIL_ISO_BYTES];
    text_printf(out, "{\"at\":\"%s\",\"source\":", civil_iso(s->at_ms, at));
    text_json(out, text_slice(&s->source));
    text_printf(out, ",\"offset\":%" PRId64 ",\"column\":%zu,\"line\":", s->offset, s->why.column);
    text_json(out, text_slice(&s->line));
    text_printf(out, ",\"cut\":%s,\"fits\":", s->is_cut ? "true" : "false");
    if (s->fits.len > 0)
        text_json(out, text_slice(&s->fits));
    else
        text_puts(out, "null");
    text_putc(out, '}');
}

static void write_reason(const struct rejects *rj, enum reject_reason reason, int64_t count, struct text *out)
{
    uint64_t noted = rj->noted[reason];
    text_printf(out, "{\"reason\":\"%s\",\"help\":", reject_name(reason));
    text_json(out, slice_text(reject_help(reason)));
    text_printf(out, ",\"records\":%" PRId64 ",\"samples\":[", count);
    for (uint64_t i = 0; i < noted && i < REJECTS_EACH; i++) {
        text_puts(out, i > 0 ? "," : "");
        write_sample(&rj->list[reason][(noted - 1 - i) % REJECTS_EACH], out);
    }
    text_puts(out, "]}");
}

void rejects_write(struct rejects *rj, const int64_t counts[REJECT_COUNT], struct text *out)
{
    int64_t all = 0;
    bool is_first = true;
    for (size_t i = 0; i < REJECT_COUNT; i++)
        all += counts[i];
    text_printf(out, "{\"rejected\":%" PRId64 ",\"reasons\":[", all);
    pthread_mutex_lock(&rj->lock);
    for (size_t i = 0; i < REJECT_COUNT; i++) {
        if (counts[i] == 0)
            continue;
        text_puts(out, is_first ? "" : ",");
        write_reason(rj, (enum reject_reason)i, counts[i], out);
        is_first = false;
    }
    pthread_mutex_unlock(&rj->lock);
    text_puts(out, "]}\n");
}

/* ---- streaks */

void rejects_add_source(struct rejects *rj, const char *name)
{
    rj->sources = xgrow(rj->sources, &rj->source_capacity, rj->source_count + 1, sizeof *rj->sources);
    rj->sources[rj->source_count++] = (struct rejects_source){.name = name};
}

static struct rejects_streak *find_streak(struct rejects *rj, const char *label)
{
    for (size_t i = 0; i < rj->streak_count; i++) {
        if (strcmp(rj->streaks[i].label, label) == 0)
            return &rj->streaks[i];
    }
    return NULL;
}

/* Make room for one more streak. */
static void end_oldest(struct rejects *rj)
{
    struct rejects_streak *oldest = &rj->streaks[0];
    for (size_t i = 1; i < rj->streak_count; i++) {
        if (rj->streaks[i].noted_ms < oldest->noted_ms)
            oldest = &rj->streaks[i];
    }
    end_streak(rj, oldest);
}

static struct rejects_streak *begin_streak(struct rejects *rj, const struct rejects_range *range)
{
    if (rj->streak_count == REJECTS_STREAKS_MAX)
        end_oldest(rj);
    struct rejects_streak *s = &rj->streaks[rj->streak_count++];
    *s = (struct rejects_streak){.label = xstrdup(range->label),
                                 .decode = range->decode,
                                 .begun_ms = clock_mono_ms(rj->clock),
                                 .begun_wall_ms = clock_wall_ms(rj->clock),
                                 .source = range->source};
    return s;
}

static enum reject_reason most_frequent(const struct books *b)
{
    enum reject_reason most = 0;
    for (enum reject_reason why = 0; why < REJECT_COUNT; why++) {
        if (b->entries[BOOK_REJECTED + why] > b->entries[BOOK_REJECTED + most] && why != REJECT_TOMBSTONE)
            most = why;
    }
    return most;
}

static void note_streak(struct rejects *rj, const struct rejects_range *range)
{
    struct rejects_streak *s = find_streak(rj, range->label);
    if (s != NULL && range->books->entries[BOOK_PARSED] > 0) {
        end_streak(rj, s);
        s = NULL;
    }
    if (range->records == 0)
        return;
    if (s == NULL)
        s = begin_streak(rj, range);
    s->noted_ms = clock_mono_ms(rj->clock);
    s->records += range->records;
    s->reason = most_frequent(range->books);
    if (range->sample.len > 0) {
        text_clear(&s->sample);
        text_add(&s->sample, range->sample.ptr, range->sample.len);
    }
}

void rejects_note_range(struct rejects *rj, const struct rejects_range *range)
{
    pthread_mutex_lock(&rj->lock);
    ASSERT(range->source < rj->source_count);
    rj->sources[range->source].consumed += range->books->entries[BOOK_CONSUMED];
    rj->sources[range->source].rejected += books_rejected(range->books);
    note_streak(rj, range);
    pthread_mutex_unlock(&rj->lock);
}

static bool is_due(const struct rejects *rj, const struct rejects_streak *s)
{
    const struct rejects_source *of = &rj->sources[s->source];
    return !s->is_told && s->records >= REJECTS_STREAK_MIN &&
           (of->consumed == of->rejected || clock_mono_ms(rj->clock) - s->begun_ms >= REJECTS_STREAK_MS);
}

static void print_streak(struct rejects *rj, const struct rejects_streak *s, struct text *out)
{
    char label[LOG_QUOTE_BYTES], quoted[LOG_QUOTE_BYTES];
    struct text fits = {0};
    if (s->sample.len > 0)
        print_fit(rj, s->decode, text_slice(&s->sample), s->reason, &fits);
    text_printf(out, "source=%s lines=%" PRId64 " reason=%s", log_quote(s->label, label), s->records,
                log_quote(reject_help(s->reason), quoted));
    if (fits.len > 0)
        text_printf(out, " fits=%s", log_quote(fits.ptr, quoted));
    text_fini(&fits);
}

bool rejects_tell(struct rejects *rj, struct text *fields)
{
    bool is_some = false;
    pthread_mutex_lock(&rj->lock);
    for (size_t i = 0; i < rj->streak_count && !is_some; i++) {
        struct rejects_streak *s = &rj->streaks[i];
        if (!is_due(rj, s))
            continue;
        print_streak(rj, s, fields);
        s->is_told = is_some = true;
    }
    pthread_mutex_unlock(&rj->lock);
    return is_some;
}

void rejects_warn(struct rejects *rj, struct text *out)
{
    char since[CIVIL_ISO_BYTES];
    pthread_mutex_lock(&rj->lock);
    for (size_t i = 0; i < rj->streak_count; i++) {
        const struct rejects_streak *s = &rj->streaks[i];
        if (!s->is_told)
            continue;
        text_puts(out, "warning: source ");
        text_show(out, slice_text(rj->sources[s->source].name));
        text_printf(out,
                    ": all %" PRId64
                    " records of a file or topic since %s are rejected: %s; the log names it "
                    "(all_rejected)\n",
                    s->records, civil_iso(s->begun_wall_ms, since), reject_help(s->reason));
    }
    pthread_mutex_unlock(&rj->lock);
}
