#include "web/prom_api.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "base/units.h"
#include "prom/lex.h"
#include "prom/list.h"
#include "prom/parse.h"
#include "prom/write.h"
#include "query/estimate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define TIME_BYTES_MAX     40
#define SELECTORS_MAX      16
#define LABEL_PREFIX       "/prometheus/api/v1/label/"
#define LABEL_SUFFIX       "/values"
/* Clients infer from the version what they may use: this one has match[] of label values, and no more. */
#define PROMETHEUS_VERSION "2.24.0"

struct call {
    struct api *api;
    struct store *store;
    struct query_limits limits;
    const struct parameter *parameters;
    size_t count;
    struct slice label; /* NAME of label/NAME/values */
    struct text *out;   /* gets the data */
    bool is_cut;        /* a limit has cut the data */
    const char *limit;  /* that limit, as the warning names it */
    struct text notes;  /* further warnings, as JSON: each with a comma before it */
};

/* Adds the data to `out`. EX_USAGE and EX_UNAVAILABLE become 422; BAD_PARAMETER becomes 400. */
typedef bool call_fn(struct call *c, struct err *e);

#define BAD_PARAMETER EX_PROTOCOL

/* ---- parameters */

/* A NULL pointer: there is no such parameter. */
static struct slice find(const struct call *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++) {
        if (slice_is(c->parameters[i].name, name))
            return c->parameters[i].value;
    }
    return slice_of(NULL, 0);
}

static bool fail_parameter(struct err *e, const char *name, struct slice value, const char *expected)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    if (value.ptr == NULL)
        return err_set(e, BAD_PARAMETER, "the parameter %s is missing: expected %s", name, expected);
    return err_set(e, BAD_PARAMETER, "invalid parameter %s: found %s, expected %s", name,
                   suggest_quote(value, quoted), expected);
}

/* Parses seconds as a decimal fraction. */
static bool parse_seconds(struct slice text, int64_t *ms)
{
    char copy[TIME_BYTES_MAX], *end;
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (strspn(copy, "0123456789.eE+-") != text.len)
        return false;
    double value = strtod(copy, &end) * SECOND_MS;
    if (*end != '\0' || !(value >= 0 && value <= CIVIL_END_MS))
        return false;
    *ms = (int64_t)llround(value);
    return true;
}

static bool get_time(const struct call *c, const char *name, int64_t now_ms, bool is_needed, int64_t *ms,
                     struct err *e)
{
    struct slice text = find(c, name);
    *ms = now_ms;
    if (text.len == 0 && !is_needed)
        return true;
    bool is_date = text.len > 0 && memchr(text.ptr, 'T', text.len) != NULL;
    return parse_seconds(text, ms) || (is_date && civil_parse(text, now_ms, ms)) ||
           fail_parameter(e, name, text, "seconds since 1970 or a time such as 2015-05-17T10:05:03Z");
}

static bool get_step(const struct call *c, int64_t *ms, struct err *e)
{
    struct slice text = find(c, "step");
    bool is_step = (parse_seconds(text, ms) || lex_duration(text, ms)) && *ms > 0 && *ms <= CIVIL_END_MS;
    return is_step || fail_parameter(e, "step", text, "seconds above 0 or a duration such as 1m");
}

/* Sets the limit that the client asks for; 0: none. */
static bool get_number(const struct call *c, const char *name, int64_t *number, struct err *e)
{
    struct slice text = find(c, name), rest = text;
    *number = 0;
    return text.len == 0 || (units_take_digits(&rest, number) && rest.len == 0) ||
           fail_parameter(e, name, text, "a number, 0 for none");
}

/* Sets how many entries may be listed, and how the warning names that limit. */
static bool get_limit(struct call *c, uint64_t *max, struct err *e)
{
    int64_t number;
    if (!get_number(c, "limit", &number, e))
        return false;
    bool is_own = number > 0 && (uint64_t)number <= c->limits.series_max;
    *max = is_own ? (uint64_t)number : c->limits.series_max;
    c->limit = is_own ? "" : " (query.series_max)";
    return true;
}

static bool get_list(struct call *c, struct list_ask *ask, struct slice selectors[SELECTORS_MAX],
                     struct err *e)
{
    *ask = (struct list_ask){.selectors = selectors, .rows_max = c->limits.rows_max};
    if (!get_limit(c, &ask->max, e))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        if (!slice_is(c->parameters[i].name, "match[]"))
            continue;
        if (ask->selector_count == SELECTORS_MAX)
            return err_set(e, BAD_PARAMETER, "more than %d match[]", SELECTORS_MAX);
        selectors[ask->selector_count++] = c->parameters[i].value;
    }
    return true;
}

/* ---- calls */

/* A range without events at some time may be of a time at which a report was not counted. An instant has no
 * note: there may only be no events. */
