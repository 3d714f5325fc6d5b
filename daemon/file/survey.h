/* survey.h - decides what the follower reads next of a log: a rotated file that is not counted to its end,
 * or the log itself. It looks at the files that are there and at what the store knows of them. Nothing
 * depends on what happened while it did not look.
 *
 *   access.log.3  known, counted to its end              nothing to do
 *   access.log.2  known, 500 lines more                  1. the rest of it
 *   access.log.1  never seen, newer than a known one     2. all of it
 *   access.log    never seen                             3. the log
 *
 * Alike   : a file is a known one if it begins as that (known.h), is no shorter than the position, and has
 *           the same bytes before it. A rotated file that is shorter but begins with the same
 *           IDENTITY_PREFIX_BYTES_MAX bytes is a copy of it that misses its end. If several
 *           different files are alike, only a header that they share was counted: the oldest is the known
 *           one, or one that has nothing but the header and did not change since. If the oldest has no file
 *           before it, the known one may have been deleted: a gap. So it is if the known one is found only
 *           under another name, perhaps as a copy. Files of the same bytes are one.
 * Others  : a known file that was counted as another log's, or as one of its rotated files, is not this log's
 *           while the other log still has it, under any name of its family. If it has not, it was moved here.
 *           Before that, this log's own files are compared. A source that another log reads is not read here:
 *           the file is a new one.
 * Unknown : a rotated file that was never seen counts if it changed after the newest known one (or, where
 *           times are close, by its name), and the log is not known. If none is known any more: if it
 *           changed after the log was last counted. If it changed after this process began to look, it
 *           counts in any case: it came and was rotated between two looks. It may be a copy that is still
 *           written: so not if a known file begins with all of its first bytes. Older ones are history from
 *           before tallyd: import them.
 * Skipped : a rotated file that begins with the same IDENTITY_PREFIX_BYTES_MAX bytes as a known one, but has
 *           other bytes before its position, and is no other known file of as many first bytes: it may be
 *           damaged. Or one that only its time makes history, but a clock may have been wrong: its name is
 *           newer than the newest known one's, or the log was counted at a time that is still to come. It is
 *           not read, and that is told.
 * Hosts   : a file that another host follows is another one, unless the store knows its first
 *           IDENTITY_PREFIX_BYTES_MAX bytes, and they and those before the position are the same. Then it is
 *           taken over: this host was renamed, or both see one file.
 * Ended   : the file that was followed before ends in the batch in which its successor begins. So the store
 *           always has a followed file, from which a daemon goes on.
 * Lost    : the file that was followed is not there any more, under any name in the log's folder or
 *           `olddir`; or a number between it and the next one is missing; or it was read to its end and is
 *           gone, and the next one was not seen in its place. A number before the log that is missing counts,
 *           too, if a rotated file changed since the followed one was counted, and the followed one is only
 *           there under a name that rotation does not give, or only a header that the log shares was
 *           counted. Files that come and go while nobody looks,
 *           and leave none of these signs, cannot be known.
 * Changed : the log begins as a file of it that was counted, but is shorter or has other bytes before the
 *           position, and that file is not found elsewhere. Nothing tells a changed file from a new one:
 *           EX_DATAERR.
 * Threads : one at a time.
 */
#pragma once

#include "daemon/file/known.h"
#include "ingest/file/input.h"

#include <limits.h>
#include <sys/types.h>

/* A log of the configuration. Borrowed. */
struct survey_owner {
    const char *path, *olddir;
};

/* A log to look after. Borrowed. */
struct survey_log {
    const char *path;                                /* absolute */
    const char *olddir;                              /* NULL: none */
    bool (*is_log)(void *context, const char *path); /* paths of logs: others' files are not this one's */
    bool (*is_name_open)(void *context,
                         const char *source); /* an open file has it, but perhaps not the store */
    /* Does another log read this source now, from a file that is not this one? */
    bool (*is_read_elsewhere)(void *context, const char *log, const char *source, dev_t device, ino_t inode);
    /* Is it the path of a log of the configuration, or by its name one of a log's rotated files? */
    bool (*find_owner)(void *context, const char *path, struct survey_owner *owner);
    void *context;
    int64_t host;
    int64_t future_max_ms;
    int64_t now_ns;            /* wall clock */
    int64_t begun_ns;          /* wall clock when this process first looked; 0: unknown */
    const struct input *input; /* the file of it that is read; NULL: none */
    int held_fd;               /* a file that had the log's place for a while, open; -1: none */
    bool is_held_next; /* survey_came_next() says that it came directly after the file that was read */
};

/* A file that has nothing more to read although it has more bytes: an unfinished line. */
struct survey_done {
    dev_t device;
    ino_t inode;
    int64_t size;
};

/* A followed file whose end the store does not have yet: RANGE_ENDED or RANGE_LOST. */
struct survey_end {
    char source[RANGE_SOURCE_BYTES];
    enum range_state state;
    bool is_whole; /* nothing was written behind its end */
};

struct survey {
    struct survey_done *done;
    size_t done_count, done_capacity;
    struct survey_end *ends;
    size_t end_count, end_capacity;
};

enum survey_what {
    SURVEY_NOTHING, /* the log is missing or empty, and all others are counted */
    SURVEY_ROTATED,
    SURVEY_LOG,
    SURVEY_LOST,
    SURVEY_CHANGED, /* LOST, and the log begins as that did: `why` refuses it */
};

struct survey_answer {
    enum survey_what what;
    char path[PATH_MAX]; /* ROTATED, LOG: the file */
    dev_t device;        /* which it is */
    ino_t inode;
    bool is_known; /* go on at range.to */
    bool is_final; /* nobody writes to it any more */
    bool has_gap;  /* files may have come before it, and gone unseen, after the source that is named here */
    char gap_after[RANGE_SOURCE_BYTES];
    struct identity head;   /* of its first bytes */
    size_t unreadable;      /* number of files that cannot be read; `why` is the first one's error */
    int64_t others;         /* number of its bytes that another host may have counted; 0: none did */
    size_t skipped;         /* number of files that may have lines to count, but are not read */
    struct err skipped_why; /* of the first one */
    struct range range;     /* of the file, or of a new one its name; LOST: of the lost file */
    struct err why;
    struct range *endings; /* files that end as this one begins; NOTHING: that have ended, and are gone */
    size_t ending_count;
    char note[640]; /* for the log; "": as expected */
};

/* Another file was first seen in the log's place: did it come directly after `in`, the file that was read?
 * Yes if that is the newest rotated file, perhaps packed, or if rotation leaves no rotated files here.
 * `head`: of its first bytes. False if files may have come between, and be gone. */
bool survey_came_next(const char *path, const char *olddir, const struct input *in, struct identity head);
/* Decide. `k` is what the store knows now. False: a folder or file cannot be looked at, so nothing is known.
 * Retryable if it may be later. */
bool survey_look(struct survey *s, const struct survey_log *log, const struct known *k,
                 struct survey_answer *a, struct err *e) MUST_CHECK;
/* The file was read to its end, and has an unfinished line. */
void survey_note_done(struct survey *s, const struct survey_answer *a, int64_t size);
/* A followed file was read to its end, or is lost: do not look for it again. */
void survey_note_end(struct survey *s, const char *source, enum range_state state);
/* After survey_note_end(): was nothing written behind its end? Then a file with more is another one. */
void survey_note_whole(struct survey *s, const char *source, bool is_whole);
void survey_answer_fini(struct survey_answer *a);
void survey_fini(struct survey *s);
