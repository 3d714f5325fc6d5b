/* expiring.h - what tests of `keep` do with the report FIXTURE_PAGES of a world. */
#pragma once

#include "tests/support/world.h"

/* As "minute=48h hour=62d" says. */
void expiring_keep(struct report *r, const char *text);
/* Open the world's store anew, with that. */
void expiring_open(struct world *w, const char *keep);
/* Let go to the end; how many rows went. */
uint64_t expiring_run(struct world *w, int64_t now_ms);
struct marks expiring_marks(struct store *st);
/* Where the mark of minutes is at that time. */
int64_t expiring_minutes_from(const struct world *w, const char *now);