static bool note_missed(struct call *c, const struct eval_question *q, const struct eval_answer *a,
                        struct err *e)
{
    bool good = true;
    for (size_t r = 0; q->step_ms > 0 && good && r < c->store->report_count; r++) {
        struct missed missed;
        struct text note = {0};
        const struct missed_answer of = {{q->from_ms, q->to_ms}, a->holes[r], false};
        good = missed_find(c->store, r, &of, &c->api->missed, clock_wall_ms(c->api->clock), &missed, e);
        if (good && missed.sources > 0) {
            missed_note(&missed, slice_text(c->store->reports[r].name), &note);
            text_putc(&c->notes, ',');
            text_json(&c->notes, text_slice(&note));
        }
        text_fini(&note);
    }
    return good;
}

/* Figures of a sample are estimates, of a range and of an instant. */
static void note_estimates(struct call *c, const struct eval_answer *a)
{
    for (size_t r = 0; r < c->store->report_count; r++) {
        struct text note = {0};
        if (!a->is_read[r] || c->store->reports[r].one_in == 1)
            continue;
        estimate_note(&c->store->reports[r], &note);
        text_putc(&c->notes, ',');
        text_json(&c->notes, text_slice(&note));
        text_fini(&note);
    }
}

static bool evaluate(struct call *c, struct eval_question *q, struct err *e)
{
    struct eval_answer a;
    int64_t limit;
    q->text = find(c, "query");
    q->limits = c->limits;
    if (q->text.ptr == NULL)
        return fail_parameter(e, "query", q->text, "an expression");
    if (!get_number(c, "limit", &limit, e))
        return false;
    q->series_max = (uint64_t)limit;
    if (!eval_run(c->store, q, &a, e))
        return false;
    c->is_cut = a.is_cut;
    c->limit = "";
    note_estimates(c, &a);
    bool good = note_missed(c, q, &a, e);
    if (good && !write_answer(&a, c->limits.bytes_max, c->out))
        good = err_set(e, EX_UNAVAILABLE,
                       "the answer is longer than %" PRIu64
                       " bytes (query.response_max): ask for fewer series, or by a longer step",
                       c->limits.bytes_max);
    eval_fini(&a);
    return good;
}

static bool call_query(struct call *c, struct err *e)
{
    struct eval_question q = {.step_ms = 0};
    if (!get_time(c, "time", clock_wall_ms(c->api->clock), false, &q.from_ms, e))
        return false;
    q.to_ms = q.from_ms;
    return evaluate(c, &q, e);
}

static bool call_query_range(struct call *c, struct err *e)
{
    struct eval_question q;
    if (!get_time(c, "start", 0, true, &q.from_ms, e) || !get_time(c, "end", 0, true, &q.to_ms, e) ||
        !get_step(c, &q.step_ms, e))
        return false;
    if (q.to_ms < q.from_ms)
        return err_set(e, BAD_PARAMETER, "invalid parameter end: it is before start");
    return evaluate(c, &q, e);
}

/* tallyd has no style of its own: an expression that can be parsed stays as it is. */
static bool call_format_query(struct call *c, struct err *e)
{
    const struct slice text = find(c, "query");
    struct arena arena;
    if (text.ptr == NULL)
        return fail_parameter(e, "query", text, "an expression");
    arena_init(&arena, PARSE_BYTES_MAX);
    bool good = parse_expression(text, &arena, e) != NULL;
    arena_fini(&arena);
    if (good)
        text_json(c->out, text);
    return good;
}

static bool call_labels(struct call *c, struct err *e)
{
    struct slice selectors[SELECTORS_MAX];
    struct list_ask ask;
    return get_list(c, &ask, selectors, e) && list_labels(c->store, &ask, c->out, &c->is_cut, e);
}

static bool call_values(struct call *c, struct err *e)
{
    struct slice selectors[SELECTORS_MAX];
    struct list_ask ask;
    return get_list(c, &ask, selectors, e) && list_values(c->store, c->label, &ask, c->out, &c->is_cut, e);
}

static bool call_series(struct call *c, struct err *e)
{
    struct slice selectors[SELECTORS_MAX];
    struct list_ask ask;
    if (!get_list(c, &ask, selectors, e))
        return false;
    if (ask.selector_count == 0)
        return fail_parameter(e, "match[]", slice_of(NULL, 0), "a selector");
    return list_series(c->store, &ask, c->out, &c->is_cut, e);
}

/* Here, as in Prometheus, a limit of 0 is a limit. A metric has one entry, so limit_per_metric cuts
 * nothing. */
static bool call_metadata(struct call *c, struct err *e)
{
    int64_t limit, per_metric;
    if (!get_number(c, "limit", &limit, e) || !get_number(c, "limit_per_metric", &per_metric, e))
        return false;
    list_metadata(c->store, find(c, "metric"), find(c, "limit").len > 0 ? (uint64_t)limit : UINT64_MAX,
                  c->out);
    return true;
}

/* ---- answers that need no store */

static void say(struct reply *rp, const char *data)
{
    rp->code = 200;
    rp->type = "application/json";
    text_printf(&rp->body, "{\"status\":\"success\",\"data\":%s}\n", data);
}

