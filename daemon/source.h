/* source.h - opens a file as a source: recognises it, and resumes at the store's position.
 *
 *   never seen           counted from its first byte
 *   seen, grown          counted from the store's position      (also after it was renamed or compressed)
 *   seen, no longer      nothing to count
 *   same path, new start another file under an old name: counted from its first byte, and reported
 *   seen, now shorter, or changed before the position: refused (EX_DATAERR); --source-id counts it anew
 */
#pragma once

#include "ingest/decode/decode.h"
#include "ingest/file/identity.h"
#include "ingest/file/reader.h"
#include "store/reader.h"

struct source {
    struct input *in;
    struct reader *reader;
    struct range range; /* names the source; `to`: offset to resume at */
    bool is_known;      /* part of it was counted before */
    bool is_empty;      /* no byte yet, so no identity: there is nothing to do */
    /* the path under which it was counted before; "": it was not */
    char label[sizeof(((struct range *)NULL)->label)];
    char note[640]; /* for the operator: how it was recognised; "": as expected */
};

/* Chooses how a file is read, once it is recognised: sets last_line, heeds_directives and keeps_label.
 * `label`: NULL, or the path under which it was counted. False: the file is refused. */
struct source_options;
typedef bool source_choose(void *context, const char *label, struct source_options *options, struct err *e);

struct source_options {
    size_t line_max;
    enum last_line last_line;
    bool heeds_directives;         /* reader_heed_directives() */
    source_choose *choose;         /* NULL, or called for a file that has bytes */
    void *context;                 /* of `choose` */
    bool keeps_label;              /* a known file stays under its label, not under its path */
    const char *source_id;         /* NULL: by content */
    const atomic_bool *stop;       /* NULL, or a flag that interrupts a read */
    struct input *in;              /* NULL, or what is read instead of `path`; it is taken over */
    struct store *later_positions; /* NULL, or the store of a dry run, whose positions are newer */
};

/* How to take a last line without line feed. `takes`: as it is, since the user says so (--last-line). */
enum last_line source_last_line(const struct decode *d, bool takes);
/* Opens `path`. Only the positions of `positions` are read; NULL: nothing was counted before. On failure
 * everything is closed. */
bool source_open(struct source *src, const char *path, struct store *positions,
                 const struct source_options *options, struct err *e) MUST_CHECK;
/* Opens the file at `path` as the source that `at` names, and goes on at at->to. EX_DATAERR: other bytes are
 * before that. */
bool source_open_at(struct source *src, const char *path, const struct range *at,
                    const struct source_options *options, struct err *e) MUST_CHECK;
void source_close(struct source *src);
/* Close the source, but hand its input to the caller. */
struct input *source_leave(struct source *src);

/* A followed file's position has a witness: the hash of its first bytes, and their number. False: it has
 * none. */
bool source_head(const struct range *r, struct identity *head);
void source_set_head(struct range *r, struct identity head);
