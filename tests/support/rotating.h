/* rotating.h - a log's folder, what a store knows of its files, and what survey.h answers, in words.
 *
 *   "rotated access.log.2 from 100"    the rest of a known file, from that line on
 *   "log new, ended a"                 the log, of which nothing was counted; the file of content a ends
 *
 * Contents are named by a letter: the lines of `a` have an a. Some contents begin alike: p to t with the same
 * HEADER_LINES lines, P to T with the same PREFIX_LINES.
 */
#pragma once

#include "aggregate/report.h"
#include "base/civil.h"
#include "base/text.h"
#include "daemon/file/survey.h"
#include "store/store.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#define LINE_BYTES    50
#define LOG           "access.log"
#define HOST          7
#define FUTURE_MAX_MS (10 * MINUTE_MS)
#define NOW_MS        INT64_C(1795390000000)

#define HEADER_LINES 2
#define PREFIX_LINES 100 /* longer than IDENTITY_PREFIX_BYTES_MAX */

#define FOLLOWED .state = RANGE_FOLLOWED, .host = HOST
#define ENDED    .state = RANGE_ENDED, .host = HOST
#define GONE     .state = RANGE_LOST, .host = HOST
#define IMPORTED .state = RANGE_UNCHANGED
#define READ     FOLLOWED, .noted = RANGE_ENDED
#define WHOLE    READ, .whole = true
#define MISSED   FOLLOWED, .noted = RANGE_LOST

/* A file. Packed by gzip if its name ends in .gz. */
struct place {
    const char *name;
    char content;
    int lines, age_min; /* minutes since its last change */
};

/* A file that the store knows. */
struct counted {
    char content;
    int lines; /* counted so far */
    enum range_state state;
    const char *label; /* NULL: the log's path; else a name in the same folder */
    int64_t host;
    int seen;               /* number of lines when it was first seen; 0: as many as counted */
    int age_min;            /* minutes since its last batch */
    enum range_state noted; /* its end, which the store does not have yet */
    bool whole;             /* and that nothing was written behind it */
};

struct rotating {
    struct scratch scratch;
    struct report reports[FIXTURE_COUNT];
    struct store *store;
    struct known known;
    struct survey survey;
    struct survey_log log;
    struct survey_answer answer;
    char path[512], other_log[512], blog[512]; /* paths of this log, and of others: access.log.7, blog.log */
    char open_name[RANGE_SOURCE_BYTES];        /* the name of another log's open file */
    char read_name[RANGE_SOURCE_BYTES];        /* also of one that another log reads, from another file */
    struct text said;
};

/* A folder, what the store knows of its files, and the answer. The ends are zeros. */
#define ROTATING_FILES_MAX 6
#define ROTATING_KNOWN_MAX 5
struct rotating_row {
    const char *rule;
    struct place files[ROTATING_FILES_MAX];
    struct counted known[ROTATING_KNOWN_MAX];
    const char *answer, *olddir;
};

void rotating_begin(struct rotating *k);
void rotating_end(struct rotating *k);
/* Writes a file that changed so long before NOW_MS. */
void rotating_put(struct rotating *k, struct place p);
void rotating_set_age(const char *path, int age_min);
/* The store knows the file, from one batch. */
void rotating_apply(struct rotating *k, struct counted c);
/* Empties the store. */
void rotating_forget(struct rotating *k);
/* The identity of a file with so many lines. */
struct identity rotating_identity(char content, int lines);
/* The answer in words. `known` has the contents that it may name; its end is a zero. */
const char *rotating_ask(struct rotating *k, const struct counted *known);
/* Number of rows that have another answer; each is printed. */
size_t rotating_check(const struct rotating_row *rows, size_t count);
