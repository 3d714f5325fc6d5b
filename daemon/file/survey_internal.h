/* survey_internal.h - shared by the files of survey.h: the files that are there, each with what it is.
 *
 *   sight.c    finds the files of a log, and recognises them
 *   next.c     decides what is next
 */
#pragma once

#include "daemon/file/survey.h"
#include "ingest/file/family.h"

/* Begin of the path of a file that is only held open. */
#define SIGHTING_HELD "/proc/self/fd/"

/* A file, and what it is. */
struct sighting {
    struct family_file file;   /* its path is owned */
    char *bytes;               /* its first bytes, as many as `head` says; owned */
    struct identity head;      /* length 0: it is empty, or cannot be read */
    struct known_file *known;  /* NULL: never seen */
    struct known_file *alike;  /* NULL, or a file of this log that begins as this one did, and is another */
    struct known_file *cut_of; /* NULL, or the known file of which it may be a copy that misses its end */
    struct known_file *others; /* NULL, or another host's file that has the same bytes, as far as is known */
    bool is_spoiled;           /* it is a known one, but damaged or changed before the position */
    bool has_more;             /* it has bytes that were not counted; of a rotated file */
    bool is_read;              /* this process reads it, or knows that the rest of it is no line */
    bool is_foreign;           /* its name is no rotated file's: it was looked for under any name */
    bool has_twin;             /* a newer one with the same bytes is there */
    bool is_twin;              /* an older one with the same bytes is there: its place may be that */
    bool is_unsure;            /* another file may be `known` as well */
};

struct look {
    struct survey *survey;
    const struct survey_log *log;
    const struct known *known;
    struct sighting *rotated; /* oldest first; behind them those that were found under any name */
    size_t count, capacity;
    struct sighting at_path; /* the log itself; without a path if there is none */
    int64_t newest;          /* of the rotated ones, the newest known by its name; -1: none */
    size_t unreadable;       /* number of files that could not be read */
    struct err unreadable_why;
    size_t families;    /* number of other logs whose rotated files were listed */
    struct err trouble; /* retryable: a file could not be opened now; else none */
};

/* Find and recognise the log and its rotated files. Fill in all but the first three members. */
bool look_sight(struct look *l, struct err *e) MUST_CHECK;
/* Recognise one more file as the last of `rotated`. It takes over file->path. */
void look_add(struct look *l, struct family_file *file);
/* Is it the log itself, or another one? */
bool look_is_log(const struct look *l, const struct family_file *file);
/* Is it, by its path, another log's file or one of its rotated files, and none of this log's? */
bool look_is_of_other(const struct look *l, const char *path);
/* Do two files begin alike, as far as the shorter one goes? That one may be a copy. */
bool look_begin_alike(const struct sighting *a, const struct sighting *b);
/* The time at which a file was last counted, in ns, or up to an hour before. */
int64_t look_counted_ns(const struct look *l, const struct known_file *f);
/* Is it known that the file has no more bytes than were counted? */
bool survey_is_whole(const struct survey *s, const struct known_file *f);
/* The end of a followed file, if this process has noted one; else RANGE_UNCHANGED. */
enum range_state survey_end_of(const struct survey *s, const struct known_file *f);
void look_fini(struct look *l);
void sighting_fini(struct sighting *s);
