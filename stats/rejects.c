#include "stats/rejects.h"

#include <inttypes.h>

void rejects_init(struct rejects *rj, const struct clock *clock, size_t line_max)
{
    *rj = (struct rejects){.clock = clock, .fit = fit_new(line_max)};
    pthread_mutex_init(&rj->lock, NULL);
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
