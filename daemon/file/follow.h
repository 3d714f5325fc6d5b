/* follow.h - counts the files and the standard input of a daemon: one ingest thread reads all of them, each
 * from the position that the store has, and follows each as it grows and is rotated.
 *
 *   closed ──follow_serve() opens it──▶ open ──another file has its place──▶ left ──▶ closed
 *                                         └──standard input ends──▶ ended
 *
 * Batch   : holds a range of each file that had lines. A block ends with a line, so no line is in two ranges.
 * Rotation: a file that was renamed is read until nothing came for some seconds. Once everything of it is
 *           durable, the file is opened that is next (survey.h).
 * Errors  : bad lines are rejects. A read error, or a file that is not the one that was counted, ends the
 *           daemon after everything read before it is stored. A store error is retried by the engine. A log
 *           that is missing is waited for, with a warning. A followed file that is not found any more, or a
 *           damaged packed one, is reported, and counted as lost.
 * Threads : follow_serve() and follow_run() are the writer's. The thread has its own feed, and the files that
 *           are open; the writer has the others. `state` changes under lanes.lock.
 */
#pragma once

#include "daemon/engine.h"

struct follow;
struct desk;

/* Starts the thread. `desk`: NULL, or where files are handed over (desk.h). NULL on failure. */
struct follow *follow_start(struct engine *en, struct desk *desk, struct err *e) MUST_CHECK;
/* Ends the thread, and frees. NULL: does nothing. A sealed part that is not applied is dropped: its
 * positions did not move. */
void follow_free(struct follow *fo);

/* The functions below do nothing, or say no, if `fo` is NULL. */

/* Is there something to do for follow_serve() at once? Pre: lanes.lock is held. */
bool follow_needs_writer(struct follow *fo);
/* Apply the sealed delivery, and open and close files. False: a final error. */
bool follow_serve(struct follow *fo, struct err *e) MUST_CHECK;
/* Did follow_serve() fail? */
bool follow_has_failed(const struct follow *fo);
/* Serve until the thread has ended after a stop, and all that it read is durable. */
bool follow_run(struct follow *fo, struct err *e) MUST_CHECK;
/* End the thread, as a stop does, and serve until all that it read is durable. */
bool follow_finish(struct follow *fo, struct err *e) MUST_CHECK;
