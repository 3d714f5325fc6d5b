#include "web/api.h"

#include "query/figure.h"
#include "query/ranking.h"
#include "query/unknown.h"
#include "query/values.h"
#include "stats/metrics.h"

#define TYPE_JSON "application/json"
#define TYPE_CSV  "text/csv; charset=utf-8"
#define TYPE_TEXT "text/plain; charset=utf-8"

static const char *const type_of_format[] = {
    [QUERY_TABLE] = TYPE_TEXT, [QUERY_CSV] = TYPE_CSV, [QUERY_CSV_RAW] = TYPE_CSV, [QUERY_JSON] = TYPE_JSON};

void api_error(struct reply *rp, unsigned code, struct slice text)
{
    text_clear(&rp->body);
    rp->code = code;
    rp->type = TYPE_JSON;
    text_puts(&rp->body, "{\"error\":");
    text_json(&rp->body, text);
    text_puts(&rp->body, "}\n");
}

bool api_is_of_question(const struct err *e)
{
    return e->code == EX_USAGE || (e->code == EX_UNAVAILABLE && !e->retryable);
}

void api_fail(struct reply *rp, const struct err *e)
{
    unsigned code = 500;
    if (api_is_of_question(e))
        code = e->code == EX_USAGE ? 400 : 422;
    else if (e->retryable || e->code == EX_NOINPUT)
        code = 503;
    rp->retry = code == 503;
    api_error(rp, code, slice_text(e->code == EX_NOINPUT ? "nothing was counted yet" : e->text));
}

struct query_limits api_limits(struct api *api)
{
    pthread_mutex_lock(&api->limits_lock);
    struct query_limits limits = api->limits;
    pthread_mutex_unlock(&api->limits_lock);
    return limits;
}

int64_t api_timeout_ms(struct api *api)
{
    int64_t timeout_ms = api_limits(api).timeout_ms;
    return timeout_ms > 0 ? timeout_ms : CIVIL_END_MS;
}

void api_begin(struct api *api, struct query *q)
{
    struct query_limits limits = api_limits(api);
    query_init(q, clock_wall_ms(api->clock), &limits);
    q->format = QUERY_JSON;
    q->missed = &api->missed;
}

/* A kind of question: the functions that set a parameter and that answer it. */
struct kind {
    bool (*set)(struct query *q, struct slice name, struct slice value, struct err *e);
    bool (*run)(struct store *st, const struct query *q, struct text *out, struct err *e);
};

static bool set_words(const struct kind *kind, struct query *q, const struct parameter *parameters,
                      size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        if (!kind->set(q, parameters[i].name, parameters[i].value, e))
            return false;
    }
    return true;
}

static void answer(struct api *api, const struct kind *kind, const struct parameter *parameters, size_t count,
                   uint64_t top, struct reply *rp)
{
    struct query q;
    struct err e;
    api_begin(api, &q);
    q.top = top < q.limits.series_max ? top : q.limits.series_max;
    struct store *st = set_words(kind, &q, parameters, count, &e)
                           ? readers_take(&api->readers, rp->deadline, rp->memory, &e)
                           : NULL;
    if (st == NULL) {
        api_fail(rp, &e);
        return;
    }
    rp->code = 200;
    rp->type = type_of_format[q.format];
    rp->is_closed = q.to_ms >= 0 && q.to_ms <= q.now_ms;
    bool good = kind->run(st, &q, &rp->body, &e);
    if (!good)
        api_fail(rp, &e);
    readers_give(&api->readers, st, good || api_is_of_question(&e));
}

static bool run_query(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    struct query_stats stats;
    if (!query_run(st, q, out, &stats, e))
        return false;
    if (q->format == QUERY_TABLE)
        query_note(q, &stats, out);
    return true;
}

void api_query(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    static const struct kind kind = {query_set, run_query};
    answer(api, &kind, parameters, count, 0, rp);
}

