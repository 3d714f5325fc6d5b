#include "cli/explain.h"

#include "aggregate/dimension.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

void explain_init(struct explain *x, const struct config *config, const struct decode *decode,
                  const struct constants *constants)
{
    *x = (struct explain){.config = config, .decode = decode, .constants = constants};
    x->chain = chain_new(decode, (size_t)config->limits.line_max);
    chain_set_constants(x->chain, constants);
    x->fit = fit_new((size_t)config->limits.line_max);
    x->key = xmalloc(DIMENSION_KEY_BYTES((size_t)config->limits.dimension_bytes_max));
}

void explain_fini(struct explain *x)
{
    chain_free(x->chain);
    fit_free(x->fit);
    free(x->key);
}

const struct condition *explain_left_out(const struct report *r, const struct event *ev)
{
    size_t i = 0;
    while (i < r->condition_count && condition_holds(&r->conditions[i], ev))
        i++;
    return i < r->condition_count ? &r->conditions[i] : NULL;
}

const char *explain_measure(const struct measure *m, const struct event *ev, char buf[NUMBER_BYTES])
{
    int64_t columns[MEASURE_COLUMNS_MAX] = {0};
    int128 value;
    bool is_there =
        m->kind == MEASURE_COUNT ||
        (m->kind == MEASURE_DISTINCT ? event_has_all(ev, m->fields) : event_has_number(ev, m->field));
    measure_add(m, columns, ev);
    return is_there && measure_value(m, columns, &value) ? number_text(value, buf) : "-";
}

bool explain_number(const struct event *ev, enum field f, char buf[NUMBER_BYTES])
{
    if (!field_is_number(f) || !event_has_number(ev, f))
        return false;
    number_text((int128)ev->number[f] * (EVENT_SCALE / field_scale(f)), buf);
    return true;
}

const char *explain_time(const struct event *ev, char buf[EXPLAIN_TIME_BYTES])
{
    civil_iso(ev->at_ms, buf);
    snprintf(buf + CIVIL_ISO_BYTES - 2, EXPLAIN_TIME_BYTES - CIVIL_ISO_BYTES + 2, ".%03dZ",
             (int)(ev->at_ms % SECOND_MS));
    return buf;
}

/* A line is of another format only if nothing in it fits, or if its fields are most likely moved. */
static void print(struct explained *a, struct text *out)
{
    struct fit_format found = {0};
    const struct explain *x = a->by;
    a->fits = NULL;
    if (a->ev == NULL && !a->is_directive && a->part == 1 &&
        fit_reject(x->fit, x->decode, a->line, a->why.reason, &found))
        a->fits = &found;
    if (a->ev != NULL && fit_moved(x->decode, a->line, &found))
        a->fits = &found;
    if (a->by->json)
        explain_json(a, out);
    else
        explain_text(a, out);
    a->fits = NULL;
    text_fini(&found.steps);
}

/* The chain counts columns in the line or value that its step read. Count them in the whole line, or in the
 * first text that holds it. */
static void move_column(const struct explain *x, struct slice bytes, struct explained *a)
{
    struct place at = place_of(x->chain, bytes);
    ASSERT(at.is_known);
    a->why.column += at.from - 1;
    a->step = at.step;
}

bool explain_line(struct explain *x, struct slice line, size_t number, struct text *out)
{
    const struct config *c = x->config;
    struct explained a = {.by = x, .line = line, .number = number};
    struct event ev;
    struct slice bytes;
    enum chain_result what;
    bool good = true;
    int64_t now_ms = clock_wall_ms(&clock_system);
    const struct record r = {
        .value = line, .partition = RECORD_NO_PARTITION, .timestamp_ms = x->is_topic ? now_ms : -1};
    chain_start(x->chain, &r);
    while ((what = chain_next(x->chain, &ev, &a.why, &bytes)) != CHAIN_END) {
        bool is_future = what == CHAIN_EVENT &&
                         ev.at_ms > record_latest(&r, record_clock_latest(now_ms, c->limits.future_max_ms),
                                                  c->limits.future_max_ms);
        if (is_future)
            a.why = (struct reject){REJECT_FUTURE, 1};
        ev.order = 0;
        a.part++;
        a.ev = what == CHAIN_EVENT && !is_future ? &ev : NULL;
        a.is_directive = what == CHAIN_DIRECTIVE;
        bool is_reject = a.ev == NULL && !a.is_directive;
        if (is_reject)
            move_column(x, bytes, &a);
        good &= !is_reject;
        print(&a, out);
    }
    chain_flush(x->chain);
    return good;
}
