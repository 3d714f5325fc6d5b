/* pattern.h - a path with glob characters and captures, as a file source has it. The configuration parses it;
 * listing.h finds its files; import, verify and the follower ask which of its fields a file's name sets.
 *
 *   /var/log/nginx/{vhost}.access.log    `vhost` is the text in that place of the file's name
 *   /srv/[a-m]?/logs/access*.log         as in glob(7)
 *
 * Glob     : * is any run of bytes, ? one byte, [a-z] or [!a-z] one byte of a set. None of them matches a
 *            slash, or a dot at the start of a name. There is no **. A backslash makes the next byte stand
 *            for itself.
 * Captures : {name} matches as * does, but at least one byte. Each name is there once, at most
 *            PATTERN_CAPTURES_MAX. A capture ends at the first place at which the rest of the name matches.
 * Bytes    : names are bytes, not text: neither the locale nor UTF-8 matters.
 * Paths    : empty and `.` components count for nothing in patterns and paths; `..` is a name like others.
 * Owner    : pattern_free() frees all.
 * Errors   : "found …, expected …", EX_CONFIG.
 * Threads  : read-only once made.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "base/text.h"
#include "ingest/event.h"

#include <stdint.h>

#define PATTERN_CAPTURES_MAX 8

enum pattern_kind { PATTERN_BYTE, PATTERN_ANY, PATTERN_SET, PATTERN_STAR, PATTERN_CAPTURE };

struct pattern_piece {
    enum pattern_kind kind;
    unsigned char byte; /* of a PATTERN_BYTE */
    size_t capture;     /* index of a PATTERN_CAPTURE */
    uint64_t set[4];    /* bit per byte that a PATTERN_SET matches */
};

/* One component of the path: pieces[from] to pieces[to - 1]. */
struct pattern_part {
    size_t from, to;
    bool is_plain; /* a name without glob characters and captures */
};

struct pattern {
    char *text;  /* as written */
    char *plain; /* the one path that it matches; NULL: it has glob characters or captures */
    bool is_absolute;
    struct pattern_piece *pieces;
    struct pattern_part *parts; /* at least one */
    size_t piece_count, part_count, capture_count;
    char captures[PATTERN_CAPTURES_MAX][FIELD_NAME_BYTES];
};

/* NULL: *e says why. Pre: no NUL is in `text`. */
struct pattern *pattern_new(struct slice text, struct err *e) MUST_CHECK;
void pattern_free(struct pattern *p);
/* Does the pattern match the whole path? If so, captures[i] is the text of the capture p->captures[i], a
 * slice of `path`. A relative path matches only a relative pattern. */
bool pattern_match(const struct pattern *p, struct slice path, struct slice captures[PATTERN_CAPTURES_MAX]);
/* The folder in which every match is: adds the path of the plain components at the beginning, "/" or "." if
 * there are none. Returns how many they are. */
size_t pattern_base(const struct pattern *p, struct text *folder);
/* As pattern_match(), for the components from `part` on and the path from their folder. */
bool pattern_match_rest(const struct pattern *p, size_t part, struct slice path,
                        struct slice captures[PATTERN_CAPTURES_MAX]);
/* Does a component match a name in its folder? */
bool pattern_matches_name(const struct pattern *p, const struct pattern_part *part, struct slice name);
