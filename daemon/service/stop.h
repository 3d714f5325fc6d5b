/* stop.h - all that signals say to a process.
 *
 *   SIGINT, SIGTERM  an orderly end: finish what was read, store it, go. A second one within the drain ends
 *                    the process at once (nothing is lost even so: what was not stored is read again)
 *   SIGHUP           read the configuration again, between two batches (`run` only: elsewhere it ends the
 *                    process, as ever)
 *
 * Threads : set up by one, asked by any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Catch SIGINT and SIGTERM from now on; the flag becomes true when one came. */
const atomic_bool *stop_catch(void);
/* The signal that came, 0 for none. */
int stop_signal(void);
/* End the process with EX_TEMPFAIL where it is still there so long after the first signal: a drain that
 * hangs must not hang for ever. Seconds, rounded up. */
void stop_within(int64_t timeout_ms);

/* Catch SIGHUP too. */
void stop_catch_reload(void);
/* Did one come since this was last asked? */
bool stop_take_reload(void);
