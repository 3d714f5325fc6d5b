#include "cli/top/live.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define PARAMETERS_MAX 5
#define SINCE          "-59m" /* the current minute is the sixtieth */

static struct parameter say(const char *name, const char *value)
{
    return (struct parameter){slice_text(name), slice_text(value)};
}

/* Query `path`; replaces *answer. */
static bool get(const struct live *l, const char *path, const struct parameter *parameters, size_t count,
                bson_t **answer, struct err *e)
{
    struct text body = {0};
    bson_error_t why;
    bson_t *found = NULL;
    if (client_get(&l->daemon, path, parameters, count, LIVE_WAIT_MS, &body, e)) {
        found = bson_new_from_json((const uint8_t *)body.ptr, (ssize_t)body.len, &why);
        if (found == NULL)
            err_set(e, EX_PROTOCOL, "%s%s answers with something that is not JSON (%s): check the address",
                    l->daemon.url, path, why.message);
    }
    text_fini(&body);
    if (found == NULL)
        return false;
    bson_destroy(*answer);
    *answer = found;
    return true;
}

static bool find(const bson_t *answer, const char *path, bson_iter_t *found)
{
    bson_iter_t it;
    return answer != NULL && bson_iter_init(&it, answer) && bson_iter_find_descendant(&it, path, found);
}

