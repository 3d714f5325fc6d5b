/* live_view.h - draws a daemon's figures once, in lines of text, for `tallyd top`.
 *
 * Text from a log cannot control the terminal: control characters, and characters that turn or hide text, are
 * drawn as `?`. The first character that does not fit ends its line.
 */
#pragma once

#include "cli/top/live.h"

struct live_view {
    int columns, rows; /* size of the window, in characters; rows 0: no limit */
    bool on_screen;    /* draw over the previous picture, with bold and colours; else plain lines */
    const char *error; /* error to show; the figures are then older; NULL: none */
};

/* Draw the figures. The locale (LC_CTYPE) says which characters can be used. */
void live_draw(const struct live *l, const struct live_view *view, struct text *out);
