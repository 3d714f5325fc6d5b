/* live.h - what a running daemon says of one report, for a view that goes on: asked for again each second.
 *
 * Answers: those of the API, parsed; NULL while never had. After a failure the last ones stay.
 * Owner  : live_fini() frees the answers; what the options name is borrowed.
 * Errors : those of client.h; EX_USAGE: there is no such report or measure; EX_PROTOCOL: what answers is
 *          not JSON.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "cli/top/client.h"

#include <bson/bson.h>

#define LIVE_MINUTES 60
#define LIVE_TOP     50
#define LIVE_WAIT_MS 3000L /* for an answer */

struct live {
    struct client daemon;
    const char *report, *measure;   /* NULL, or what was asked for */
    char *top_report, *top_measure; /* what is shown: owned */
    char *class_report;             /* NULL: no report tells statuses apart */
    bool adds_up;                   /* the measure: minutes add up to the hour */
    bool ranks;                     /* the report has series */
    bson_t *status;                 /* /api/v1/status */
    bson_t *minutes;                /* /api/v1/query by minute, */
    bson_t *total;                  /* and of the hour as a whole */
    bson_t *top, *classes;          /* /api/v1/top, or /api/v1/query?top= */
};

/* Choose what is shown, from the reports that there are: the one asked for, else `pages`, else the first with
 * series. */
bool live_start(struct live *l, struct err *e) MUST_CHECK;
/* Ask for all of it. */
bool live_ask(struct live *l, struct err *e) MUST_CHECK;
void live_fini(struct live *l);

/* A member of an answer, by its path "a.b.0": `otherwise` where there is none, or one of another kind. */
double live_number(const bson_t *answer, const char *path, double otherwise);
const char *live_text(const bson_t *answer, const char *path, const char *otherwise);
/* The members of an array or object; false: there is none. */
bool live_list(const bson_t *answer, const char *path, bson_iter_t *list);
