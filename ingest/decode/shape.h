/* shape.h - the shape of lines of an access log: the text before the host, and the fields behind the agent.
 * fit.c asks which format has the shape of all lines that it was given.
 *
 *   FRONT host logname user [time] "request" status bytes ["referrer" "agent"] TAIL …
 *
 * Sure    : a wrong format would read such lines with fields moved, and nobody would see it. So a shape is
 *           named only if the lines leave no doubt, unless the caller wants a guess:
 *             server name   a name before two different hosts: a client's name would differ
 *             X-Forwarded-For  addresses, in a line a list of them; behind the agent also without a list
 *             $request_time    seconds with three digits
 *             $upstream_response_time   behind it; absent or a list in some line
 *             ingress-nginx    nine fields: a size, seconds, two names in brackets, five of upstreams
 *             %I %O            larger than the request, and than the body by a header's size
 *           Any other whole number behind the agent is in doubt: it may be %D or %T.
 * Cut     : a line that ends within its agent does not count for the tail.
 * Cost    : one pass over a line. It is for a few lines, not for all.
 */
#pragma once

#include "base/text.h"

#include <stdint.h>

#define SHAPE_TAILS_MAX 12
#define SHAPE_NAMES_MAX 16

/* Bits of what a line has before its host. */
enum shape_front {
    FRONT_NOTHING = 1,
    FRONT_PORT = 2,    /* server:80 */
    FRONT_NAME = 4,    /* a name */
    FRONT_ADDRESS = 8, /* an address */
    FRONT_LIST = 16,   /* addresses with ", " between them */
    FRONT_OTHER = 32
};

/* Bits of what a field of the tail holds. */
enum shape_tail {
    TAIL_DASH = 1,
    TAIL_ADDRESS = 2,
    TAIL_ADDRESSES = 4, /* with ", " between them */
    TAIL_INTEGER = 8,
    TAIL_SECONDS = 16,      /* with three digits behind the point */
    TAIL_SECONDS_LIST = 32, /* with ", " between them */
    TAIL_BRACKETS = 64,     /* [text] */
    TAIL_TEXT = 128,        /* anything else */
    TAIL_QUOTED = 256,      /* besides: the field is in quotes */
    TAIL_BARE = 512         /* besides: it is not */
};

/* Zeros at first. */
struct shape {
    size_t lines;
    unsigned fronts;                    /* bits of enum shape_front */
    bool is_common, is_combined;        /* some line is */
    bool has_tail, has_no_tail;         /* some line has a tail; some line has none */
    size_t tail_count;                  /* of each line that has a tail, at most SHAPE_TAILS_MAX */
    unsigned tails[SHAPE_TAILS_MAX];    /* bits of enum shape_tail */
    bool tails_differ;                  /* lines have several numbers of them */
    bool has_logname;                   /* other than - */
    bool has_user_of_a_word;            /* some user is one word or none; moved ones always have several */
    bool sizes_fit_not, sizes_fit_well; /* in some line, two numbers cannot be %I and %O; can only be these */
    bool is_servers_name;               /* a name came before two different hosts */
    uint64_t names[SHAPE_NAMES_MAX], hosts[SHAPE_NAMES_MAX]; /* hashes of the first names, and their hosts */
    size_t name_count;
};

/* False: the line is of no shape that a format here has. */
bool shape_add(struct shape *s, struct slice line);
/* Adds the format of all lines to `steps`, as --decode takes it. False: none is sure, and *doubt says why.
 * True and *doubt not NULL: auto reads them, but skips fields. `guess`: name a format that is likely, too;
 * *doubt is then the condition under which it fits. */
bool shape_format(const struct shape *s, bool guess, struct text *steps, const char **doubt);
