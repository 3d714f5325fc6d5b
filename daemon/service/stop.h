/* stop.h - the signals that a process handles.
 *
 *   SIGINT, SIGTERM  an orderly end: finish what was read, store it, exit. A second one within the drain ends
 *                    the process at once (nothing is lost: what was not stored is read again)
 *   SIGHUP           read the configuration again, between two batches (`run` only: other commands end)
 *
 * Threads : one thread sets it up, any thread asks.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Catch SIGINT and SIGTERM from now on; the flag becomes true when one arrives. */
const atomic_bool *stop_catch(void);
/* The signal that arrived; 0: none. */
int stop_signal(void);
/* End the process with EX_TEMPFAIL if it still runs timeout_ms after the first signal: a drain must not hang
 * for ever. Rounded up to seconds. */
void stop_within(int64_t timeout_ms);

/* Catch SIGHUP too. */
void stop_catch_reload(void);
/* Did SIGHUP arrive since the last call? */
bool stop_take_reload(void);