void api_top(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    static const struct kind kind = {ranking_set, ranking_run};
    answer(api, &kind, parameters, count, RANKING_LIMIT, rp);
}

void api_series(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    static const struct kind kind = {values_set, values_run};
    answer(api, &kind, parameters, count, VALUES_LIMIT, rp);
}

/* The usual figures of every measure: their names, or what their measures are. */
static void write_figures(const struct report *r, bool expressions, struct text *out)
{
    struct figure f;
    const char *comma = "";
    for (size_t m = 0; m < r->measure_count; m++) {
        for (size_t i = 0; figure_usual(&f, r, m, i); i++, comma = ",") {
            if (f.kind == FIGURE_ERROR)
                continue;
            text_puts(out, comma);
            text_json(out, slice_text(expressions ? r->measures[m].expression : f.name));
        }
    }
}

static void write_report(const struct report *r, struct text *out)
{
    text_puts(out, "{\"name\":");
    text_json(out, slice_text(r->name));
    text_puts(out, ",\"dimensions\":[");
    for (size_t d = 0; d < r->dimension_count; d++) {
        text_puts(out, d > 0 ? "," : "");
        text_json(out, slice_text(r->dimensions[d].name));
    }
    text_puts(out, "],\"measures\":[");
    write_figures(r, false, out);
    text_puts(out, "],\"expressions\":[");
    write_figures(r, true, out);
    text_putc(out, ']');
    if (r->one_in > 1)
        text_printf(out, ",\"sample\":%u", r->one_in);
    if (r->newest > 0)
        text_printf(out, ",\"newest\":%u", r->newest);
    text_putc(out, '}');
}

/* Fails if there are parameters, for paths that take none. */
static bool has_parameters(const struct parameter *parameters, size_t count, struct reply *rp)
{
    static const char *const none[] = {NULL};
    struct err e;
    if (count == 0)
        return false;
    (void)unknown_name(&e, "parameter", parameters[0].name, none);
    api_fail(rp, &e);
    return true;
}

void api_reports(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    struct err e;
    if (has_parameters(parameters, count, rp))
        return;
    struct store *st = readers_take(&api->readers, rp->deadline, rp->memory, &e);
    if (st == NULL) {
        api_fail(rp, &e);
        return;
    }
    rp->code = 200;
    rp->type = TYPE_JSON;
    text_putc(&rp->body, '[');
    for (size_t i = 0; i < st->report_count; i++) {
        text_puts(&rp->body, i > 0 ? "," : "");
        write_report(&st->reports[i], &rp->body);
    }
    text_puts(&rp->body, "]\n");
    readers_give(&api->readers, st, true);
}

void api_status(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    if (has_parameters(parameters, count, rp))
        return;
    rp->code = 200;
    rp->type = TYPE_JSON;
    status_write(api->status, &rp->body);
}

void api_rejects(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    int64_t counts[REJECT_COUNT];
    if (has_parameters(parameters, count, rp))
        return;
    rp->code = 200;
    rp->type = TYPE_JSON;
    status_count_rejects(api->status, counts);
    rejects_write(api->rejects, counts, &rp->body);
}

void api_metrics(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    (void)parameters, (void)count;
    rp->code = 200;
    rp->type = METRICS_TYPE;
    metrics_write(api->status, api->rejects, &rp->body);
}

static void answer_state(struct reply *rp, bool good)
{
    rp->type = TYPE_TEXT;
    rp->code = good ? 200 : 503;
    if (good)
        text_puts(&rp->body, "ok\n");
}

void api_health(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    (void)parameters, (void)count;
    answer_state(rp, status_is_alive(api->status, &rp->body));
}

void api_ready(struct api *api, const struct parameter *parameters, size_t count, struct reply *rp)
{
    (void)parameters, (void)count;
    bool is_ready = status_is_ready(api->status, &rp->body);
    answer_state(rp, is_ready);
    if (is_ready) {
        status_warn(api->status, &rp->body);
        rejects_warn(api->rejects, &rp->body);
    }
}
