/* terminal.h - the terminal of a live view: takes it over, and restores it however the process ends.
 *
 * Taken  : keys arrive one by one without echo, the cursor is hidden, and drawing goes to the alternate
 *          screen: the previous contents come back at the end.
 * Signals: a signal that ends the process, an abort included, restores the terminal first. Ctrl-Z restores it
 *          until the process continues.
 * Threads: one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Are standard input and output a terminal that can be drawn on? */
bool terminal_is_there(void);
/* False: it cannot be taken over. */
bool terminal_take(void);
/* Restore the terminal and the previous signal handlers. Does nothing if it was not taken. */
void terminal_give(void);
/* Size of its window in characters; 80 by 24 if it is unknown. */
void terminal_size(int *columns, int *rows);

enum terminal_event { TERMINAL_KEY, TERMINAL_TIME, TERMINAL_REDRAW, TERMINAL_GONE };
/* Wait up to for_ms for a key, a new window size, or the return from Ctrl-Z. */
enum terminal_event terminal_wait(int64_t for_ms, char *key);
/* False: it is gone. */
bool terminal_write(const char *bytes, uint64_t len);
