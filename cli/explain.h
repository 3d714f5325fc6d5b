/* explain.h - shows how each step decodes a line, where each field stood, and which series of which report
 * counts it. `tallyd explain` calls it; explain_text.c prints for readers, explain_json.c for machines.
 *
 * Safe    : bytes of the line that could act on a terminal are printed as \xHH.
 * Decoded : by the chain of the counting path, so this code knows no format.
 * Owner   : explain_init() borrows all that it is given.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/fit.h"
#include "ingest/decode/place.h"

struct explain {
    const struct config *config;
    const struct decode *decode;
    const struct constants *constants; /* fields that the file's path sets */
    bool is_topic;                     /* of a source that is a topic: the time of its message is now */
    bool json;
    struct chain *chain;
    struct fit *fit;
    char *key; /* room for a series' key */
};

/* An event, reject or directive of a line. */
struct explained {
    const struct explain *by;
    struct slice line;
    size_t number;                 /* the line's, from 1 */
    size_t part;                   /* number of the event or reject in the line, from 1 */
    const struct event *ev;        /* NULL: it is a directive or a reject */
    bool is_directive;             /* of the W3C format: neither an event nor a reject */
    struct reject why;             /* its column counts in the text of `step` */
    size_t step;                   /* the step in whose text the column of `why` counts; 0: the line itself */
    const struct fit_format *fits; /* the format that would fit a reject; NULL: none, or nobody can tell */
};

void explain_init(struct explain *x, const struct config *config, const struct decode *decode,
                  const struct constants *constants);
void explain_fini(struct explain *x);
/* Adds the explanation of a line to `out`. False: something in it is rejected. */
bool explain_line(struct explain *x, struct slice line, size_t number, struct text *out);

void explain_text(const struct explained *a, struct text *out);
void explain_json(const struct explained *a, struct text *out);

/* The first condition of the report's that does not hold; NULL: the report counts the event. */
const struct condition *explain_left_out(const struct report *r, const struct event *ev);
/* The value that the event adds to a measure, "-" if none. */
const char *explain_measure(const struct measure *m, const struct event *ev, char buf[NUMBER_BYTES]);
/* The field's number; false: it has none. */
bool explain_number(const struct event *ev, enum field f, char buf[NUMBER_BYTES]);
/* "2000-10-10T20:55:36.000Z" */
#define EXPLAIN_TIME_BYTES 32
const char *explain_time(const struct event *ev, char buf[EXPLAIN_TIME_BYTES]);