static const struct {
    const char *path, *data;
} constants[] = {
    {"/prometheus/api/v1/status/buildinfo",
     "{\"version\":\"" PROMETHEUS_VERSION "\",\"revision\":\"tallyd " TALLYD_VERSION
     "\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\"}"},
    {"/prometheus/api/v1/rules", "{\"groups\":[]}"},
    {"/prometheus/api/v1/alerts", "{\"alerts\":[]}"},
    {"/prometheus/api/v1/query_exemplars", "[]"},
    {"/prometheus/api/v1/alertmanagers", "{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}"},
    {"/prometheus/api/v1/notifications", "[]"},
    {"/prometheus/api/v1/status/config", "{\"yaml\":\"\"}"},
    {"/prometheus/api/v1/status/flags", "{}"},
    {"/prometheus/api/v1/targets", "{\"activeTargets\":[],\"droppedTargets\":[],\"droppedTargetCounts\":{}}"},
    {"/prometheus/api/v1/targets/metadata", "[]"},
};

static const struct {
    const char *path;
    call_fn *answer;
} calls[] = {
    {"/prometheus/api/v1/query", call_query},       {"/prometheus/api/v1/query_range", call_query_range},
    {"/prometheus/api/v1/labels", call_labels},     {"/prometheus/api/v1/series", call_series},
    {"/prometheus/api/v1/metadata", call_metadata}, {"/prometheus/api/v1/format_query", call_format_query},
};

/* ---- replies */

static void fail(struct reply *rp, const struct err *e)
{
    const char *type = "internal";
    rp->code = 500;
    rp->retry = e->retryable || e->code == EX_NOINPUT;
    if (e->code == BAD_PARAMETER) {
        rp->code = 400;
        type = "bad_data";
    } else if (api_is_of_question(e)) {
        rp->code = 422;
        type = "execution";
    } else if (rp->retry) {
        rp->code = 503;
        type = deadline_is_over(rp->deadline) ? "timeout" : "unavailable";
    }
    text_clear(&rp->body);
    text_printf(&rp->body, "{\"status\":\"error\",\"errorType\":\"%s\",\"error\":", type);
    text_json(&rp->body, slice_text(e->code == EX_NOINPUT ? "nothing was counted yet" : e->text));
    text_puts(&rp->body, "}\n");
}

static void end_answer(struct call *c)
{
    if (c->is_cut)
        text_printf(&c->notes, ",\"results truncated due to limit%s\"", c->limit);
    if (c->notes.len > 0)
        text_printf(c->out, ",\"warnings\":[%s]", c->notes.ptr + 1);
    text_puts(c->out, "}\n");
}

static void run(struct call *c, call_fn *answer, struct reply *rp)
{
    struct err e;
    rp->type = "application/json";
    rp->code = 200;
    c->store = readers_take(&c->api->readers, rp->deadline, rp->memory, &e);
    if (c->store == NULL) {
        fail(rp, &e);
        return;
    }
    text_puts(&rp->body, "{\"status\":\"success\",\"data\":");
    c->out = &rp->body;
    bool good = answer(c, &e);
    if (good)
        end_answer(c);
    else
        fail(rp, &e);
    text_fini(&c->notes);
    readers_give(&c->api->readers, c->store, good || e.code == BAD_PARAMETER || api_is_of_question(&e));
}

/* Finds NAME in …/label/NAME/values. */
static bool find_label(const char *path, struct slice *label)
{
    size_t len = strlen(path), prefix = strlen(LABEL_PREFIX), suffix = strlen(LABEL_SUFFIX);
    if (len <= prefix + suffix || strncmp(path, LABEL_PREFIX, prefix) != 0 ||
        strcmp(path + len - suffix, LABEL_SUFFIX) != 0)
        return false;
    *label = slice_of(path + prefix, len - prefix - suffix);
    return memchr(label->ptr, '/', label->len) == NULL;
}

bool prom_api_answer_at_once(struct api *api, const char *path, struct reply *rp)
{
    if (strcmp(path, PROM_API_PREFIX "-/healthy") == 0) {
        api_health(api, NULL, 0, rp);
        return true;
    }
    if (strcmp(path, PROM_API_PREFIX "-/ready") == 0) {
        api_ready(api, NULL, 0, rp);
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(constants); i++) {
        if (strcmp(path, constants[i].path) == 0) {
            say(rp, constants[i].data);
            return true;
        }
    }
    return false;
}

bool prom_api_answer(struct api *api, const char *path, const struct parameter *parameters, size_t count,
                     struct reply *rp)
{
    struct call c = {.api = api, .limits = api_limits(api), .parameters = parameters, .count = count};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        if (strcmp(path, calls[i].path) == 0) {
            run(&c, calls[i].answer, rp);
            return true;
        }
    }
    if (!find_label(path, &c.label))
        return false;
    run(&c, call_values, rp);
    return true;
}
