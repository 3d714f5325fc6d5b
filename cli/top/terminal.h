/* terminal.h - the terminal of a live view: taken over, and given back as it was however the process ends.
 *
 * Taken  : keys come one by one and are not echoed, the cursor is hidden, and what is drawn is on the
 *          other screen, so that what stood there before comes back.
 * Signals: those that end the process give the terminal back first and then end it as ever; Ctrl-Z gives
 *          it back until the process goes on. An abort, too.
 * Threads: one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Are standard input and output a terminal that can be drawn on? */
bool terminal_is_there(void);
/* False: it cannot be taken over. */
bool terminal_take(void);
/* Signals are then handled as they were before. Does nothing where it was not taken. */
void terminal_give(void);
/* Of its window, or 80 by 24 where it does not say. */
void terminal_size(int *columns, int *rows);

enum terminal_event { TERMINAL_KEY, TERMINAL_TIME, TERMINAL_REDRAW, TERMINAL_GONE };
/* Wait for a key, for another size (or for coming back after Ctrl-Z), but no longer than `for_ms`. */
enum terminal_event terminal_wait(int64_t for_ms, char *key);
/* False: it is gone. */
bool terminal_write(const char *bytes, uint64_t len);
