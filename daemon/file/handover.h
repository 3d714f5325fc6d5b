/* handover.h - the words between `tallyd import` or `tallyd backfill` and the daemon that writes an SQLite
 * store. A file has one writer, so the import hands its log to the daemon, which counts it beside its own
 * sources (desk.h). Below, a backfill is an import, too.
 *
 *   import                                    daemon
 *   connect to STORE-handover ──────────────▶
 *   request, with the log's descriptor ─────▶ recognises, judges, counts
 *                        ◀── WAITING, READING  several times a second
 *                        ◀── DONE or FAILED    the last one
 *
 * Rights : the log's descriptor is passed (SCM_RIGHTS), not its name, so the daemon reads what the importer
 *          may read, and nobody can have it open a file. The socket has mode 0600: it is for the daemon's
 *          user and root.
 * Packets: SOCK_SEQPACKET; each is one struct of this header. Both ends are one version of tallyd, or the
 *          request is refused.
 * Ends   : if the importer goes, the daemon stops reading; what was read is stored, and the next import goes
 *          on there. If the daemon goes, the importer sees the end of the connection.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/report.h"
#include "base/err.h"
#include "store/backfill.h"

#include <limits.h>
#include <stdatomic.h>

#define HANDOVER_MAGIC        "tallyd import 3"
#define HANDOVER_DECODE_BYTES 1024
#define HANDOVER_TEXT_BYTES   32768
/* A peer that is silent for so long is given up. Finding a position in a packed file takes a while. */
#define HANDOVER_SILENT_MS    (10 * 60 * 1000)
/* An importer sends its request at once; one that does not is given up, since others wait. */
#define HANDOVER_REQUEST_MS   5000

struct handover_request {
    char magic[16];
    char path[PATH_MAX];                /* absolute; of the log */
    char decode[HANDOVER_DECODE_BYTES]; /* as --decode has it; "": as the daemon's configuration says */
    char source_id[RANGE_SOURCE_BYTES]; /* "": by content */
    char report[REPORT_NAME_BYTES];     /* "": import; else backfill the report of this name */
    struct backfill_times only;         /* backfill only events of these times */
    uint64_t config;                    /* config_fingerprint() of what the importer was given; 0: nothing */
    bool takes_last_line, insists;      /* --last-line, --force */
    bool topics; /* backfill the report from the daemon's topics; no log, `path` is "" */
};

enum handover_what { HANDOVER_WAITING, HANDOVER_READING, HANDOVER_DONE, HANDOVER_FAILED };

struct handover_reply {
    enum handover_what what;
    int64_t raw_offset, raw_size;    /* bytes of the log on disk: read, and in all */
    int64_t offset, consumed;        /* decompressed bytes and lines read; of a backfill, at last: counted */
    char source[RANGE_SOURCE_BYTES]; /* DONE: the source's name in the store; "": a backfill knows none */
    int64_t from;                    /* DONE: the offset at which this import began */
    struct err error;                /* FAILED */
    char text[HANDOVER_TEXT_BYTES];  /* DONE: what was counted, in lines for a person */
};

/* A connection to the daemon that writes this store; -1: there is none that takes files. */
int handover_connect(const char *store_url);
/* A socket that listens beside a store; -1: `e` says why. Pre: the store's lock is held. */
int handover_listen(const char *store_url, struct err *e) MUST_CHECK;
/* Remove the socket's name. */
void handover_unlisten(const char *store_url);

/* Each returns false if the peer is gone, is silent for too long, or *stop becomes true (NULL: never). */
/* log_fd -1: there is none. */
bool handover_send_request(int fd, const struct handover_request *rq, int log_fd) MUST_CHECK;
/* *log_fd: the log, open for reading, which is the caller's now; -1 on failure, and if topics are wanted. */
bool handover_take_request(int fd, struct handover_request *rq, int *log_fd,
                           const atomic_bool *stop) MUST_CHECK;
bool handover_send_reply(int fd, const struct handover_reply *rp, const atomic_bool *stop) MUST_CHECK;
bool handover_take_reply(int fd, struct handover_reply *rp, const atomic_bool *stop) MUST_CHECK;
/* Has the peer closed its end? */
bool handover_is_gone(int fd);
