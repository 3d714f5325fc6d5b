/* metrics.h - writes the status in Prometheus' text format 0.0.4. Called by web/api.c; cannot fail.
 *
 * Names   : tallyd_ first, units last, _total at the end of counters. A released name does not change.
 * Source  : https://prometheus.io/docs/practices/naming/; `promtool check metrics` reports nothing.
 * Threads : any.
 */
#pragma once

#include "stats/rejects.h"
#include "stats/status.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void metrics_write(struct status *s, struct rejects *rj, struct text *out);
