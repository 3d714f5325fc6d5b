/* expiring.h - helpers for tests of `keep`, with the report FIXTURE_PAGES of a world. */
#pragma once

#include "tests/support/world.h"

/* Sets the report's `keep` from text such as "minute=48h hour=62d". */
void expiring_keep(struct report *r, const char *text);
/* Reopens the world's store with that `keep`. */
void expiring_open(struct world *w, const char *keep);
/* Runs expiry until nothing is left to expire. Returns the number of rows deleted. */
uint64_t expiring_run(struct world *w, int64_t now_ms);
struct watermarks expiring_watermarks(struct store *st);
/* The expiry watermark of minutes at the time `now`. */
int64_t expiring_minutes_from(const struct world *w, const char *now);
