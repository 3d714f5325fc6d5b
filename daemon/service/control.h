/* control.h - how `tallyd reload` asks a daemon to read its configuration again, and learns the result.
 *
 * The daemon listens at CONTROL_NAME in the folder that systemd makes for its unit ($RUNTIME_DIRECTORY). Who
 * connects asks for a reload, and gets one packet: CONTROL_GOOD or CONTROL_BAD, then text. Without that
 * folder there is no socket: SIGHUP reloads, too, but gives no answer.
 *
 * Threads : the daemon's side is of one thread, which also reloads. Nothing in it blocks.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <limits.h>

#define CONTROL_FOLDER     "RUNTIME_DIRECTORY"
#define CONTROL_NAME       "reload"
#define CONTROL_TEXT_BYTES 4096
#define CONTROL_WAIT_MS    30000 /* that `tallyd reload` waits for an answer */

enum { CONTROL_GOOD = '+', CONTROL_BAD = '-' };

struct control {
    int listen_fd, asker_fd; /* -1: none */
    char path[PATH_MAX];
};

/* False, EX_CANTCREAT: it cannot listen there. */
bool control_open(struct control *c, struct err *e) MUST_CHECK;
void control_close(struct control *c);
/* Does someone ask for a reload? Then control_answer() follows. */
bool control_take(struct control *c);
/* Answer the one who asked; if no one did, do nothing. The text is cut at CONTROL_TEXT_BYTES. */
void control_answer(struct control *c, bool is_good, struct slice text);

/* Ask the daemon for a reload; `text` becomes what it says. False: it was not asked, did not answer
 * (EX_UNAVAILABLE, EX_TEMPFAIL), or refused the configuration (EX_CONFIG, and `text` has its problems). */
bool control_ask(char text[CONTROL_TEXT_BYTES + 1], struct err *e) MUST_CHECK;
