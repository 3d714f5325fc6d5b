/* visits.h - the visits of the imaginary site (bench/site.h), for programs that write them to MongoDB
 * themselves.
 *
 * Owner  : the caller frees by visits_free(). A path holds until the next call.
 * Errors : whatever goes wrong is said on standard error and ends the process: these are measuring tools.
 */
#ifndef BENCH_MONGO_VISITS_H
#define BENCH_MONGO_VISITS_H

#include "ingest/event.h"

#include <mongoc/mongoc.h>

struct visits;

struct visits *visits_new(uint64_t seed);
void visits_free(struct visits *v);
/* One visit at `at_s`, decoded as a line of its log. */
const struct event *visits_next(struct visits *v, int64_t at_s);

_Noreturn void visits_fail(const char *what, const char *why);
/* A pool of the URL's server; *database is the one it names. */
mongoc_client_pool_t *visits_pool(const char *url, char **database);
double visits_now_s(void);
#endif
