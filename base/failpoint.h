/* failpoint.h - named places at which a test can kill the process, as SIGKILL would, or stop it.
 *
 *   TALLYD_FAILPOINT=store.before_commit      kill at the first pass
 *   TALLYD_FAILPOINT=store.before_commit:3    kill at the third pass
 *   TALLYD_FAILPOINT=store.before_commit:stop  stop at each pass, as SIGSTOP would, until SIGCONT
 *
 * Cost    : one read of a flag, at places that are passed a few times a second, never for each event.
 * Threads : any.
 * Names   : the table is the only list of them; tests read it from here.
 */
#pragma once

#include <stdbool.h>

#define FAILPOINT_TABLE(X)                                \
    X(SEAL, "ingest.sealed")                              \
    X(REJECTS_BEFORE, "rejects.before_write")             \
    X(REJECTS_AFTER, "rejects.after_write")               \
    X(STORE_BEGUN, "store.begun")                         \
    X(STORE_ROWS, "store.rows_written")                   \
    X(STORE_BEFORE_COMMIT, "store.before_commit")         \
    X(STORE_AFTER_COMMIT, "store.after_commit")           \
    X(FOLD_BEFORE_COMMIT, "fold.before_commit")           \
    X(FOLD_AFTER_COMMIT, "fold.after_commit")             \
    X(EXPIRE_BEFORE_WATERMARK, "expire.before_watermark") \
    X(EXPIRE_WATERMARK_MOVED, "expire.watermark_moved")   \
    X(EXPIRE_BEFORE_COMMIT, "expire.before_commit")       \
    X(EXPIRE_AFTER_COMMIT, "expire.after_commit")         \
    X(FORGET_TAKEN, "forget.taken")                       \
    X(FORGET_BEFORE_COMMIT, "forget.before_commit")       \
    X(FORGET_AFTER_COMMIT, "forget.after_commit")         \
    X(REPLACE_BEFORE_COMMIT, "replace.before_commit")     \
    X(REPLACE_AFTER_COMMIT, "replace.after_commit")       \
    X(REPLACE_FILLED, "replace.filled")                   \
    X(DROP_COLLECTION, "drop.collection")                 \
    X(DROP_LAST, "drop.last")                             \
    X(OFFSETS_BEFORE, "offsets.before_commit")            \
    X(OFFSETS_AFTER, "offsets.after_commit")              \
    X(RAW_INSERTED, "raw.inserted")                       \
    X(MONGO_LOGGED, "mongo.logged")                       \
    X(MONGO_COMMITTED, "mongo.committed")                 \
    X(MONGO_APPLYING, "mongo.applying")                   \
    X(MONGO_APPLIED, "mongo.applied")                     \
    X(MONGO_DONE, "mongo.done")                           \
    X(ROLL_UP_PIECE, "roll_up.piece")                     \
    X(ROLL_UP_SENT, "roll_up.sent")                       \
    X(REPLAY_SENT, "replay.sent")                         \
    X(SLOT_TAKEN, "slot.taken")                           \
    X(CLAIM_WRITTEN, "claim.written")                     \
    X(CLAIM_RECALLED, "claim.recalled")                   \
    X(CLAIM_SETTLING, "claim.settling")                   \
    X(CLAIM_HOME, "claim.home")                           \
    X(CONDENSE_READ, "condense.read")                     \
    X(ROLLUP_SENT, "rollup.sent")                         \
    X(ROLLUP_STAMPING, "rollup.stamping")                 \
    X(TOP_RANKED, "top.ranked")                           \
    X(WEEKS_BEGUN, "weeks.begun")                         \
    X(TTL_NOTED, "ttl.noted")                             \
    X(TTL_DROPPED, "ttl.dropped")                         \
    X(TTL_MADE, "ttl.made")                               \
    X(TTL_SETTLED, "ttl.settled")                         \
    X(STOP_DRAINED, "stop.drained")                       \
    X(PAST_CLAIMED, "past.claimed")                       \
    X(PAST_WRITTEN, "past.written")                       \
    X(PAST_MOVED, "past.moved")                           \
    X(PAST_VOID, "past.void")                             \
    X(BACKUP_HELD, "backup.held")                         \
    X(BACKUP_PAGE, "backup.page")                         \
    X(BACKUP_COPIED, "backup.copied")                     \
    X(RESTORE_MARKED, "restore.marked")                   \
    X(RESTORE_LOADED, "restore.loaded")                   \
    X(RESTORE_APPLIED, "restore.applied")                 \
    X(UPGRADE_KEPT, "upgrade.kept")                       \
    X(UPGRADE_REWRITTEN, "upgrade.rewritten")             \
    X(COPY_MARKED, "copy.marked")                         \
    X(COPY_FILLED, "copy.filled")                         \
    X(COPY_FINISHING, "copy.finishing")

#define FAILPOINT_ENUM(id, name) FAILPOINT_##id,
enum failpoint { FAILPOINT_TABLE(FAILPOINT_ENUM) FAILPOINT_COUNT };
#undef FAILPOINT_ENUM

/* Reads the environment; call it once, before any thread. False: unknown failpoint, or a pass below 1. */
bool failpoint_init(void);
/* Kills or stops the process if this pass is a chosen one; returns otherwise. */
void failpoint(enum failpoint place);
