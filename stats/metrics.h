/* metrics.h - the status as Prometheus reads it: text format 0.0.4.
 *
 * Names   : tallyd_ first, units last, _total at the end of counters; once released a name does not change.
 * Source  : https://prometheus.io/docs/practices/naming/; `promtool check metrics` has nothing to say.
 * Threads : any.
 */
#pragma once

#include "stats/status.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void metrics_write(struct status *s, struct text *out);
