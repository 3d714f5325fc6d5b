#include "web/status.h"

#include "base/civil.h"

#include <inttypes.h>

/* A source that pauses for longer than this has a falling rate. */
#define PAUSE_MS 3000

void status_init(struct status *s, const struct clock *clock, const char *store, const char *source)
{
    *s = (struct status){.clock = clock, .store = store, .source = source};
    s->begun_ms = s->noted_ms = clock_mono_ms(clock);
    pthread_mutex_init(&s->lock, NULL);
}

void status_fini(struct status *s)
{
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

void status_note(struct status *s, const struct status_figures *figures)
{
    pthread_mutex_lock(&s->lock);
    int64_t now_ms = clock_mono_ms(s->clock);
    forget_steps(s, now_ms - STATUS_RATE_MS);
    if (s->step_count == 0 || figures->consumed != s->figures.consumed)
        s->steps[s->step_count++] = (struct status_step){now_ms, figures->consumed};
    s->noted_ms = now_ms;
    s->figures = *figures;
    pthread_mutex_unlock(&s->lock);
}

static double rate(const struct status *s)
{
    if (s->step_count == 0)
        return 0;
    const struct status_step *first = &s->steps[0], *last = &s->steps[s->step_count - 1];
    int64_t now_ms = clock_mono_ms(s->clock);
    int64_t end_ms = now_ms - last->at_ms > PAUSE_MS ? now_ms : last->at_ms;
    if (end_ms <= first->at_ms)
        return 0;
    return (double)(last->consumed - first->consumed) * 1000 / (double)(end_ms - first->at_ms);
}

double status_rate(struct status *s)
{
    pthread_mutex_lock(&s->lock);
    double found = rate(s);
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool status_healthy(struct status *s, struct text *why)
{
    pthread_mutex_lock(&s->lock);
    int64_t silent_ms = clock_mono_ms(s->clock) - s->noted_ms;
    pthread_mutex_unlock(&s->lock);
    if (silent_ms <= STATUS_SILENCE_MS)
        return true;
    text_printf(why,
                "nothing was counted or stored for %" PRId64
                " s: the store may be failing; the log on standard error says why\n",
                silent_ms / 1000);
    return false;
}

void status_write(struct status *s, struct text *out)
{
    static const char *const states[] = {"waiting", "counting", "ended"};
    char now[CIVIL_ISO_BYTES];
    pthread_mutex_lock(&s->lock);
    struct status_figures f = s->figures;
    int64_t mono_ms = clock_mono_ms(s->clock), wall_ms = clock_wall_ms(s->clock);
    const char *state = mono_ms - s->noted_ms > STATUS_SILENCE_MS ? "silent" : states[f.state];
    text_printf(out,
                "{\"version\":\"" TALLYD_VERSION "\",\"state\":\"%s\",\"now\":\"%s\",\"now_ms\":%" PRId64,
                state, civil_iso(wall_ms, now), wall_ms);
    text_printf(out, ",\"uptime_ms\":%" PRId64 ",\"store\":", mono_ms - s->begun_ms);
    text_json(out, slice_text(s->store));
    text_puts(out, ",\"source\":");
    text_json(out, slice_text(s->source));
    text_printf(out, ",\"consumed\":%" PRId64 ",\"rejected\":%" PRId64 ",\"rate\":%.1f", f.consumed,
                f.rejected, rate(s));
    text_printf(out, ",\"offset\":%" PRId64 ",\"stored\":%" PRId64 "}\n", f.offset, f.stored);
    pthread_mutex_unlock(&s->lock);
}
