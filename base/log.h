/* log.h - what the daemon tells its operator: one logfmt line on standard error per change of state.
 *
 *   level=info event=started store=sqlite:tallyd.db reports=2
 *
 * Rules   : never a line per record; counters tell the rest. Text values are quoted by log_quote().
 * Threads : any; a line is written by one write(2).
 */
#pragma once

#include "base/check.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

void log_set_level(enum log_level level);
/* `fields` is the rest of the line: log_info("started", "port=%d", port). */
void log_line(enum log_level level, const char *event, const char *fields, ...) PRINTF_LIKE(3, 4);

#define log_debug(event, ...) log_line(LOG_LEVEL_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...)  log_line(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_warn(event, ...)  log_line(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_error(event, ...) log_line(LOG_LEVEL_ERROR, event, __VA_ARGS__)

/* A logfmt value with its quotes, safe to print with %s; buf is cut at its size. */
#define LOG_QUOTE_BYTES 1024
const char *log_quote(const char *text, char buf[LOG_QUOTE_BYTES]);
