/* live_view.h - one picture of what a daemon says, in lines of text.
 *
 * What came from a log is drawn so that it cannot speak to the terminal: controls and marks that turn or hide
 * text are shown as `?`. A character that does not fit in a line ends it.
 */
#pragma once

#include "cli/top/live.h"

struct live_view {
    int columns, rows; /* rows 0: as many as there are */
    bool on_screen;    /* draw over the picture before, with bold and colours; else plain lines */
    const char *error; /* NULL: none; what is drawn besides is then from before */
};

/* Which characters there are is the locale's to say (LC_CTYPE). */
void live_draw(const struct live *l, const struct live_view *view, struct text *out);
