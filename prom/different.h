/* different.h - numbers of different texts in windows. Called by fetch.c.
 *
 *   increase(pages:visitors[1h])           the union of the window's texts, counted
 *   max_over_time(pages:visitors[1h])      the texts of each cell, counted by themselves
 *
 * Errors: EX_USAGE: a function or a sum would count a text again; EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/reading.h"

/* Fails for functions, and for a sum right around, that have no meaning for numbers of different texts. */
bool different_check(const struct reading *rd, struct err *e) MUST_CHECK;
/* Is the function over numbers of cells? False: it is over the union of all cells. */
bool different_by_cell(enum function f);
/* Replaces the columns of all pieces by their numbers of different texts. */
void different_count_pieces(struct reading *rd);
/* Sets the values of all windows: the numbers of different texts in them; absent: no text, and not
 * is_always. */
bool different_count_windows(const struct reading *rd, const struct vector *out, struct err *e) MUST_CHECK;
