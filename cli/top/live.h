/* live.h - a running daemon's figures of one report, queried again each second, for `tallyd top`.
 *
 * Answers: the API's answers, parsed; NULL until the first one. After a failure the last ones stay.
 * Owner  : live_fini() frees the answers; the options are borrowed.
 * Errors : those of client.h; EX_USAGE: there is no such report or measure; EX_PROTOCOL: the answer is not
 *          JSON.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "cli/top/client.h"

#include <bson/bson.h>

#define LIVE_MINUTES 60
#define LIVE_TOP     50
#define LIVE_CHARTS  2
#define LIVE_WAIT_MS 3000L /* timeout of one answer */

/* A measure of the last hour. */
struct live_chart {
    char *measure;   /* its name; owned */
    bson_t *minutes; /* /api/v1/query by minute */
    bson_t *total;   /* /api/v1/query of the hour as a whole */
};

struct live {
    struct client daemon;
    const char *report, *measure; /* the operator's choice; NULL: none */
    char *top_report;             /* name of what is shown; owned */
    char *class_report;           /* report that tells statuses apart; NULL: none */
    bool adds_up;                 /* the measure's minutes add up to the hour */
    bool ranks;                   /* the report has series */
    bson_t *status;               /* /api/v1/status */
    struct live_chart charts[LIVE_CHARTS];
    size_t chart_count;    /* of a histogram two: p99, by which series are ranked, and p50 */
    bson_t *top, *classes; /* /api/v1/top, or /api/v1/query?top= */
};

/* Choose the report to show: the one asked for, else `pages`, else the first one with series. */
bool live_start(struct live *l, struct err *e) MUST_CHECK;
/* Query all figures. */
bool live_ask(struct live *l, struct err *e) MUST_CHECK;
void live_fini(struct live *l);

/* A member of an answer, by its path "a.b.0"; `otherwise`: there is none of this type. */
double live_number(const bson_t *answer, const char *path, double otherwise);
const char *live_text(const bson_t *answer, const char *path, const char *otherwise);
/* The members of an array or object; false: there is none. */
bool live_list(const bson_t *answer, const char *path, bson_iter_t *list);
