/* stop.h - SIGINT and SIGTERM ask for an orderly end: finish what was read, store it, go. A second one
 * within the drain ends the process at once (nothing is lost even so: what was not stored is read again). */
#pragma once

#include <stdatomic.h>

/* Catch the signals from now on; the flag becomes true when one came. */
const atomic_bool *stop_catch(void);
/* The signal that came, 0 for none. */
int stop_signal(void);