double live_number(const bson_t *answer, const char *path, double otherwise)
{
    bson_iter_t it;
    return find(answer, path, &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : otherwise;
}

const char *live_text(const bson_t *answer, const char *path, const char *otherwise)
{
    bson_iter_t it;
    return find(answer, path, &it) && BSON_ITER_HOLDS_UTF8(&it) ? bson_iter_utf8(&it, NULL) : otherwise;
}

bool live_list(const bson_t *answer, const char *path, bson_iter_t *list)
{
    bson_iter_t it;
    return find(answer, path, &it) && (BSON_ITER_HOLDS_ARRAY(&it) || BSON_ITER_HOLDS_DOCUMENT(&it)) &&
           bson_iter_recurse(&it, list);
}

/* ---- which report */

static const char *report_text(const bson_t *reports, size_t report, const char *member, size_t i)
{
    char path[64];
    snprintf(path, sizeof path, "%zu.%s.%zu", report, member, i);
    return live_text(reports, path, NULL);
}

static const char *report_name(const bson_t *reports, size_t report)
{
    char path[64];
    snprintf(path, sizeof path, "%zu.name", report);
    return live_text(reports, path, NULL);
}

/* The report's only dimension; NULL: it has none or several. */
static const char *only_dimension(const bson_t *reports, size_t report)
{
    return report_text(reports, report, "dimensions", 1) == NULL
               ? report_text(reports, report, "dimensions", 0)
               : NULL;
}

static bool choose_report(const struct live *l, const bson_t *reports, size_t *report, struct err *e)
{
    struct text names = {0};
    bool found = false, has_series = false;
    for (size_t i = 0; report_name(reports, i) != NULL; i++) {
        const char *name = report_name(reports, i);
        bool series = report_text(reports, i, "dimensions", 0) != NULL;
        bool better = strcmp(name, "pages") == 0 || (series && !has_series) || !found;
        text_printf(&names, "%s%s", i > 0 ? ", " : "", name);
        if (l->report != NULL ? strcmp(name, l->report) != 0 : !better)
            continue;
        *report = i;
        has_series = series;
        found = true;
    }
    if (!found && l->report != NULL)
        err_set(e, EX_USAGE, "unknown report \"%s\": there are %s", l->report,
                names.len > 0 ? names.ptr : "none yet");
    else if (!found)
        err_set(e, EX_TEMPFAIL, "nothing was counted yet");
    text_fini(&names);
    return found;
}

static void add_chart(struct live *l, const char *measure)
{
    l->charts[l->chart_count++].measure = xstrdup(measure);
}

/* A histogram is listed by its figures, p50(NAME) first: is it the one that the operator chose by its name,
 * or the report's first measure? */
static bool is_chosen_histogram(const struct live *l, const char *figure)
{
    const char *name = strchr(figure, '(');
    const size_t len = name != NULL ? strcspn(++name, ")") : 0;
    return len > 0 &&
           (l->measure == NULL || (strlen(l->measure) == len && strncmp(l->measure, name, len) == 0));
}

static void show_histogram(struct live *l, const char *figure)
{
    struct text p99 = {0};
    text_printf(&p99, "p99%s", strchr(figure, '('));
    add_chart(l, p99.ptr);
    add_chart(l, figure);
    text_fini(&p99);
}

static bool choose_measure(struct live *l, const bson_t *reports, size_t report, struct err *e)
{
    const char *name;
    for (size_t i = 0; (name = report_text(reports, report, "measures", i)) != NULL; i++) {
        const char *expression = report_text(reports, report, "expressions", i);
        if (is_chosen_histogram(l, name)) {
            show_histogram(l, name);
            return true;
        }
        if (l->measure != NULL && strcmp(name, l->measure) != 0)
            continue;
        add_chart(l, name);
        l->adds_up =
            expression != NULL && (strcmp(expression, "count") == 0 || strncmp(expression, "sum(", 4) == 0);
        return true;
    }
    /* A figure of a histogram that is not listed, such as p99.9(latency): the daemon knows. */
    if (l->measure != NULL && strchr(l->measure, '(') != NULL) {
        add_chart(l, l->measure);
        return true;
    }
    return err_set(e, EX_USAGE, "report %s has no measure \"%s\"", l->top_report, l->measure);
}

static void choose_classes(struct live *l, const bson_t *reports)
{
    for (size_t i = 0; report_name(reports, i) != NULL && l->class_report == NULL; i++) {
        const char *dimension = only_dimension(reports, i);
        if (dimension != NULL && (strcmp(dimension, "status_class") == 0 || strcmp(dimension, "status") == 0))
            l->class_report = xstrdup(report_name(reports, i));
    }
}

bool live_start(struct live *l, struct err *e)
{
    bson_t *reports = NULL;
    size_t report = 0;
    bool good = get(l, "/api/v1/reports", NULL, 0, &reports, e) && choose_report(l, reports, &report, e);
    if (good) {
        l->top_report = xstrdup(report_name(reports, report));
        l->ranks = report_text(reports, report, "dimensions", 0) != NULL;
        choose_classes(l, reports);
        good = choose_measure(l, reports, report, e);
    }
    bson_destroy(reports);
    return good;
}

void live_fini(struct live *l)
{
    free(l->top_report);
    free(l->class_report);
    bson_destroy(l->status);
    for (size_t i = 0; i < l->chart_count; i++) {
        free(l->charts[i].measure);
        bson_destroy(l->charts[i].minutes);
        bson_destroy(l->charts[i].total);
    }
    bson_destroy(l->top);
    bson_destroy(l->classes);
}

/* ---- its figures */

/* `measure`: "" is the report's first. */
static bool rank(struct live *l, const char *report, const char *measure, bson_t **answer, struct err *e)
{
    char limit[8];
    snprintf(limit, sizeof limit, "%d", LIVE_TOP);
    struct parameter p[PARAMETERS_MAX] = {say("report", report), say("from", SINCE), say("limit", limit),
                                          say("measure", measure), say("median", "true")};
    const bool with_median = l->chart_count == LIVE_CHARTS && *measure != '\0';
    return get(l, "/api/v1/top", p, with_median ? PARAMETERS_MAX : PARAMETERS_MAX - 1, answer, e);
}

static bool ask_chart(struct live *l, struct live_chart *chart, struct err *e)
{
    struct parameter p[] = {say("report", l->top_report), say("measure", chart->measure), say("from", SINCE),
                            say("step", "minute")};
    return get(l, "/api/v1/query", p, 4, &chart->minutes, e) &&
           get(l, "/api/v1/query", p, 3, &chart->total, e);
}

bool live_ask(struct live *l, struct err *e)
{
    bool good = get(l, "/api/v1/status", NULL, 0, &l->status, e);
    for (size_t i = 0; good && i < l->chart_count; i++)
        good = ask_chart(l, &l->charts[i], e);
    return good && (!l->ranks || rank(l, l->top_report, l->charts[0].measure, &l->top, e)) &&
           (l->class_report == NULL || rank(l, l->class_report, "", &l->classes, e));
}
