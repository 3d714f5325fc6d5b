/* verify/builds.h - tells by which lists and databases a store's events were counted, as its books say
 * (store/builds.h). The command `verify` calls it after it has compared. */
#pragma once

#include "ingest/derive/builds.h"
#include "store/reader.h"

#include <stdio.h>

/* Prints a line for each build: in how many partitions it made fields. If `differs`, each stretch of offsets
 * follows that another build made than `now`, at most VERIFY_PRINTED_MAX of them. Prints nothing if the books
 * name no build. */
bool verify_print_builds(struct store *st, const struct builds *now, bool differs, FILE *out,
                         struct err *e) MUST_CHECK;
