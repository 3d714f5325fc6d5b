/* clf.h - decoder of the Common Log Format family, as Apache httpd and nginx write it.
 *
 *   common          host logname user [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326
 *   combined        … common …  "referrer" "user agent"
 *   vhost_combined  server:80 … combined …
 *   auto            whichever of the three this line is
 *
 * User   : may hold spaces and brackets; it ends where a well-formed time and a quote follow.
 * Cut    : a user agent without its closing quote ends with the line: real logs have such lines, and all
 *          that is counted stands before it. Any other field cut off is a reject.
 * Cost   : one pass, no allocation, no copy; the minutes and zones of two times are cached.
 * Escapes: \" \\ \xhh \n \t inside quotes are recognised, and left in place with the field's odd bit.
 * Source : mod_log_config's escaping (ap_escape_logitem); %t of the Apache HTTP Server documentation.
 */
#pragma once

#include "ingest/decode/decoder.h"

enum clf_format { CLF_AUTO, CLF_COMMON, CLF_COMBINED, CLF_VHOST_COMBINED, CLF_FORMAT_COUNT };

/* How most lines stand before the time: no logname, no user. */
#define CLF_NOBODY       "- - "
#define CLF_NOBODY_BYTES 4

/* A minute as lines write it. */
struct clf_minute {
    char text[32];    /* CLF_NOBODY and a time, of which all but the second counts */
    int64_t start_ms; /* of its second 0 */
};

struct clf {
    struct decoder decoder; /* first: a struct clf is a struct decoder */
    enum clf_format format;
    struct clf_minute minutes[2]; /* the last two that were new: where the minute turns, lines of both mix */
    uint64_t unusual_count;       /* lines that clf_usual.h left to clf_decode_any() */
};

void clf_init(struct clf *c, enum clf_format format);
/* What clf_init() chooses where there is nothing better (clf_usual.h); it reads any line. */
bool clf_decode_any(struct decoder *d, struct slice line, struct event *ev, struct reject *why);

const char *clf_format_name(enum clf_format format);
bool clf_format_parse(struct slice name, enum clf_format *format);
